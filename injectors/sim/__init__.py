"""The simulated backend: jobs of many GPUs, broken at the mechanism, without a GPU."""
