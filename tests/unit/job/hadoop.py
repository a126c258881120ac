"""A played session of Spark, whose driver reaches a played storage through Hadoop."""

from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession


class JavaPath:
    """A played path of Hadoop."""

    def __init__(self, location: str) -> None:
        self.location = location

    def toUri(self) -> str:  # noqa: N802 - as in Java
        return self.location

    def getName(self) -> str:  # noqa: N802 - as in Java
        return self.location.rpartition("/")[2]


class Hadoop:
    """A played session of Spark, and its storage: folders by their location, with their names."""

    def __init__(self, **folders: list[str]) -> None:
        self.folders = folders
        self.calls: list[str] = []
        self.refusals = 0
        """So many calls the storage refuses."""

    def _refuse(self, method: str) -> None:
        self.calls.append(method)
        if self.refusals:
            self.refusals -= 1
            raise self._error("IOException: 503")

    def _error(self, reason: str) -> Exception:
        client = SimpleNamespace(send_command=lambda _: "ysthe Java stack")
        cause = SimpleNamespace(_target_id="o1", _gateway_client=client, toString=lambda: reason)
        return cast("Exception", Py4JJavaError("", cause))

    def exists(self, path: JavaPath) -> bool:
        self._refuse("exists")
        return path.location in self.folders

    def listStatus(self, path: JavaPath) -> list[Any]:  # noqa: N802 - as in Java
        self._refuse("list")
        if path.location not in self.folders:
            raise self._error("FileNotFoundException")
        names = self.folders[path.location]
        return [SimpleNamespace(getPath=partial(JavaPath, name)) for name in names]

    def session(self) -> SparkSession:
        instance = SimpleNamespace(
            setWriteChecksum=bool,
            setVerifyChecksum=bool,
            exists=self.exists,
            listStatus=self.listStatus,
        )
        files = SimpleNamespace(newInstance=lambda *_: instance)

        def path(*parts: Any) -> JavaPath:
            return JavaPath(parts[-1])

        fs = SimpleNamespace(Path=path, FileSystem=files)
        jvm = SimpleNamespace(
            org=SimpleNamespace(apache=SimpleNamespace(hadoop=SimpleNamespace(fs=fs)))
        )
        context = SimpleNamespace(hadoopConfiguration=dict)
        return cast("SparkSession", SimpleNamespace(_jvm=jvm, _jsc=context))
