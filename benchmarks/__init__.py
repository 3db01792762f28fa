"""Benchmarks of speed, as ratios within one run: `make bench`, or `python -m benchmarks envs` for one group."""
