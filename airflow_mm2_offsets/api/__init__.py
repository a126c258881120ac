"""The answers over HTTP: one factory of FastAPI apps, for a server alone or inside another."""
