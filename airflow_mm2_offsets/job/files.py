"""Files that a Spark job reads and writes through Hadoop, on any storage that its Spark knows.

The stop control reads and writes its control location with them, the reconciliation its report.
"""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

T = TypeVar("T")

# A rename replaces a file at once here; object stores show a file only when it is whole.
ATOMIC_RENAME = ("file", "hdfs", "viewfs")

_REPEAT_SECONDS = 2.0
"""An object store refuses the rest of an object that is replaced while it is read: so long, a
failed read is repeated."""
_REPEAT_PAUSE = 0.2


def read_repeatedly(read: Callable[[], T]) -> T:
    """Return what ``read`` returns; a read that fails is repeated for two seconds.

    Raises:
        Py4JJavaError: The last read failed.
    """
    first_try = time.monotonic()
    while True:
        started = time.monotonic()
        try:
            return read()
        except Py4JJavaError:
            if started > first_try + _REPEAT_SECONDS:
                raise
            time.sleep(_REPEAT_PAUSE)


class HadoopFiles:
    """JSON files in one directory, through the JVM of the job."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        """Open the directory; nothing is read or written."""
        self._jvm = cast("Any", spark._jvm)  # noqa: SLF001 - the only way to Hadoop
        self._conf: Any = spark._jsc.hadoopConfiguration()  # noqa: SLF001
        self._hadoop = self._jvm.org.apache.hadoop.fs
        self._directory = self._hadoop.Path(location)
        # A separate instance: the job's shared one must still verify check sums.
        self._fs = self._hadoop.FileSystem.newInstance(self._directory.toUri(), self._conf)
        self._fs.setWriteChecksum(False)
        self._fs.setVerifyChecksum(False)

    @property
    def location(self) -> str:
        """The directory with its scheme and host, as others can compare it."""
        return str(self._fs.makeQualified(self._directory).toString())

    def read(self, name: str) -> dict[str, Any] | None:
        """Return a file's object, or None when there's no such file.

        Raises:
            ValueError: It is not JSON, perhaps not yet: it is just being written.
            Py4JJavaError: It can't be read.
        """
        path = self._hadoop.Path(self._directory, name)
        return read_repeatedly(lambda: self._read(path))

    def _read(self, path: Any) -> dict[str, Any] | None:  # noqa: ANN401 - a Java object
        if not self._fs.exists(path):
            return None
        with closing(self._fs.open(path)) as stream:
            value = json.loads(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        if not isinstance(value, dict):
            raise ValueError(f"{path} holds no JSON object")  # noqa: TRY004 - bad JSON all the same
        return value

    def write(self, name: str, value: dict[str, Any]) -> None:
        """Write a file so that a reader sees the old one or the new one, whole."""
        path = self._fs.makeQualified(self._hadoop.Path(self._directory, name))
        if path.toUri().getScheme() not in ATOMIC_RENAME:
            self._create(path, value)
            return
        temporary = self._hadoop.Path(path.getParent(), f".{name}.tmp")
        self._create(temporary, value)
        if path.toUri().getScheme() == "file":
            # Hadoop deletes the file first here: a job that ends in between would leave none.
            Path(temporary.toUri().getPath()).replace(path.toUri().getPath())
            return
        rename = self._jvm.java.lang.Class.forName("org.apache.hadoop.fs.Options$Rename")
        options = self._jvm.java.lang.reflect.Array.newInstance(rename, 1)
        options[0] = rename.getField("OVERWRITE").get(None)
        context = self._hadoop.FileContext.getFileContext(path.toUri(), self._conf)
        context.rename(temporary, path, options)

    def delete(self, name: str) -> None:
        """Delete a file, if there is one."""
        self._fs.delete(self._hadoop.Path(self._directory, name), False)  # noqa: FBT003 - Java

    def close(self) -> None:
        """Close the file system."""
        self._fs.close()

    def exists(self, name: str) -> bool:
        """Return whether there is a file or folder of this name."""
        path = self._hadoop.Path(self._directory, name)
        return bool(read_repeatedly(lambda: self._fs.exists(path)))

    def names_in(self, folder: str) -> list[str]:
        """Return the names in a folder of the directory; none if there is no such folder.

        Raises:
            Py4JJavaError: It can't be listed.
        """
        path = self._hadoop.Path(self._directory, folder)
        return read_repeatedly(lambda: self._list(self._fs, path))

    def numbers_in(self, folder: str) -> list[int]:
        """Return the files of a folder, on any storage, whose names are numbers, as numbers."""
        path = self._hadoop.Path(folder)
        names = self._list(path.getFileSystem(self._conf), path)
        return [int(name) for name in names if name.isdecimal()]

    def _list(self, files: Any, path: Any) -> list[str]:  # noqa: ANN401 - Java objects
        """Return the names in a folder, which one call lists if there is such a folder."""
        try:
            return [status.getPath().getName() for status in files.listStatus(path)]
        except Py4JJavaError:
            if files.exists(path):  # the storage failed, or a file went away meanwhile
                raise
            return []

    def _create(self, path: Any, value: dict[str, Any]) -> None:  # noqa: ANN401 - a Java object
        with closing(self._fs.create(path, True)) as stream:  # noqa: FBT003 - Java has no keywords
            stream.write(bytearray(json.dumps(value, indent=1), "utf-8"))
