"""Stochastic gradient descent with many workers that do not wait for each other."""
