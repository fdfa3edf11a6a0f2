"""Networks with more parameters than training data, whose many solutions differ in norm, held-out loss and sharpness.

All of them fit a planted function by least squares, so that the distance of a solution to the truth is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from hogwild.problems.module import Module

HELD_OUT = 500  # number of held-out samples


@dataclass(frozen=True, slots=True, eq=False)
class Overparametrised:
    """Network at its start, training and held-out samples (inputs and targets), and the norms of a solution.

    Parameters
    ----------
    net : torch.nn.Module
        The network at its start.
    training, held_out : tuple of tensors
        Inputs and targets.
    norms : callable
        Function of a trained network that returns its norms, and its distance to the planted solution where one is
        known.
    """

    net: nn.Module
    training: tuple[Tensor, Tensor]
    held_out: tuple[Tensor, Tensor]
    norms: Callable[[nn.Module], dict[str, float]]

    def problem(self, batch: int = 1) -> Module:
        """Return the mean loss over the training samples, with ``batch`` of them in an update."""
        return Module(self.net, half_squares, TensorDataset(*self.training), batch=batch)

    def full_batch(self) -> Module:
        """Return the same problem for gradient descent: each of its samples is the complete training set.

        An epoch has as many samples as the training set, so that it has as many updates as an epoch of
        :meth:`problem` with a batch of one.
        """
        inputs, targets = self.training
        copies = len(targets)
        return Module(
            self.net, half_squares,
            TensorDataset(inputs.expand(copies, *inputs.shape), targets.expand(copies, *targets.shape)), batch=1,
        )  # fmt: skip

    @torch.no_grad()
    def losses(self) -> tuple[float, float]:
        """Return the mean loss over the training samples and over the held-out samples, without label noise."""
        training = self.net.training
        self.net.eval()
        train, test = (
            float(half_squares(self.net(inputs), targets)) for inputs, targets in (self.training, self.held_out)
        )
        self.net.train(training)
        return train, test


def half_squares(outputs: Tensor, target: Tensor) -> Tensor:
    """Return half of the mean squared error."""
    return (outputs - target).square().mean() / 2


class LabelNoise(nn.Module):
    """Noise of a label: a fresh plus or minus ``size`` at every use of a sample in training, none in evaluation.

    The noise is added to the output, which for least squares is the same as subtracting it from the label.
    """

    def __init__(self, size: float) -> None:
        super().__init__()
        self.size = size

    def forward(self, outputs: Tensor) -> Tensor:
        """Return the outputs, with noise in training."""
        if not self.training or not self.size:
            return outputs
        signs = 2.0 * torch.randint(0, 2, outputs.shape) - 1.0
        return outputs + self.size * signs


class DiagonalNetwork(nn.Module):
    """Linear function with the weights ``u^2 - v^2``, where u and v start at ``scale`` (Woodworth et al. 2020).

    Gradient flow from a small scale finds the solution of least l1-norm, from a large scale that of least l2-norm.

    >>> DiagonalNetwork(3, scale=0.5)(torch.ones(2, 3))
    tensor([0., 0.], grad_fn=<MvBackward0>)
    """

    def __init__(self, features: int, scale: float, label_noise: float = 0.0) -> None:
        super().__init__()
        self.u, self.v = (nn.Parameter(torch.full((features,), scale)) for _ in range(2))
        self.noise = LabelNoise(label_noise)

    @property
    def weights(self) -> Tensor:
        """The weights of the linear function."""
        return self.u.square() - self.v.square()

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the value of the linear function."""
        outputs: Tensor = self.noise(inputs @ self.weights)
        return outputs


