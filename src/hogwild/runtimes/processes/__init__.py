"""``Processes`` runtime: worker processes that train one ``torch.nn.Module`` in shared memory."""
