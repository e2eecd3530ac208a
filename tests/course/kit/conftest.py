from helpers.browser import browser

__all__ = ["browser"]
