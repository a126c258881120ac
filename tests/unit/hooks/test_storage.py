"""Locations as users spell them: Airflow's way, Spark's way, and on storages of neither."""

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest
from fsspec.implementations.arrow import HadoopFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from airflow_mm2_offsets.errors import CheckpointError, ConfigurationError, PlanError
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.locations import folder_id, same_folder, spark_spelling
from airflow_mm2_offsets.spark.checkpoint_copy import is_temporary
from airflow_mm2_offsets.spark.offsets_file import write_offsets
from airflow_mm2_offsets.storage import (
    copy_file,
    finish_write,
    list_files,
    open_location,
    read_text,
    remove_file,
    storage_errors,
    write_bytes,
    write_text,
)
from airflow_mm2_offsets.whole_files import whole_copy


class Hdfs(MemoryFileSystem):  # type: ignore[misc] # fsspec has no annotations
    """HDFS as fsspec has it, without a name node: it renames to no name that is taken."""

    store: ClassVar[dict[str, object]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    protocol = "hdfs"
    _get_kwargs_from_urls = staticmethod(HadoopFileSystem._get_kwargs_from_urls)  # noqa: SLF001 - as it is there

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        stripped: str = HadoopFileSystem._strip_protocol(path)  # noqa: SLF001 - as it is there
        return stripped.rstrip("/")

    def mv(self, path1: str, path2: str, **_: object) -> None:
        if self.exists(path2):
            raise FileExistsError(path2)
        self.store[path2] = self.store.pop(path1)


class Azure(MemoryFileSystem):  # type: ignore[misc] # fsspec has no annotations
    """Azure's storage as fsspec has it."""

    store: ClassVar[dict[str, object]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    protocol = "abfs"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(path).removeprefix("abfs://").strip("/")


@pytest.fixture(autouse=True)
def storages(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = import_module("fsspec.registry")._registry  # noqa: SLF001 - there is no public way back
    for name, implementation in (("hdfs", Hdfs), ("abfs", Azure)):
        monkeypatch.setitem(registry, name, implementation)
        implementation.clear_instance_cache()


def test_hdfs_is_fsspec_s_own() -> None:
    """No Airflow provider registers it; host, port and user come from the location."""
    path = storage_path("hdfs://etl@namenode:8020/checkpoints/orders")
    assert isinstance(path.fs, Hdfs)
    assert path.path == "/checkpoints/orders"
    assert path.fs.storage_options == {"host": "namenode", "port": 8020, "user": "etl"}


@pytest.mark.parametrize("protocol", ["memory", "hdfs"])
def test_any_storage_of_fsspec_will_do(protocol: str) -> None:
    """A protocol that Airflow does not know is no reason to refuse."""
    path = storage_path(f"{protocol}://bucket/folder/file")
    write_text(path, "text", CheckpointError)
    write_text(path, "other", CheckpointError)
    copy_file(path, path.with_name("copy"), CheckpointError)
    assert read_text(path, CheckpointError) == "other"
    assert [*list_files(path.parent, CheckpointError)] == ["copy", "file"]
    path.fs.rm(path.parent.path, recursive=True)


class KilledError(BaseException):
    """The process is gone: nothing after it happens, no cleaning up either."""


class Crash:
    """Lets a process do so many steps on HDFS, and then no more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps_left: int | None = None
        for name in ("mv", "rm_file"):
            monkeypatch.setattr(Hdfs, name, self._counting(getattr(Hdfs, name)))
        real_open = Hdfs.open

        def opened(fs: Hdfs, path: str, mode: str = "rb", **options: Any) -> Any:  # noqa: ANN401 - as the real one
            if mode != "wb":
                return real_open(fs, path, mode, **options)
            self._step()
            real_open(fs, path, mode, **options).close()  # HDFS shows it, empty, until it is closed
            self._step()
            return real_open(fs, path, mode, **options)

        monkeypatch.setattr(Hdfs, "open", opened)

    def _step(self) -> None:
        if self.steps_left is not None:
            if not self.steps_left:
                raise KilledError
            self.steps_left -= 1

    def _counting(self, do: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - as the real one
            self._step()
            return do(*args, **options)

        return step


@pytest.mark.parametrize("steps", range(8))
def test_a_file_of_hdfs_is_never_lost(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Wherever the writer is killed: the old or the new text is read, and others find a file."""
    path = storage_path("hdfs://bucket/control/fence.json")
    write_text(path, "old", CheckpointError)
    crash = Crash(monkeypatch)
    crash.steps_left = steps
    with suppress(KilledError):
        write_text(path, "new", CheckpointError)
    crash.steps_left = None
    assert path.exists()
    assert path.read_bytes() in {b"", b"old", b"new"}
    found = read_text(path, CheckpointError)
    assert found in {"old", "new"}
    assert (found == "new") == (steps >= 4)  # from there on the name has given up the old text

    finish_write(path, CheckpointError)
    assert path.read_text() == found
    write_text(path, "newer", CheckpointError)
    assert (read_text(path, CheckpointError), path.read_text()) == ("newer", "newer")
    assert not whole_copy(path).exists()
    path.fs.rm("/control", recursive=True)


@pytest.mark.parametrize("steps", range(8))
def test_a_retry_leaves_whole_offsets_on_hdfs(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Wherever the writer is killed: the job, which reads no copy of ours, finds the offsets."""
    text, plan = '{"orders":{"0":42}}', "hdfs://bucket/plans/run.json"
    path = storage_path(write_offsets(text, plan, storage_path)[1:])
    write_bytes(path, b"\xff{", PlanError)
    crash = Crash(monkeypatch)
    crash.steps_left = steps
    with suppress(KilledError):
        write_offsets(text, plan, storage_path)
    crash.steps_left = None
    write_offsets(text, plan, storage_path)
    assert path.read_bytes() == text.encode()
    assert not whole_copy(path).exists()
    remove_file(path, PlanError)


def test_a_text_that_is_none_is_damaged(tmp_path: Path) -> None:
    """Credentials have nothing to do with it."""
    (tmp_path / "metadata").write_bytes(b"\xff{")
    with pytest.raises(CheckpointError, match=r"metadata: is not UTF-8, so it is half-written"):
        read_text(storage_path(f"{tmp_path}/metadata"), CheckpointError)


@pytest.mark.parametrize("steps", range(7))
def test_what_others_wrote_since_a_crash_on_hdfs_counts(
    monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """A job replaces the file by renaming another one, and leaves our copy beside it."""
    path = storage_path("hdfs://bucket/control/stopped.json")
    write_text(path, "old", CheckpointError)
    crash = Crash(monkeypatch)
    crash.steps_left = steps
    with suppress(KilledError):
        write_text(path, "new", CheckpointError)
    crash.steps_left = None
    path.fs.pipe_file(path.path, b"the job's")
    assert read_text(path, CheckpointError) == "the job's"
    finish_write(path, CheckpointError)
    assert path.read_text() == "the job's"
    remove_file(path, CheckpointError)
    assert read_text(path, CheckpointError) is None
    path.fs.rm("/control", recursive=True)


def test_a_copy_within_hdfs_leaves_no_file_of_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed copy leaves is known as temporary: the next try passes it over."""
    path = storage_path("hdfs://bucket/control/state")
    write_text(path, "state", CheckpointError)
    crash = Crash(monkeypatch)
    crash.steps_left = 1
    with suppress(KilledError):
        copy_file(path, path.with_name("copy"), CheckpointError)
    crash.steps_left = None
    names = set(list_files(path.parent, CheckpointError)) - {"state"}
    assert names
    assert all(is_temporary(name) for name in names)
    path.fs.rm("/control", recursive=True)


def test_viewfs_is_hadoop_s() -> None:
    """Hadoop's own client takes the mount table's URI for a host."""
    path = storage_path("viewfs://cluster/checkpoints/orders")
    assert (path.path, path.fs.storage_options) == (
        "/checkpoints/orders",
        {"host": "viewfs://cluster"},
    )


@pytest.mark.parametrize("scheme", ["abfss", "abfs"])
def test_spark_s_azure_is_airflow_s(scheme: str) -> None:
    """Container and account of the host part are not a connection and a bucket."""
    spark = f"{scheme}://data@account.dfs.core.windows.net/checkpoints/orders"
    for path in (storage_path(spark), open_location(spark, CheckpointError)):
        assert path.fs.storage_options == {"account_name": "account"}
        assert path.path.strip("/") == "data/checkpoints/orders"
        assert folder_id(path) == folder_id(storage_path("abfs://data/checkpoints/orders/"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://conn@bucket/folder", "s3a://bucket/folder/"),
        ("/data/folder", "file:///data/folder"),
        ("hdfs://namenode/folder", "hdfs://namenode/folder/"),
    ],
)
def test_one_folder_has_many_names(one: str, other: str) -> None:
    """What only differs in spelling is one folder."""
    assert folder_id(storage_path(one)) == folder_id(storage_path(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://bucket/folder", "s3://other/folder"),
        ("hdfs://one/folder", "hdfs://two/folder"),
        ("/data/folder", "/data/folder-2"),
    ],
)
def test_folders_that_differ(one: str, other: str) -> None:
    """Buckets and clusters are told apart."""
    assert folder_id(storage_path(one)) != folder_id(storage_path(other))


@pytest.mark.parametrize(
    ("location", "written", "is_same"),
    [
        ("s3://conn@bucket/folder", "s3a://bucket/folder/", True),
        ("s3://bucket/folder", "s3a://backup/folder", False),
        ("hdfs://namenode/folder", "hdfs://namenode:8020/folder", True),
        ("hdfs:///folder", "hdfs://namenode:8020/folder", False),
        ("/data/folder", "file:/data/folder/", True),
        ("/data/../data/folder", "file:///data/folder", True),
        ("/mnt/folder", "hdfs://namenode/mnt/folder", False),
        ("/data/folder", "cosn://bucket/data/folder", False),
        ("abfs://data/folder", "abfss://data@one.dfs.core.windows.net/folder", True),
        (
            "abfss://data@two.dfs.core.windows.net/folder",
            "abfss://data@one.dfs.core.windows.net/folder",
            False,
        ),
    ],
)
def test_a_folder_that_a_job_has_written(location: str, written: str, *, is_same: bool) -> None:
    """Spellings of one folder are equal; buckets, name nodes and accounts differ."""
    assert same_folder(storage_path(location), written) is is_same


@pytest.mark.parametrize(
    "location",
    [
        *("s3://conn@bucket/folder", "s3a://bucket/folder/", "hdfs://namenode/folder"),
        *("/data/folder", "abfs://data/folder"),
    ],
)
def test_a_folder_that_we_have_noted(location: str) -> None:
    """What a fence, a stop proof or a drill's mark says is understood on every storage.

    ``s3:///bucket/folder/`` is no location of its own.
    """
    path = storage_path(location)
    assert same_folder(path, folder_id(path))
    assert not same_folder(storage_path("s3://bucket/copy"), folder_id(path))


def test_a_local_folder_behind_a_link(tmp_path: Path) -> None:
    """A link leads to the folder itself; a copy beside it is another one."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "copy").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    assert same_folder(storage_path(f"{tmp_path}/link"), f"file:{tmp_path}/folder")
    assert same_folder(storage_path(f"{tmp_path}/folder"), f"file:{tmp_path}/link")
    assert not same_folder(storage_path(f"{tmp_path}/copy"), f"file:{tmp_path}/link")


@pytest.mark.parametrize(
    ("location", "like", "spelled"),
    [
        ("/data/copy", "file:/data/original", "file:/data/copy"),
        ("s3://conn@new/copy", "s3a://old/original", "s3a://new/copy"),
        ("hdfs://name:8020/copy", "hdfs://name:8020/original", "hdfs://name:8020/copy"),
        (
            "abfs://new/copy",
            "abfss://old@account.dfs.core.windows.net/original",
            "abfss://new@account.dfs.core.windows.net/copy",
        ),
        ("hdfs:///copy", "hdfs://name:8020/original", "hdfs://name:8020/copy"),
        ("hdfs://other/copy", "hdfs://name:8020/original", "hdfs://other/copy"),
        ("viewfs://cluster/copy", "hdfs://name:8020/original", "viewfs://cluster/copy"),
        (
            "abfss://new@other.dfs.core.windows.net/copy",
            "abfss://old@account.dfs.core.windows.net/original",
            "abfss://new@other.dfs.core.windows.net/copy",
        ),
        ("/data/copy", "s3a://old/original", None),
    ],
)
def test_spark_s_spelling(location: str, like: str, spelled: str | None) -> None:
    """Scheme and authority are those that Spark used before, unless the location has its own."""
    assert spark_spelling(storage_path(location), like) == spelled


@pytest.mark.parametrize(
    "location", ["nosuch://bucket/folder", "gs://bucket/folder", "hdfs://namenode/folder"]
)
def test_a_storage_without_its_library(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The location is named as it was given."""
    monkeypatch.setattr(Hdfs, "__init__", _fails)
    with pytest.raises(ConfigurationError, match=f"^{location} is out of reach: .*Error"):
        storage_path(location)


def _fails(*_: object, **__: object) -> None:
    raise OSError("unable to load libhdfs")


def test_a_password_in_a_location_is_not_shown() -> None:
    """Neither in the message, nor in its fields, nor in what caused it."""
    location = "ftp://user:hunter2@host/x"
    with pytest.raises(CheckpointError) as caught, storage_errors(location, CheckpointError):
        raise OSError("user:hunter2@host: connection refused")
    error = caught.value
    assert str(error).startswith("ftp://user:***@host/x is out of reach: OSError; ")
    assert "hunter2" not in f"{error} {error.fields}"
    assert error.__cause__ is None
    assert error.__suppress_context__
