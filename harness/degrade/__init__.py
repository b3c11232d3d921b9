"""Copies of cases in which less, or worse, was recorded: what ablation and stress ask about.

A degraded copy is a function of the case's public half alone and keeps its id, topology and
configuration. What it leaves untouched is linked, not written again.
"""
