from helpers.adding_course import adding, course_repository

__all__ = ["adding", "course_repository"]

collect_ignore = ["labs"]  # a lab and submissions, not modules
