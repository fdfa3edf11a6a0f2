"""The parameter ``device`` of estimators: a GPU, or the processor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sklearn.utils._param_validation import StrOptions

from hogwild.errors import ParameterError
from hogwild.registry import invalid_parameter

if TYPE_CHECKING:
    from hogwild.runtimes.runtime import Runtime

DEVICES = StrOptions({"cpu", "cuda", "auto"})
WORTH_A_GPU = 2**24  # non-zeros of the training data times outputs, from which on "auto" takes a GPU


def with_device(params: Mapping[str, Any], work: int) -> Mapping[str, Any]:
    """Return the parameters with the device of a fit: "cpu" or "cuda".

    ``work`` is the number of non-zeros of the data times the number of outputs.

    >>> with_device({"device": "auto", "strategy": None, "identical_to_sklearn": False}, 1000)["device"]
    'cpu'
    """
    exact = params["identical_to_sklearn"]
    if exact and params["device"] == "cuda":
        raise ParameterError("identical_to_sklearn is for one worker on the processor: leave it out, or device='cuda'.")
    return {**params, "device": device_of(params["device"], work, chosen=params["strategy"] is not None or exact)}


def device_of(device: str, work: int, *, chosen: bool) -> str:
    """Return "cpu" or "cuda"; ``chosen`` tells that other parameters ask for the processor, if the device is "auto".

    >>> device_of("auto", 1000, chosen=False), device_of("cuda", 1000, chosen=False)
    ('cpu', 'cuda')
    """
    if device not in DEVICES.options:
        raise invalid_parameter("device", "'cpu', 'cuda' or 'auto'", device)
    if device != "auto":
        return device
    return "cuda" if work >= WORTH_A_GPU and not chosen and _has_gpu() else "cpu"


def runtime_of(device: str) -> Runtime | None:
    """Return the runtime of a device; None: the usual one of the processor."""
    if device != "cuda":
        return None
    from hogwild.runtimes.cuda import Cuda

    return Cuda()


def _has_gpu() -> bool:
    from hogwild.kernels.cuda_device import DeviceError, check_device

    try:
        check_device()
    except DeviceError:
        return False
    return True
