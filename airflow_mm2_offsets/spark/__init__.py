"""Spark's side: offsets as text, checkpoint files, and the stopping of a running job."""
