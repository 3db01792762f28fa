"""Tables, and one HTML page, from runs and sweeps."""
