"""Fitted models: scores, predictions and files."""
