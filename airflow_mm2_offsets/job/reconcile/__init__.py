"""Compares two clusters and a sink in a Spark job that ``ReconcileOperator`` submits."""
