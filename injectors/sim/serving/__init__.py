"""Simulated inference servers: engines with continuous batching behind a router."""
