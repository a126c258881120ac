"""What a client of mm2-offset-map expects of answers, from that project's README.

The README shows each answer as JSON, and says: `errorMessages` is a single string when an item
fails and null when it succeeds. That a partition of which some items fail is PARTIAL_SUCCESS, and
that an unknown topic and an empty list are answered with 200, is its service's behaviour.
"""

import re
from collections.abc import Mapping
from typing import Any

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
"""A time as Java's Instant reads it on every version."""
TRANSLATION: Mapping[str, type] = {
    "topic": str,
    "partition": int,
    "sourceOffset": int,
    "targetOffset": int,
    "syncUpstreamOffset": int,
    "syncTargetOffset": int,
}
STATUS: Mapping[str, type | re.Pattern[str]] = {
    "topic": str,
    "refreshedAt": INSTANT,
    "syncCount": int,
}
SYNC: Mapping[str, type] = {
    "topic": str,
    "partition": int,
    "upstreamOffset": int,
    "targetOffset": int,
}
_BATCH: Mapping[str, type | re.Pattern[str]] = {
    "topicName": str,
    "sourceCluster": str,
    "targetCluster": str,
    "partitionResults": list,
    "summary": dict,
    "timestamp": INSTANT,
}
_SUMMARY = dict.fromkeys(
    ("totalRequested", "successCount", "failureCount", "processTimeMs", "partitionProcessed"), int
)
_PARTITION: Mapping[str, type] = {"partition": int, "status": str, "offsetTranslations": list}
_ITEM: Mapping[str, type] = {"sourceOffset": int, "translationMethod": str, "success": bool}


def read_fields(body: Mapping[str, Any], fields: Mapping[str, type | re.Pattern[str]]) -> None:
    """Fail unless each field is there with its type; further fields do not matter."""
    for name, kind in fields.items():
        value = body[name]
        if isinstance(kind, re.Pattern):
            assert kind.fullmatch(value), f"{name}: {value}"
        else:
            assert type(value) is kind, f"{name}: {value!r}"


def read_batch(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the results of each partition of a batch whose fields are all as expected."""
    read_fields(body, _BATCH)
    read_fields(body["summary"], _SUMMARY)
    results: list[dict[str, Any]] = body["partitionResults"]
    for result in results:
        read_fields(result, _PARTITION)
        successes = [_read_item(item) for item in result["offsetTranslations"]]
        some = "PARTIAL_SUCCESS" if any(successes) else "FAILED"
        assert result["status"] == ("SUCCESS" if all(successes) else some)
    return results


def _read_item(item: Mapping[str, Any]) -> bool:
    read_fields(item, _ITEM)
    assert item["translationMethod"] == "OFFSET_SYNC"
    if item["success"]:
        read_fields(item, {"targetOffset": int})
        assert item["errorMessages"] is None
    else:
        assert item["targetOffset"] is None
        read_fields(item, {"errorMessages": str})
    return bool(item["success"])
