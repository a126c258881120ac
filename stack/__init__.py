"""The Kafka side of the demo and of the integration tests: two brokers, Connect, MirrorMaker 2."""