class FactoredMatrix(nn.Module):
    """Linear function of matrices, their inner product with ``U U^T``; U starts at ``scale`` times the identity.

    From a small scale gradient flow finds a solution of small nuclear norm (Gunasekar et al. 2017).
    """

    def __init__(self, side: int, scale: float, label_noise: float = 0.0) -> None:
        super().__init__()
        self.factor = nn.Parameter(scale * torch.eye(side))
        self.noise = LabelNoise(label_noise)

    @property
    def matrix(self) -> Tensor:
        """The matrix of the linear function."""
        return self.factor @ self.factor.T

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the inner product of each input with the matrix."""
        outputs: Tensor = self.noise((inputs * self.matrix).sum((-2, -1)))
        return outputs


class Perceptron(nn.Module):
    """Network of one hidden layer of hyperbolic tangents and one output, drawn at random."""

    def __init__(self, features: int, width: int, random: torch.Generator) -> None:
        super().__init__()
        self.hidden, self.out = nn.Linear(features, width), nn.Linear(width, 1)
        with torch.no_grad():
            for layer in (self.hidden, self.out):
                layer.weight.normal_(0, layer.in_features**-0.5, generator=random)
                layer.bias.zero_()

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the output for each input."""
        outputs: Tensor = self.out(torch.tanh(self.hidden(inputs))).squeeze(-1)
        return outputs


def diagonal(
    seed: int, scale: float, label_noise: float = 0.0, rows: int = 40, features: int = 80, sparsity: int = 5
) -> Overparametrised:
    """Make a diagonal linear network for a planted function of few features, with fewer rows than features."""
    random = torch.Generator().manual_seed(seed)
    inputs = torch.randn(rows + HELD_OUT, features, generator=random)
    truth = torch.zeros(features)
    truth[:sparsity] = torch.randint(0, 2, (sparsity,), generator=random) * 2.0 - 1.0
    targets = inputs @ truth

    def norms(net: nn.Module) -> dict[str, float]:
        assert isinstance(net, DiagonalNetwork)
        found = net.weights.detach()
        return {
            "norm": float(found.abs().sum()), "norm_2": float(found.norm()),
            "distance": float((found - truth).norm() / truth.norm()),
        }  # fmt: skip

    net = DiagonalNetwork(features, scale, label_noise)
    return Overparametrised(net, (inputs[:rows], targets[:rows]), (inputs[rows:], targets[rows:]), norms)


def sensing(
    seed: int, scale: float, label_noise: float = 0.0, rows: int = 30, side: int = 10, rank: int = 1
) -> Overparametrised:
    """Make measurements of a planted positive semidefinite matrix of low rank, fewer than it has free entries."""
    random = torch.Generator().manual_seed(seed)
    factor = torch.randn(side, rank, generator=random)
    truth = factor @ factor.T
    truth = truth / truth.norm()
    inputs = torch.randn(rows + HELD_OUT, side, side, generator=random)
    targets = (inputs * truth).sum((-2, -1))

    def norms(net: nn.Module) -> dict[str, float]:
        assert isinstance(net, FactoredMatrix)
        found = net.matrix.detach()
        return {
            "norm": float(torch.linalg.matrix_norm(found, "nuc")), "norm_2": float(found.norm()),
            "distance": float((found - truth).norm() / truth.norm()),
        }  # fmt: skip

    net = FactoredMatrix(side, scale, label_noise)
    return Overparametrised(net, (inputs[:rows], targets[:rows]), (inputs[rows:], targets[rows:]), norms)


def perceptron(
    seed: int, noise: float = 0.5, rows: int = 60, features: int = 10, width: int = 64, teacher: int = 3
) -> Overparametrised:
    """Make a perceptron with more parameters than rows, whose targets have noise that it can fit.

    The planted function is a narrow perceptron. The noise of a target stays the same over the run.
    """
    random = torch.Generator().manual_seed(seed)
    inputs = torch.randn(rows + HELD_OUT, features, generator=random)
    with torch.no_grad():
        targets = Perceptron(features, teacher, random)(inputs)
        targets = targets / targets.std() + noise * torch.randn(len(targets), generator=random)

    def norms(net: nn.Module) -> dict[str, float]:
        parts = [parameter.detach().flatten() for parameter in net.parameters()]
        return {"norm": float(torch.cat(parts).abs().sum()), "norm_2": float(torch.cat(parts).norm())}

    net = Perceptron(features, width, random)
    return Overparametrised(net, (inputs[:rows], targets[:rows]), (inputs[rows:], targets[rows:]), norms)
