"""Trained models: scores, predictions and files."""
