"""Reads a file of a control location over and over, while a thread replaces it."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from airflow_mm2_offsets.job.files import HadoopFiles

TIMES, INTERVAL = 40, 0.5
"""At least so many writes, seconds apart, and at least so many reads meanwhile."""

if __name__ == "__main__":
    files = HadoopFiles(SparkSession.builder.getOrCreate(), sys.argv[1])
    files.write("driver.json", {"heartbeat": 0})

    heartbeats: list[int] = []

    def write() -> None:
        """Count up in the file, as heartbeats do."""
        heartbeat = 0
        while heartbeat < TIMES or len(heartbeats) < TIMES:
            time.sleep(INTERVAL)
            heartbeat += 1
            files.write("driver.json", {"heartbeat": heartbeat})

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        while not writing.done():
            heartbeats.append((files.read("driver.json") or {})["heartbeat"])
        writing.result()
    if heartbeats != sorted(heartbeats):
        raise SystemExit(f"read: {heartbeats}")
