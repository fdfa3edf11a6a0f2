"""Workers that are processes around one model: for ``torch.nn.Module``."""
