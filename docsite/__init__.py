"""Builds the documentation site with Zensical; ``make docs`` runs it, no part of the package does."""
