"""What runs where a diagnoser runs: the standard library and `cases`, nothing else.

A small process (the zygote) imports the diagnoser once and forks a process per case. It is
told which case to hand over and tells what came back; it never sees a label.
"""
