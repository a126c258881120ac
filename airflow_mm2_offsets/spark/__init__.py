"""Spark's side from ours: checkpoints, stop and fence, hand-over, sinks. Knows no Kafka cluster."""
