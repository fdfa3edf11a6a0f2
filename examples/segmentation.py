"""
Cut a picture into what is in it
================================

A pixel is a node of a graph, and neighbours that look alike hold together. The script draws three discs on a noisy
ground, marks a few pixels of each, cuts the graph of all pixels into four parts, and says how many are right.

.. code-block:: console

   $ python examples/segmentation.py [ROWS] [PICTURE.png] [--draw]

PICTURE.png shows the marks, the parts by colour alone, and the parts of the cut. So does ``--draw``, on the screen.
"""

from __future__ import annotations

import struct
import sys
import zlib
from pathlib import Path

import numpy as np

from hogwild import GraphCut, minimise
from hogwild.data.graphs import grid

DISCS = ((0.3, 0.3, 0.17), (0.65, 0.35, 0.2), (0.55, 0.75, 0.15))  # row, column and radius, of the picture's size
COLOURS = np.array([[0.25, 0.25, 0.3], [0.75, 0.35, 0.25], [0.3, 0.6, 0.45], [0.85, 0.75, 0.4]])


def drawn(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A picture with noise, and what is in it."""
    row, column = np.mgrid[:rows, :rows] / rows
    truth = np.zeros((rows, rows), int)
    for part, (y, x, radius) in enumerate(DISCS, 1):
        truth[(row - y) ** 2 + (column - x) ** 2 < radius**2] = part
    noise = np.random.default_rng(0).normal(0, 0.12, (rows, rows, 3))
    return np.clip(COLOURS[truth] + noise, 0, 1), truth


def marked(truth: np.ndarray, each: int = 12) -> dict[int, int]:
    """A few pixels of each part, as somebody would mark them with a pen."""
    random = np.random.default_rng(1)
    return {
        int(pixel): part
        for part in range(truth.max() + 1)
        for pixel in random.choice(np.flatnonzero(truth.ravel() == part), each, replace=False)
    }


def main(rows: int = 120, picture: Path | None = None, draw: bool = False) -> float:
    """Cut it; return the share of pixels that are right."""
    image, truth = drawn(rows)
    seeds = marked(truth)
    # How unlike the mean colour of each part's marks a pixel is: what it costs to have it in that part.
    colours = np.array([image.reshape(-1, 3)[[p for p in seeds if seeds[p] == part]].mean(axis=0) for part in range(4)])
    costs = np.square(image.reshape(-1, 1, 3) - colours).sum(axis=2) / 0.12**2 / 6
    run = minimise(GraphCut(grid(image), seeds, costs), budget=60)
    found = run.model.parts.reshape(rows, rows)
    right, alone = (float(np.mean(parts == truth)) for parts in (found, costs.argmin(axis=1).reshape(rows, rows)))
    print(f"{right:.1%} of the pixels are right, {alone:.1%} by their colour alone, in {run.seconds:.1f} s")
    with_marks, pixels = image.copy(), list(seeds)
    with_marks.reshape(-1, 3)[pixels] = 1.0
    panels = [with_marks, COLOURS[costs.argmin(axis=1).reshape(rows, rows)], COLOURS[found]]
    if picture is not None:
        write(panels, picture)
    if draw:
        show(panels)
    return right


def show(panels: list[np.ndarray]) -> None:
    """Draw pictures side by side, on the screen."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
    for each, panel, title in zip(axes, panels, ("with marks", "by colour alone", "by the cut"), strict=True):
        each.imshow(panel)
        each.set(title=title, xticks=[], yticks=[])
    plt.show()


def write(panels: list[np.ndarray], path: Path, enlarged: int = 3) -> None:
    """Write pictures side by side, as a PNG file."""
    gap = np.ones((len(panels[0]), 4, 3))
    row = np.concatenate([part for panel in panels for part in (gap, panel)][1:], axis=1)
    pixels = np.round(255 * row.repeat(enlarged, axis=0).repeat(enlarged, axis=1)).astype(np.uint8)
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)  # each line says that it is not filtered

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 2, 0, 0, 0)
    chunks = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunks)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--draw"]
    file = Path(words[1]) if len(words) > 1 else None
    main(int(words[0]) if words else 120, file, draw="--draw" in sys.argv)
