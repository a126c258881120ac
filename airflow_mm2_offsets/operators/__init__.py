"""The steps of a failover, each useful alone."""
