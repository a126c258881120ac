"""Stops a job's streaming queries between two batches; ``StopControl`` is its face."""
