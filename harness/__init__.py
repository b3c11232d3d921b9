"""Running, isolating, judging, tracking and gating diagnosers; the command line.

Start at `harness.cli`. Labels reach this package through `harness.judge` alone.
"""
