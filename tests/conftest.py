"""What all tests share."""

import signal

from hypothesis import settings

# A shell that starts tests in the background has them ignore Ctrl-C, which some of them press.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Compilation can make the first example take seconds; how long a test takes is not what it is about.
settings.register_profile("hogwild", deadline=None)
settings.load_profile("hogwild")
