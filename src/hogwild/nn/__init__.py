"""PyTorch components: sparse tables and networks of them, loaders, CUDA graphs, and parts for large minibatches."""

from __future__ import annotations

from hogwild.nn.large_minibatch import SGDW, zero_last_gammas

__all__ = ["SGDW", "zero_last_gammas"]
