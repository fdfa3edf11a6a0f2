"""Synchronous data-parallel training of a ``torch.nn.Module``, on ``torch.distributed``."""
