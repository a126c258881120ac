"""A storage that takes requests and answers none is found once, in seconds."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from upath import UPath

from airflow_mm2_offsets import silent_storage
from airflow_mm2_offsets.errors import StopError
from airflow_mm2_offsets.storage import list_directory, read_text, write_text


class _Storage:
    """fsspec's memory file system, which answers when it may."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_answer = threading.Event()
        self.asked = 0
        exists = MemoryFileSystem.exists

        def ask(file_system: MemoryFileSystem, path: str, **kwargs: Any) -> bool:
            self.asked += 1
            self.may_answer.wait(20)
            return bool(exists(file_system, path, **kwargs))

        monkeypatch.setattr(MemoryFileSystem, "exists", ask)


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Storage]:
    """A storage that does not answer until it may."""
    monkeypatch.setattr(silent_storage, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(silent_storage, "_asked", {})
    played = _Storage(monkeypatch)
    yield played
    played.may_answer.set()


def test_it_is_waited_for_once(storage: _Storage) -> None:
    """Ten reads of a storage that hangs cost one wait, and each says why it failed."""
    folder = UPath("memory://lake/orders")
    began = time.monotonic()
    for _ in range(10):
        with pytest.raises(StopError, match=r"orders is out of reach.* not answered within 0.2 s"):
            list_directory(folder, StopError)
    assert time.monotonic() - began < 2
    assert storage.asked == 1


def test_it_is_asked_again_later(storage: _Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A storage that is back is used again."""
    file = UPath("memory://lake/orders/fence.json")
    with pytest.raises(StopError):
        read_text(file, StopError)
    storage.may_answer.set()
    monkeypatch.setattr(silent_storage, "FRESH_SECONDS", 0.0)
    assert read_text(file, StopError) is None


def test_an_answer_holds_for_a_while(storage: _Storage) -> None:
    """A storage that answers is asked once, not before each file."""
    storage.may_answer.set()
    file = UPath("memory://lake/orders/fence.json")
    write_text(file, "stopped", StopError)
    asked = storage.asked
    assert [read_text(file, StopError) for _ in range(5)] == ["stopped"] * 5
    assert storage.asked == asked


def test_a_refusal_is_an_answer(storage: _Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may not list a folder may still read a file there."""
    storage.may_answer.set()
    file = UPath("memory://lake/orders/fence.json")
    write_text(file, "stopped", StopError)

    def refuse(*_: Any) -> bool:
        raise PermissionError("no right to list")

    silent_storage._asked.clear()  # noqa: SLF001 - a later minute
    monkeypatch.setattr(UPath, "exists", refuse)
    assert read_text(file, StopError) == "stopped"
