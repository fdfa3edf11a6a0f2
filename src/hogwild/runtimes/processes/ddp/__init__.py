"""Synchronous data-parallel training of a module, on ``torch.distributed``."""
