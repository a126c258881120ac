"""The REST API of a pair whose copies keep their offsets."""

from collections.abc import Iterator
from functools import partial

import pytest

from airflow_mm2_offsets.api.cache import read_on
from airflow_mm2_offsets.testing import in_memory_clients
from tests.support.copies import Copies, entries_of, numbered
from tests.unit.api.api_harness import BASE, ApiHarness

RECORDS = entries_of([numbered(number) for number in range(20)])


@pytest.fixture
def api() -> Iterator[ApiHarness]:
    with in_memory_clients():
        copies = Copies().fill(RECORDS, RECORDS)
        pair = copies.pair
        api = ApiHarness(pair=pair)
        api.read = partial(read_on, pair, None)
        yield api


def test_a_plan_needs_no_syncs(api: ApiHarness) -> None:
    """The server is ready, and a plan says by which mapping it was made."""
    api.cache.refresh()
    assert api.client.get("/readyz").status_code == 200
    answer = api.client.post(f"{BASE}/plan", json={"positions": {"orders": {"0": 7}}})
    assert answer.status_code == 200
    assert answer.json()["mapping"] == "identity"
    assert answer.json()["partitions"][0]["target"] == "7"


@pytest.mark.parametrize(
    "path",
    [
        *(f"translate{latest}?topic=orders&partition=0&offset=7" for latest in ("", "/latest")),
        "syncs",
        "status",
    ],
)
def test_what_is_about_syncs_is_refused(api: ApiHarness, path: str) -> None:
    """A translation by no sync would say that nothing was copied."""
    api.cache.refresh()
    answer = api.client.get(f"{BASE}/{path}")
    assert answer.status_code == 409, answer.json()
    assert "there is no offset-syncs topic" in answer.json()["detail"]
