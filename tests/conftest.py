from hypothesis import settings

# CI machines are shared: a slow moment is no failure, and every run draws the same examples.
settings.register_profile("course", deadline=None, derandomize=True)
settings.load_profile("course")
