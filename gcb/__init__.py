"""Goal-conditioned bisimulation: tell an offline agent what to do by example."""

__version__ = "0.1.0"
