"""A played session of Spark, whose driver reaches a played storage through Hadoop."""

from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession


class JavaPath:
    """A played path of Hadoop, whose file system is ``hadoop``."""

    def __init__(self, location: str, hadoop: "Hadoop") -> None:
        self.location, self.hadoop = location, hadoop

    def toUri(self) -> str:  # noqa: N802 - as in Java
        return self.location

    def getFileSystem(self, _: object) -> "Hadoop":  # noqa: N802 - as in Java
        return self.hadoop

    def getName(self) -> str:  # noqa: N802 - as in Java
        return self.location.rpartition("/")[2]


class Hadoop:
    """A played session of Spark: its storage has one file of any name, and lists of names."""

    def __init__(self, text: str, **conf: str) -> None:
        self.text, self.conf = text, conf
        self.opened: list[str] = []
        self.listed: dict[str, list[str]] = {}
        self.refusals = 0
        """So many calls the storage refuses."""

    def _refuse(self) -> None:
        if self.refusals:
            self.refusals -= 1
            client = SimpleNamespace(send_command=lambda _: "ysthe Java stack")
            cause = SimpleNamespace(
                _target_id="o1", _gateway_client=client, toString=lambda: "IOException: 503"
            )
            raise Py4JJavaError("", cause)

    def open(self, path: JavaPath) -> object:
        self._refuse()
        self.opened.append(path.location)
        return SimpleNamespace(close=lambda: None)

    def exists(self, path: JavaPath) -> bool:
        self._refuse()
        return path.location in self.listed

    def listStatus(self, path: JavaPath) -> list[Any]:  # noqa: N802 - as in Java
        names = self.listed[path.location]
        return [SimpleNamespace(getPath=partial(JavaPath, name, self)) for name in names]

    def session(self) -> SparkSession:
        instance = SimpleNamespace(
            setWriteChecksum=bool, setVerifyChecksum=bool, close=lambda: None
        )
        files = SimpleNamespace(newInstance=lambda *_: instance)

        def path(location: str) -> JavaPath:
            return JavaPath(location, self)

        jvm = SimpleNamespace(
            org=SimpleNamespace(
                apache=SimpleNamespace(
                    hadoop=SimpleNamespace(fs=SimpleNamespace(Path=path, FileSystem=files)),
                    commons=SimpleNamespace(
                        io=SimpleNamespace(IOUtils=SimpleNamespace(toString=lambda *_: self.text))
                    ),
                )
            )
        )
        context = SimpleNamespace(hadoopConfiguration=lambda: self.conf)
        return cast("SparkSession", SimpleNamespace(_jvm=jvm, _jsc=context))
