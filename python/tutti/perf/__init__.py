"""Measures the bus bandwidth of collectives from Python: `python -m tutti.perf --help`."""
