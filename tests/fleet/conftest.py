from helpers.adding_course import adding

__all__ = ["adding"]
