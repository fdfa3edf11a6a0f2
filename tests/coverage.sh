#!/bin/sh
# Which lines the tests of every change run. Lines of kernels are left out: what is compiled cannot be traced. Functions
# elsewhere that are compiled too (parsers, losses, rules) are traced in a second run, in which they stay Python: some
# of its tests fail, because there is nothing that was compiled, and only their traces count.
set -eu
bin=.venv/bin
rm -f .coverage .coverage.*
"$bin/coverage" run -m pytest -q -p no:cacheprovider -m "not long" "$@" || echo "some tests failed: see above"
NUMBA_DISABLE_JIT=1 "$bin/coverage" run -m pytest -q -p no:cacheprovider --no-header --tb=no -m "not long" \
    tests/test_losses.py tests/test_rules.py tests/test_schedules.py tests/data tests/test_files.py >/dev/null 2>&1 || true
"$bin/coverage" combine -q
"$bin/coverage" report --skip-covered --sort=cover
