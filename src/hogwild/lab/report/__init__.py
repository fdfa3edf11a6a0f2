"""Output of a report: one self-contained page, and pictures for papers."""

from __future__ import annotations

from hogwild.lab.report.matplotlib_export import save_figures
from hogwild.lab.report.page import render, write_report

__all__ = ["render", "save_figures", "write_report"]
