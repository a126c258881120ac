"""Moves of jobs between clusters."""
