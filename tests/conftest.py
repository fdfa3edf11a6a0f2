"""What all tests share."""

import gc
import signal

import pytest
from hypothesis import settings

from tiers import LONG, entries_for

# A shell that starts tests in the background has them ignore Ctrl-C, and nohup SIGHUP; some of them send both.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Compilation can make the first example take seconds; how long a test takes is not what it is about.
settings.register_profile("hogwild", deadline=None)
settings.load_profile("hogwild")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(config, items):
    fitting = {item: entries_for(item.nodeid) for item in items}
    for item, entries in fitting.items():
        if entries:
            item.add_marker(pytest.mark.long)
    everything = config.args in ([], ["tests", "src"]) and not config.getoption("ignore")
    unknown = set(LONG).difference(*fitting.values()) if everything else ()
    if unknown:
        raise pytest.UsageError(f"tests/tiers.py has entries that fit no test: {', '.join(sorted(unknown))}")
    gc.collect()
    gc.freeze()  # what was imported stays: garbage is looked for among what tests make
