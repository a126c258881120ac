"""Kafka clusters: configuration, topics, watermarks, and reading the offset-syncs topic."""
