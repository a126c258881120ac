"""What Airflow's API server takes up: the REST API in its Airflow home."""
