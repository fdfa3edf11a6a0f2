"""Problems with many solutions, the choice of the step, and what is said about regularisation."""

import pytest

torch = pytest.importorskip("torch", reason="pip install 'hogwild[torch]'")

from hogwild.lab.experiment import Results  # noqa: E402
from hogwild.lab.experiments import regularisation  # noqa: E402
from hogwild.lab.experiments.regularisation import BEST, LARGEST, METHODS, NOISY, REFERENCE, SGD, Tuned  # noqa: E402
from hogwild.lab.overparametrised_networks import LabelNoise, diagonal, half_squares, perceptron, sensing  # noqa: E402


def test_label_noise_is_fresh_in_training_and_absent_in_evaluation():
    noise = LabelNoise(2.0)
    outputs = torch.zeros(50)
    first, second = noise(outputs), noise(outputs)
    assert set(first.tolist()) == {-2.0, 2.0}
    assert (first != second).any()
    assert torch.equal(noise.eval()(outputs), outputs)


@pytest.mark.parametrize("make", [lambda: diagonal(0, 0.1), lambda: sensing(0, 0.3), lambda: perceptron(0)])
def test_a_sample_of_the_full_batch_has_the_gradient_of_all_rows(make):
    made = make()
    inputs, targets = made.training
    every = torch.autograd.grad(half_squares(made.net(inputs), targets), list(made.net.parameters()))
    problem = made.full_batch()
    (batch,) = problem.feed().batches([torch.tensor([3]).numpy()])
    whole = torch.autograd.grad(problem.loss(batch)[0], list(made.net.parameters()))
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(every, whole, strict=True))
    assert len(problem) == len(made.problem()) == len(targets)


def test_the_planted_solution_has_no_loss_and_no_distance():
    made = diagonal(0, 0.1)
    with torch.no_grad():
        truth = torch.linalg.lstsq(made.held_out[0], made.held_out[1]).solution
        made.net.u.copy_(truth.clamp(min=0).sqrt())
        made.net.v.copy_((-truth).clamp(min=0).sqrt())
    assert max(made.losses()) < 1e-8
    assert made.norms(made.net)["distance"] < 1e-4
    assert made.norms(made.net)["norm"] == pytest.approx(5.0, abs=1e-3)


def test_gradient_descent_from_a_small_start_finds_a_sparser_solution_than_from_a_large_one():
    """Woodworth et al. 2020; a problem with one solution nearest to the start could not tell."""

    def norm(scale):
        made = diagonal(0, scale)
        descent = torch.optim.SGD(made.net.parameters(), lr=0.05)
        for _ in range(600):
            descent.zero_grad()
            half_squares(made.net(made.training[0]), made.training[1]).backward()
            descent.step()
        assert made.losses()[0] < 0.01
        return made.norms(made.net)["norm"]

    assert norm(0.03) < 0.8 * norm(0.5)


def test_a_trial_describes_the_solution():
    point = {"problem": NOISY, "method": "averaged asynchronous SGD", "step": 0.01, "updates": 80}
    figures = regularisation.trial(point, 1)
    assert figures["staleness"] > 1
    assert {"norm", "norm_2", "distance", "test_loss", "trace", *regularisation.SHARPNESS} <= set(figures)
    again = regularisation.trial(point, 1)
    assert figures == again


def test_a_run_that_diverges_is_no_failure_of_the_study():
    point = {"problem": NOISY, "method": SGD, "step": 50.0, "updates": 80}
    assert regularisation.trial(point, 0) == {"diverged": 1.0, "fitted": 0.0}


def record(method, step, seed, loss, fitted=True, **more):
    found = {"problem": NOISY, "method": method, "step": step, "seed": seed, "diverged": 0.0, "fitted": float(fitted)}
    value = 1.0 + 0.01 * seed + 0.1 * list(METHODS).index(method)
    figures = dict.fromkeys((*regularisation.SHARPNESS, "test_loss", "norm", "distance", "trace"), value)
    return {**found, **figures, "train_loss": loss, **more}


def diverged(method, step, seed):
    return {"problem": NOISY, "method": method, "step": step, "seed": seed, "diverged": 1.0, "fitted": 0.0}


