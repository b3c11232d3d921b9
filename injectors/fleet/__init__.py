"""Simulated fleets: many jobs on many machines, one segment of which became slower, or none."""
