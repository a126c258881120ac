"""Moves Spark streaming jobs between Kafka clusters kept by MirrorMaker 2.

Importing this package or its ``core`` imports neither Airflow nor a Kafka client.
"""

__version__ = "0.1.0"
