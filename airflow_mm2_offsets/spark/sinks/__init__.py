"""Finds sinks that would drop or overwrite batches in silence; check and migration call it.

Sinks that write each batch once remember the numbers they have. A job with a fresh checkpoint
begins again at batch 0.

| sink | remembers | tells jobs apart by |
|---|---|---|
| a folder for each batch | nothing: they would be overwritten | nothing |
| Spark's files | ``_spark_metadata`` | nothing |
| Delta, its own sink | transactions | the query's id, which is new in a fresh checkpoint |
| Delta in ``foreachBatch`` | transactions | ``txnAppId``, if the user gives one |
| Hudi | the metadata of its commits | an identifier, the same for all unless given |
| Iceberg | the summaries of its snapshots | the query's id |
"""

from upath import UPath

from airflow_mm2_offsets.errors import CheckpointError
from airflow_mm2_offsets.spark.sinks import delta, files, hudi, iceberg, numbered
from airflow_mm2_offsets.spark.sinks.writer import SinkWriter
from airflow_mm2_offsets.storage import open_location

__all__ = ["SinkWriter", "find_sink_problems"]

FRESH = SinkWriter()


def find_sink_problems(output: UPath, writer: SinkWriter = FRESH) -> list[str]:
    """Return what would be lost in a sink, each as one sentence.

    Raises:
        CheckpointError: The storage can't be read, or a table's log is damaged.
        ConfigurationError: The library that reads the table is not installed.
    """
    open_location(output, CheckpointError)
    return [
        problem
        for kind in (files, delta, hudi, iceberg, numbered)
        for problem in kind.find(output, writer)
    ]
