"""Configuration, and a training run on disk."""
