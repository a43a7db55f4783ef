"""What holds for all tests."""

from hypothesis import settings

# Time says nothing about an example on a machine that others use, or under a sanitizer.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
