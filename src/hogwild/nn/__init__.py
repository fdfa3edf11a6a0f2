"""PyTorch components: sparse tables and networks of them, loaders, and CUDA graphs."""
