"""Checks of the machine, the installation and a cluster, for ``hogwild doctor``."""
