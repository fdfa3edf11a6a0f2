"""Trained ``torch.nn.Module``, and the file of its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hogwild.errors import ModelError
from hogwild.files import clear_leftovers, write_file

# Key of the training record in the file's metadata.
RECORD = "hogwild"


@dataclass(frozen=True, slots=True, eq=False)
class ModuleModel:
    """Trained network, with its best or last parameters.

    >>> model = ModuleModel(nn.Linear(2, 1))
    >>> model.predict(torch.zeros(3, 2)).shape
    torch.Size([3, 1])
    """

    net: nn.Module
    training: Mapping[str, Any] = field(default_factory=dict, repr=False)  # Record of the training run.

    @torch.no_grad()
    def predict(self, *inputs: object) -> Any:
        """Return the network's outputs for a batch, in evaluation mode."""
        before = self.net.training
        self.net.eval()
        try:
            return self.net(*inputs)
        finally:
            self.net.train(before)

    def save(self, path: str | Path) -> None:
        """Write the weights as safetensors, which ``load_weights`` or ``safetensors.torch.load_model`` read."""
        from safetensors.torch import save

        clear_leftovers(path)
        write_file(path, save(_each_once(self.net), {RECORD: json.dumps(dict(self.training)), "format": "pt"}))


def load_weights(net: nn.Module, path: str | Path) -> None:
    """Load the weights of a file into a network, whose layers must be those of the saved network.

    Parameters
    ----------
    net : torch.nn.Module
        Network that receives the weights.
    path : str or Path
        Safetensors file that ``ModuleModel.save`` has written.

    Raises
    ------
    ModelError
        If there is no such file, if the file is damaged, or if its weights do not fit the network.

    Examples
    --------
    >>> import tempfile
    >>> one, other = nn.Linear(2, 1), nn.Linear(2, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ModuleModel(one).save(Path(folder, "w.safetensors"))
    ...     load_weights(other, Path(folder, "w.safetensors"))
    >>> bool((one.weight == other.weight).all())
    True
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_model

    try:
        load_model(net, path)
    except FileNotFoundError:
        raise ModelError(f"{path}: there is no such file.") from None
    except (OSError, SafetensorError, RuntimeError, ValueError, KeyError) as reason:
        raise ModelError(
            f"{path}: these are not the weights of this model, or the file is damaged ({reason})."
        ) from None


def _each_once(net: nn.Module) -> dict[str, Tensor]:
    """Return the state of a network; a tensor with several names appears only under the first."""
    seen: set[tuple[int, tuple[int, ...]]] = set()
    memories: set[int] = set()
    kept = {}
    for name, tensor in net.state_dict().items():
        key = (tensor.data_ptr(), tuple(tensor.shape))
        if tensor.numel() == 0 or key not in seen:
            seen.add(key)
            memory = tensor.untyped_storage().data_ptr()
            kept[name] = tensor.contiguous().clone() if memory in memories else tensor.contiguous()
            memories.add(memory)
    return kept
