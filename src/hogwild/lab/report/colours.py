"""Colours for light paper and for dark, which people with any kind of colour vision can tell apart.

Those of curves are by Okabe and Ito; blue and vermillion come first, as they differ most from the paper.
"""

from __future__ import annotations

LIGHT_SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
DARK_SERIES = ("#1f8acb", *LIGHT_SERIES[1:-1], "#f2f2f2")  # on dark paper blue is lighter, and black is white

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

# From dark blue to yellow: its lightness grows evenly, so it reads the same without colour.
SCALE = "Cividis"


def style_sheet() -> str:
    """The colours as CSS variables: dark where the reader prefers it or asked for it, and never on paper.

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
