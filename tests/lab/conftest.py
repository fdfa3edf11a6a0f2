"""A made-up report that has everything a page can show, and what could break one."""

import math

import pytest

from hogwild.lab.report_model import Chart, Finding, Map, Report, Section, Series, Table

NASTY = "</script><script>alert('no')</script> & \"quotes\" <b>bold</b> $x$ %{y} \u2028 \x07"
LONG = "a-very-long-name-without-any-place-to-break-" * 6


def falling(start: float, rate: float, epochs: int = 60) -> list[float]:
    return [start * math.exp(-rate * epoch) + 0.012 for epoch in range(epochs)]


def staleness() -> Section:
    workers = [1, 2, 4, 8, 16, 32]
    epochs = list(range(60))
    curves = [("no delay", 0.16), ("mean delay 4", 0.11), ("mean delay 16", 0.07), ("mean delay 64", 0.035)]
    losses = Chart(
        "Loss over epochs, by mean delay",
        "epoch",
        "training loss",
        (
            *(
                Series(name, epochs, falling(0.9, rate), [0.18 * y for y in falling(0.9, rate)])
                for name, rate in curves
            ),
            Series("what theory predicts for 64", epochs, falling(1.1, 0.042), style="dashed"),
        ),
        words="All curves fall; the longer the delay, the slower. With delay 64 it takes four times as many epochs.",
        log_y=True,
    )
    speed = Chart(
        "Updates a second, by workers",
        "workers",
        "million updates a second",
        (
            Series("Hogwild!", workers, [1.9, 3.7, 7.1, 13.2, 22.4, 31.0], [0.1, 0.2, 0.3, 0.9, 1.8, 3.5]),
            Series("locked", workers, [1.6, 1.9, 1.7, 1.3, 0.9, None], [0.1, 0.1, 0.1, 0.1, 0.1, 0.0]),
            Series("in turns", workers, [1.5, 2.2, 2.6, 2.8, 2.9, 2.9]),
            Series("perfect", workers, [1.9 * count for count in workers], style="dashed"),
        ),
        words="Hogwild! follows the perfect line up to eight workers; locks make more workers slower.",
        log_x=True,
        log_y=True,
    )
    ends = Chart(
        "Accuracy at the end, by rule",
        "rule",
        "held-out accuracy",
        (
            Series(
                "1 worker", ["SGD", "Momentum", "AdaGrad", "Adam"], [0.912, 0.921, 0.934, 0.931], [0.004] * 4, "bars"
            ),
            Series(
                "8 workers", ["SGD", "Momentum", "AdaGrad", "Adam"], [0.911, 0.874, 0.933, 0.918], [0.006] * 4, "bars"
            ),
            Series(
                "32 workers", ["SGD", "Momentum", "AdaGrad", "Adam"], [0.905, 0.741, 0.931, 0.882], [0.011] * 4, "bars"
            ),
        ),
        words="Momentum suffers most from many workers, AdaGrad hardly at all.",
    )
    table = Table(
        "Every config that was tried",
        ("rule", "workers", "step", "seconds", "loss", "diverged", "a rather wordy remark"),
        tuple(
            (
                rule,
                count,
                step,
                12.3456 / count,
                0.1 + step * count / 100,
                step * count > 5,
                "as expected" if count < 9 else "slower than with fewer workers, which was to be expected",
            )
            for rule in ("SGD", "AdaGrad", "Adam")
            for count in workers
            for step in (0.3, 0.0000123, 0.1)
        ),
    )
    return Section(
        "staleness",
        "What stale gradients cost",
        "How much later is a loss reached when gradients are computed from parameters that are some updates old?",
        (
            Finding(
                "With a mean delay of 16 updates, a loss of 0.05 takes 2.1 times as many epochs (1.9 to 2.3).", True
            ),
            Finding("The slowdown is proportional to the delay, as the theorem says for smooth problems.", False),
            Finding("Eight workers make 6.9 times as many updates a second as one."),
        ),
        (losses, speed, ends, table),
        tuple(
            {"delay": delay, "seed": seed, "epoch": epoch, "loss": y, "diverged": False}
            for delay, rate in ((0, 0.16), (4, 0.11), (16, 0.07))
            for seed in range(3)
            for epoch, y in enumerate(falling(0.9 + seed / 50, rate))
        ),
        method="Rows of a made-up data set are visited in the same order.\n\nDelays are drawn anew for each update.",
        settings={"rows": 100_000, "features": 10_000, "step": 0.1, "seeds": [0, 1, 2], "rule": "SGD"},
    )


