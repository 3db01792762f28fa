"""How fast things are, as ratios inside one run: `make bench`, or `python -m benchmarks worlds` for one group."""
