"""Compares two clusters and a sink, in the Spark job that ``ReconcileOperator`` submits."""
