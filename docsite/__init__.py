"""Builds the documentation site with Zensical; ``make docs`` runs it."""
