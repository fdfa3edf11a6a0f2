"""What all tests share."""

from hypothesis import settings

# Compilation can make the first example take seconds; how long a test takes is not what it is about.
settings.register_profile("hogwild", deadline=None)
settings.load_profile("hogwild")
