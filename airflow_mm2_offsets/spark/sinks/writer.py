"""The job that is to write to a sink, and how sinks tell it from others."""

from dataclasses import dataclass

from upath import UPath

_MIGRATE = "migrate the checkpoint (MigrateSparkCheckpointOperator), which goes on counting"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkWriter:
    """The job on the target; by default with a fresh checkpoint, and so with a new query id."""

    query_id: str | None = None
    """The query's id, if it keeps one: with a migrated checkpoint it does."""
    first_batch: int = 0
    """Its first new batch; a pending batch is not new."""
    replaced_query_id: str | None = None
    """The id of the query that it replaces, if its id is new."""
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
