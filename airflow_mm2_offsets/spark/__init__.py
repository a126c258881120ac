"""Spark as Airflow sees it: checkpoints, stop and fence, hand-over, sinks; no Kafka cluster."""
