"""``make golden-record NAMES="..."``: write down what runs come to now, all of them or those that are named.

For a change that is meant to change results, and for recipes that are new. Files of models and checkpoints are written
only where there are none: delete those whose format was changed.
"""

from __future__ import annotations

import json
import sys

from comparing import GOLDEN, machine, summary
from recipes import FILES, RECIPES, STEPS, checkpointed, rows

import hogwild


def write_files() -> None:
    FILES.mkdir(exist_ok=True)
    problems = {
        "linear": hogwild.Linear(rows("sign"), "logistic", l2=1e-3),
        "fm": hogwild.FactorisationMachine(rows("sign"), rank=4, seed=3),
    }
    for name, problem in problems.items():
        if not (FILES / f"{name}.model").exists():
            hogwild.minimise(problem, "adagrad", hogwild.Constant(STEPS["adagrad"]), "serial", budget=3).save(
                FILES / f"{name}.model"
            )
    for rule in ("adagrad", "adam"):
        if not (FILES / f"{rule}.checkpoint").exists():
            checkpointed(rule, FILES / f"{rule}.checkpoint", 3)


def main(names: list[str]) -> None:
    write_files()
    known = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {"results": {}}
    if known.get("machine") != machine():
        names = []  # digits of two machines do not go together
    found = {name: known["results"].get(name) for name in RECIPES}
    for name in names or RECIPES:
        found[name] = {key: summary(array) for key, array in sorted(RECIPES[name]().items())}
    GOLDEN.write_text(json.dumps({"machine": machine(), "results": found}, indent=1) + "\n")


if __name__ == "__main__":
    main(list(filter(None, " ".join(sys.argv[1:]).split(","))))
