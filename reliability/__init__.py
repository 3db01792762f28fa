"""What happens when things go wrong, tried out: `python -m reliability`, or `… kills` for one kind."""
