"""``python -m airflow_mm2_offsets.cli``."""

from airflow_mm2_offsets.cli import main

main()
