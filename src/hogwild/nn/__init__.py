"""PyTorch parts: sparse tables and networks of them, loaders, CUDA graphs."""
