"""Running, isolating, judging, tracking and gating diagnosers; the command line."""