def landscape() -> Section:
    side = [-2 + index * 0.1 for index in range(41)]
    path = [(-1.8 + 0.09 * at, 1.7 * math.cos(at / 7) * math.exp(-at / 12)) for at in range(32)]
    loss = Map(
        "The valley and the way through it",
        "first weight",
        "second weight",
        side,
        side,
        [[(x - 1) ** 2 + 8 * (y - 0.2 * x * x) ** 2 + 0.01 for x in side] for y in side],
        "loss",
        words="The path swings from side to side and then follows the floor of a bent valley.",
        log=True,
        contours=True,
        path=([x for x, _ in path], [y for _, y in path]),
    )
    grid = Map(
        "Epochs until the target, by workers and step",
        "workers",
        "step",
        [1, 2, 4, 8, 16],
        ["0.001", "0.01", "0.1", "1"],
        [[90, 91, 93, 99, 120], [31, 31, 33, 40, 66], [12, 13, 17, 29, None], [9, 22, None, None, None]],
        "epochs",
        words="The more workers, the smaller the largest step that still works.",
    )
    cloud = Chart(
        "Loss against the largest delay that was seen",
        "largest delay",
        "loss",
        (
            Series("sparse rows", [1, 5, 9, 20, 44, 90], [0.1, 0.11, 0.1, 0.12, 0.13, 0.15], [0.01] * 6, "points"),
            Series("dense rows", [2, 6, 11, 25, 50, 80], [0.1, 0.14, 0.19, 0.3, math.nan, 0.6], [0.02] * 6, "points"),
        ),
    )
    return Section(
        "landscape",
        "Where the way leads",
        "Does asynchrony change the minimum that is found, or only the way there?",
        (Finding("Both ways end in the same valley, 0.03 apart.", True), Finding("The straighter way is the shorter.")),
        (loss, grid, cloud),
        ({"run": "one", "loss": 0.5, "note": None}, {"run": "two", "loss": math.nan, "extra": math.inf}),
    )


def nasty() -> Section:
    names = [NASTY, LONG, "", "π ≈ 3, 数据 🚀", *(f"curve {index}" for index in range(9))]
    return Section(
        NASTY,
        f"Odd names: {NASTY}",
        f"Is {NASTY} shown as it is?",
        (Finding(NASTY, True), Finding(LONG, False)),
        (
            Chart(
                NASTY,
                NASTY,
                LONG,
                tuple(Series(name, [1, 2, 3], [index, None, index + 1.5]) for index, name in enumerate(names)),
                words=NASTY,
            ),
            Chart("Names along an axis", "name", "value", (Series(LONG, names, [1.0] * len(names), style="bars"),)),
            Chart("Nothing at all", "x", "y", (Series("empty", [], []),), log_y=True),
            Map(NASTY, "x", "y", [0, 1], [NASTY, LONG], [[1, None], [math.nan, 0]], NASTY, log=True),
            Table(NASTY, (NASTY, LONG), ((NASTY, LONG), (None, math.nan), ([1, 2], {"a": 1}))),
        ),
        (
            {"name": NASTY, "mixed": 1, "big": 2**70, "list": [1, "x"]},
            {"name": LONG, "mixed": "two", NASTY: -math.inf},
            {"name": '=1+1\r\n,"', "mixed": None, "flag": True},
        ),
        method=NASTY,
        settings={NASTY: NASTY, "none": None},
    )


@pytest.fixture(scope="session")
def report() -> Report:
    return Report(
        "What asynchrony does to learning",
        (staleness(), landscape(), nasty(), Section("bare", "Nothing yet", "What if there is nothing?", (), (), ())),
        "17 March 2031, 14:05",
        {
            "processor": "Imaginary 9000, 16 cores",
            "memory": "64.0 GiB",
            "system": "Linux 9.1, x86_64",
            "caches": "32 KiB, 1.0 MiB",
        },
        {"hogwild": "0.1.0", "Python": "3.11.7", "NumPy": "2.4.6", "Numba": "0.68.1", "PyTorch": "2.13.0"},
    )
