#!/bin/sh
# Which lines the tests of every change run. Lines of kernels are left out: what is compiled cannot be traced. Functions
# elsewhere that are compiled too (parsers, losses, rules) count as lines that are not run. Of processes that tests kill
# nothing is known either, and coverage warns of the files that they left unfinished.
set -eu
bin=.venv/bin
rm -f .coverage .coverage.*
"$bin/coverage" run -m pytest -q -p no:cacheprovider -m "not long" "$@" || echo "some tests failed: see above"
"$bin/coverage" combine -q
"$bin/coverage" report --skip-covered --sort=cover
