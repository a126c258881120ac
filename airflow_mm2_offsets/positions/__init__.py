"""Positions that other systems keep; a DAG reads them for ``TranslateOffsetsOperator``.

| system | keeps them in | reader |
|---|---|---|
| Hudi, its HoodieStreamer | the metadata of commits | ``hudi.read_hudi_positions`` |
| Iceberg | a property of the snapshots that the job sets | ``iceberg.read_iceberg_positions`` |
| Flink | savepoints | docs/flink/ReadKafkaPositions.java |
| Spark Structured Streaming, whatever its sink | its checkpoint | ``spark.checkpoint`` |

A reader returns the NEXT offset to read of each topic-partition, as everywhere in this package.
"""
