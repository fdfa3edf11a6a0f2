"""Generated data with a known optimum: any number of rows, deterministic by seed, in bounded memory.

>>> made = classification(1_000, 50, nonzeros=5, noise=0.0, seed=1)
>>> len(made.rows), made.rows.features, made.weights.shape
(1000, 50, (50,))
>>> sum(len(rows) for rows in pieces("rcv1", rows=10_000))
10000

"""

from hogwild.data.generate.catalogue import KINDS, classification, interactions, kind, multiclass, pieces, regression
from hogwild.data.generate.factorisation_machine import Interactions
from hogwild.data.generate.linear_model import Generated
from hogwild.data.generate.write import write

__all__ = [
    "KINDS", "Generated", "Interactions", "classification", "interactions", "kind", "multiclass", "pieces",
    "regression", "write",
]  # fmt: skip
