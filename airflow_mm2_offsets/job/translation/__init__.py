"""Translates columns of source offsets by native expressions of Spark."""
