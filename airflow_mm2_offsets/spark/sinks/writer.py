"""The job that is to write to a sink, as sinks tell it from others."""

from dataclasses import dataclass

from upath import UPath

_MIGRATE = "migrate the checkpoint (MigrateSparkCheckpointOperator), which goes on counting"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkWriter:
    """The job on the target. Unless told otherwise its checkpoint is fresh, and so is its id."""

    query_id: str | None = None
    """The query's id, where its checkpoint keeps one: a migrated checkpoint does."""
    first_batch: int = 0
    """The first batch that it makes anew; one that was pending is not new."""
    replaced_query_id: str | None = None
    """The id of the query that it replaces, where its own is another one."""
    txn_app_id: str | None = None
    """What its ``foreachBatch`` gives Delta as ``txnAppId``, or its sink gives Hudi as
    ``hoodie.datasource.write.streaming.checkpoint.identifier``; empty for none, None if unknown."""

    def loses(self, last: int) -> bool:
        """Tell whether a sink that has batches up to ``last`` drops one of the job's."""
        return last >= self.first_batch

    def problem(self, output: UPath, *, has: str, who: str, remedy: str) -> str:
        """Return one sentence on a sink that drops batches.

        ``has`` says what the sink holds, ``who`` drops batches, and ``remedy`` is for the job.
        """
        begins, step = (
            f"the job goes on at batch {self.first_batch}",
            "migrate its newest checkpoint",
        )
        if not self.first_batch:
            begins, step = "a job with a fresh checkpoint begins at 0", _MIGRATE
        return (
            f"{output}: {has}; {begins}, and {who} drops all up to that one in silence: {step}, or "
            f"give the job on the target {remedy}"
        )
