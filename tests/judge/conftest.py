from helpers.adding_course import adding, course_repository
from helpers.judging import judging_sandbox, session, verdict

__all__ = ["adding", "course_repository", "judging_sandbox", "session", "verdict"]
