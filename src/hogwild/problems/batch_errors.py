"""Checks of what the user's loss and metrics return, and notes on errors of a network with the shapes of its batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from torch import Tensor, is_grad_enabled

from hogwild.errors import HogwildError, ParameterError


def checked_loss(loss: object) -> Tensor:
    """Return the loss of a batch; raise ParameterError unless it is a tensor of one number."""
    if isinstance(loss, Tensor) and loss.dim() == 0 and not loss.is_complex():
        return loss
    raise ParameterError(
        "The loss function must return the mean loss of a batch, a tensor of one number, such as losses of PyTorch do "
        f"with reduction='mean'. Got {_described(loss)}."
    )


def with_gradient(loss: Tensor) -> Tensor:
    """Return the loss of a batch; raise ParameterError if gradients are wanted and it has none."""
    if loss.requires_grad or not is_grad_enabled():
        return loss
    raise ParameterError(
        "The loss of a batch depends on no parameter that trains, so that it has no gradient: the network or the loss "
        "function detaches its outputs, computes under torch.no_grad(), or returns whole numbers."
    )


def figure(name: str, value: Any) -> float:
    """Return a figure of a batch as a number; raise ParameterError if it is none.

    >>> figure("f1", Tensor([0.5]))
    0.5
    """
    if value.numel() == 1 if isinstance(value, Tensor) else np.ndim(value) == 0:
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
    raise ParameterError(f"The metric {name!r} must return one number, the mean over a batch. Got {_described(value)}.")


@contextmanager
def noting(what: str, **parts: object) -> Iterator[None]:
    """Add a note to errors of the block: what was computed, and of tensors of which shapes and types.

    >>> with noting("the network Linear", inputs=Tensor([[1.0]])):
    ...     raise ValueError("wrong")
    Traceback (most recent call last):
    ValueError: wrong
    This happened in the network Linear, on a batch with inputs of shape (1, 1), float32.
    """
    try:
        yield
    except HogwildError:
        raise
    except Exception as error:
        on = " and ".join(f"{name} of {_shapes(value)}" for name, value in parts.items())
        error.add_note(f"This happened in {what}, on a batch with {on}.")
        raise


def _shapes(value: object) -> str:
    """Return the shapes and types of the tensors in a batch.

    >>> _shapes((Tensor([[1.0]]), Tensor([2.0]).long()))
    'shape (1, 1), float32 and shape (1,), int64'
    """
    if isinstance(value, Tensor):
        return f"shape {tuple(value.shape)}, {str(value.dtype).removeprefix('torch.')}"
    parts = list(value.values()) if isinstance(value, dict) else value
    if isinstance(parts, (tuple, list)) and parts:
        return " and ".join(_shapes(part) for part in parts)
    return f"type {type(value).__name__}"


def _described(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}" + (", of complex numbers" if value.is_complex() else "")
    return f"the {type(value).__name__} {value!r}"
