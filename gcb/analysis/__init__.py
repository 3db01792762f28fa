"""Measure what an agent's representation has learned: neighbours, maps, values and analogy arithmetic."""
