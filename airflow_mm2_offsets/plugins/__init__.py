"""The plugin that puts the REST API into Airflow's API server."""
