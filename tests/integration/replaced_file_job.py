"""Reads a file of a control location over and over, while a thread replaces it."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from airflow_mm2_offsets.job.files import HadoopFiles

WRITES, INTERVAL = 40, 0.5

if __name__ == "__main__":
    files = HadoopFiles(SparkSession.builder.getOrCreate(), sys.argv[1])
    files.write("driver.json", {"heartbeat": 0})

    def write() -> None:
        """Count up in the file, as heartbeats do."""
        for heartbeat in range(1, WRITES + 1):
            time.sleep(INTERVAL)
            files.write("driver.json", {"heartbeat": heartbeat})

    heartbeats = []
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        while not writing.done():
            heartbeats.append((files.read("driver.json") or {})["heartbeat"])
        writing.result()
    if heartbeats != sorted(heartbeats) or len(heartbeats) < WRITES:
        raise SystemExit(f"read: {heartbeats}")
