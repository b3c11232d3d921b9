"""Signal tables of simulated servers."""
