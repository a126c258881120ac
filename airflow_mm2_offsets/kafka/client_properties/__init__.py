"""Kafka client properties: from Java's names and values to librdkafka's, and back.

``config`` and the hook translate to librdkafka what users bring from a Java client's file. The
reconcile operator translates a cluster's properties to Java, for the consumer in its Spark job.
"""

from airflow_mm2_offsets.kafka.client_properties.java import format_properties, to_java
from airflow_mm2_offsets.kafka.client_properties.librdkafka import to_librdkafka
from airflow_mm2_offsets.kafka.client_properties.oauth import URL as TOKEN_URL
from airflow_mm2_offsets.kafka.client_properties.secret_names import is_secret

__all__ = ["TOKEN_URL", "format_properties", "is_secret", "to_java", "to_librdkafka"]
