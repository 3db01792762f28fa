"""Success rates in an environment, and action-prediction error on held-out data."""