def test_the_step_is_the_largest_with_which_every_seed_fits():
    results = Results((
        diverged(SGD, 0.4, 0), record(SGD, 0.4, 1, 0.1),  # it must not diverge with any seed
        record(SGD, 0.2, 0, 0.1), record(SGD, 0.2, 1, 0.9, fitted=False),  # nor fail to fit
        record(SGD, 0.1, 0, 0.3), record(SGD, 0.1, 1, 0.3),
        record(SGD, 0.05, 0, 0.2), record(SGD, 0.05, 1, 0.2),
        record("Adam", 0.1, 0, 0.8, fitted=False), record("Adam", 0.05, 0, 0.9, fitted=False),
        diverged("AdaGrad", 0.1, 0),
    ))  # fmt: skip
    assert Tuned(results, LARGEST).step(NOISY, SGD) == 0.1
    assert Tuned(results, BEST).step(NOISY, SGD) == 0.05
    assert Tuned(results, LARGEST).step(NOISY, "Adam") == 0.1
    assert Tuned(results, LARGEST).step(NOISY, "AdaGrad") is None


@pytest.mark.parametrize(("shift", "holds"), [(-2.0, True), (0.0, None), (2.0, False)])
def test_a_claim_holds_only_if_its_difference_is_seen(shift, holds):
    results = Results(tuple(
        record(method, 0.1, seed, 0.1, norm=9.0 + 0.1 * (seed * 7 % 3) * (method == SGD) + shift * (method == SGD),
               test_loss=1.0 + 0.1 * (seed * 5 % 4) * (method != REFERENCE))
        for method in METHODS for seed in range(4)
    ))  # fmt: skip
    findings, parts = regularisation.read(results)
    claim = next(finding for finding in findings if "HaoChen" in finding.text)
    assert claim.holds is holds
    assert "probability of 80%" in claim.text
    assert any("With the step of each" in finding.text for finding in findings)
    assert any("above 0.75 (7 methods)" in finding.text for finding in findings)
    tables = {part.title: part for part in parts if part.title.startswith("Differences")}
    assert len(tables) == 2
    assert all(len(row) == len(table.columns) for table in tables.values() for row in table.rows)


def texts(records):
    return [finding.text for finding in regularisation.read(Results(tuple(records)))[0]]


def test_a_step_with_a_failed_trial_is_not_one_that_every_seed_fits():
    records = (record(SGD, 0.2, 0, 0.1), record(SGD, 0.1, 0, 0.3), record(SGD, 0.1, 1, 0.3))
    assert Tuned(Results(records), LARGEST).step(NOISY, SGD) == 0.1


def test_methods_that_diverge_are_named_and_nothing_else_is_said_of_them():
    everything = [diverged(method, 0.1, seed) for method in METHODS for seed in range(3)]
    (only,) = texts(everything)
    assert only.startswith(f"{NOISY}: with every step of the grid some seed diverged or failed")
    assert only.endswith(f"there is no solution, for {', '.join(METHODS)}.")
    lost = regularisation.ASYNCHRONOUS
    some = [(diverged(method, 0.1, seed) if method == lost else record(method, 0.1, seed, 0.1))
            for method in METHODS for seed in range(3)]  # fmt: skip
    told = texts(some)
    assert any(text.endswith(f"there is no solution, for {lost}.") for text in told)
    assert not any("less that of SGD" in text for text in told)
    but_one = [(record(method, 0.1, seed, 0.1) if method == REFERENCE else diverged(method, 0.1, seed))
               for method in METHODS for seed in range(3)]  # fmt: skip
    assert "differ" not in texts(but_one)[0]


def test_one_seed_and_missing_sharpness_give_no_numbers_that_are_none():
    one = [record(method, 0.1, 0, 0.1) for method in METHODS]
    findings, _ = regularisation.read(Results(tuple(one)))
    assert all(finding.holds is None for finding in findings)
    blunt = [{name: value for name, value in each.items() if name not in regularisation.SHARPNESS} for each in one]
    for told in (texts(one), texts(blunt)):
        assert not any(word in " ".join(told) for word in ("nan", "unknown", "80%"))
        assert any("With one seed, no difference can be told from chance" in text for text in told)
