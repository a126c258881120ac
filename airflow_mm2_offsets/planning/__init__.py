"""Makes a failover plan for a pair of clusters: options and evidence in, a ``FailoverPlan`` out.

The operators, the REST API and the command line call it; a migration plans with it, too.
"""
