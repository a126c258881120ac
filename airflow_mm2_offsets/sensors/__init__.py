"""The waits of a failover, each useful alone."""
