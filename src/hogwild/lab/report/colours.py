"""Colours for light and dark backgrounds, distinguishable with any kind of colour vision.

The colours of curves are by Okabe and Ito. Blue and vermillion come first, because they contrast most with the paper.
"""

from __future__ import annotations

LIGHT_SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
# Dark backgrounds have a lighter blue, and white instead of black.
DARK_SERIES = ("#1f8acb", *LIGHT_SERIES[1:-1], "#f2f2f2")

LIGHT = {
    "paper": "#ffffff",
    "surface": "#f5f7f9",
    "ink": "#1a1f24",
    "muted": "#545d68",
    "line": "#d5dbe1",
    "grid": "#e6eaee",
    "accent": "#0b5c9e",
    "holds": "#00634a",
    "fails": "#a33a00",
    **{f"series-{index}": colour for index, colour in enumerate(LIGHT_SERIES)},
}
DARK = {
    "paper": "#12161b",
    "surface": "#1a2027",
    "ink": "#e8ecf0",
    "muted": "#a5b0bb",
    "line": "#3a444f",
    "grid": "#29313a",
    "accent": "#7fc1ff",
    "holds": "#4fd0a5",
    "fails": "#ff9d66",
    **{f"series-{index}": colour for index, colour in enumerate(DARK_SERIES)},
}

# Scale from dark blue to yellow. Its lightness increases evenly, so that it reads the same without colour.
SCALE = "Cividis"


def style_sheet() -> str:
    """Return the colours as CSS variables: dark if the reader prefers or chooses dark, and never dark in print.

    >>> style_sheet().splitlines()[0]
    ':root, .always-light { --paper: #ffffff; ...; }'
    """
    light = "; ".join(f"--{name}: {colour}" for name, colour in LIGHT.items())
    dark = "; ".join(f"--{name}: {colour}" for name, colour in DARK.items())
    rules = (
        f":root, .always-light {{ {light}; }}",
        ":root { color-scheme: light; }",
        "@media screen and (prefers-color-scheme: dark) {",
        f"  :root:not([data-theme=light]) {{ {dark}; color-scheme: dark; }}",
        "}",
        "@media screen {",
        f"  :root[data-theme=dark] {{ {dark}; color-scheme: dark; }}",
        "}",
    )
    return "\n".join(rules)
