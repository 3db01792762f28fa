"""Helpers that are not specific to reinforcement learning: files, processes, statistics, media."""
