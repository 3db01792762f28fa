"""Helpers that know nothing of reinforcement learning: files, processes, statistics, media."""
