from helpers.adding_course import adding, course_repository
from helpers.judging import judging_slot, session, verdict

__all__ = ["adding", "course_repository", "judging_slot", "session", "verdict"]
