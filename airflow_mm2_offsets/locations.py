"""How one location is spelled: by Spark (Hadoop's file systems), by fsspec, and by Airflow."""

import os
import posixpath
import re
from pathlib import Path

from upath import UPath

LOCAL = frozenset({"", "file", "local"})
"""Protocols of this machine's own files."""
_KINDS = {
    **dict.fromkeys(LOCAL, "file"),
    **dict.fromkeys(("s3a", "s3n"), "s3"),
    "gcs": "gs",
    **dict.fromkeys(("abfss", "az", "wasb", "wasbs"), "abfs"),
    "viewfs": "hdfs",
}
"""Protocols that are other names of one storage."""
_AZURE = re.compile(
    r"(abfss?|wasbs?)://(?P<container>[^/@]+)@(?P<account>[^/.]+)\.(dfs|blob)\.[^/]+(?P<path>/.*)?"
)
_VIEW = re.compile(r"(?P<host>viewfs://[^/]*)(?P<path>/.*)?")


def spark_location(location: str) -> UPath | None:
    """Return fsspec's form of a location that only Hadoop's file systems understand, else None.

    ``abfss://container@account.dfs.core.windows.net/path`` (credentials are those of the process),
    and ``viewfs://cluster/path``.
    """
    if azure := _AZURE.fullmatch(location):
        location = f"abfs://{azure['container']}{azure['path'] or '/'}"
        return UPath(location, account_name=azure["account"])
    if view := _VIEW.fullmatch(location):
        return UPath(f"hdfs://{view['path'] or '/'}", host=view["host"])
    return None


def storage_kind(protocol: str) -> str:
    """Return one name for all protocols of a storage: ``s3a`` is ``s3``."""
    return _KINDS.get(protocol, protocol)


def folder_id(path: UPath) -> str:
    """Return one text for all spellings of a folder: ``s3a://b/f``, ``s3://conn@b/f/``."""
    kind = storage_kind(path.protocol)
    # Names of buckets are unique, those of folders are not.
    host = path.storage_options.get("host", "") if kind == "hdfs" else ""
    return f"{kind}://{host}/{path.path.strip('/')}/"


def location_key(location: str) -> str:
    """Return one text for all spellings of a location, without a look at its storage.

    ``s3a://b/f``, ``s3://conn@b/f/`` and ``s3://b/f`` are equal, and so are a local path with and
    without ``file://``. ``folder_id`` says the same of a path.
    """
    scheme, separator, rest = location.partition("://")
    if not separator:
        scheme, rest = "file", location.removeprefix("file:")
    kind = storage_kind(scheme)
    if kind in {"s3", "gs"}:
        authority, slash, path = rest.partition("/")
        rest = f"{authority.rpartition('@')[2]}{slash}{path}"
    return f"{kind}://{rest.strip('/')}"


def beside(folder: UPath, ending: str) -> UPath:
    """Return the file ``<folder>.<ending>`` beside a folder."""
    without_slash = (folder / ending).parent  # A slash at the end may count as a name.
    return without_slash.with_name(f"{without_slash.name}.{ending}")


def same_folder(path: UPath, spelling: str) -> bool:
    """Tell whether ``path`` is the folder that Spark or ``folder_id`` spells as ``spelling``.

    Local folders are equal if links and mounts of this machine lead to one folder. Otherwise only
    names are compared: buckets of one name on two S3 endpoints look equal.
    """
    if spelling == folder_id(path):  # of a bucket's folder it is no location
        return True
    try:
        other = spark_location(spelling) or UPath(spelling)
    except (ImportError, ValueError):  # Only Hadoop knows the storage, or it is not a location.
        return False
    if storage_kind(path.protocol) == storage_kind(other.protocol) == "file":
        return _same_local(path.path, other.path)
    accounts = {each.storage_options.get("account_name") for each in (path, other)} - {None}
    return folder_id(path) == folder_id(other) and len(accounts) <= 1


def _same_local(one: str, other: str) -> bool:
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return Path(one).samefile(other)
    except OSError:  # one of them does not exist here
        return False


def overlap(one: UPath, other: UPath) -> bool:
    """Tell whether two folders are one, or one of them lies in the other."""
    return is_within(one, other) or is_within(other, one)


def is_within(inner: UPath, outer: UPath) -> bool:
    """Tell whether a location is a folder or lies in it, by whatever names.

    It compares as ``same_folder`` does, and reads ``..`` as Hadoop and as the machine do. In doubt
    the answer is yes: one HDFS cluster has several names, so only paths are compared there.
    """
    kind = storage_kind(inner.protocol)
    if kind != storage_kind(outer.protocol):
        return False
    if kind == "file":
        return _is_within_local(inner.path, outer.path)
    accounts = {each.storage_options.get("account_name") for each in (inner, outer)} - {None}
    paths = (posixpath.normpath(f"/{each.path.strip('/')}") for each in (inner, outer))
    return len(accounts) <= 1 and _is_below(*paths)


def _is_within_local(inner: str, outer: str) -> bool:
    spellings = (os.path.abspath, os.path.realpath)
    if any(_is_below(one(inner), other(outer)) for one in spellings for other in spellings):
        return True
    # A mount leads to one folder by two names.
    real = Path(os.path.realpath(inner))
    return any(_same_local(str(folder), outer) for folder in (real, *real.parents))


def _is_below(inner: str, outer: str) -> bool:
    return f"{inner.rstrip('/')}/".startswith(f"{outer.rstrip('/')}/")


def spark_spelling(path: UPath, like: str) -> str | None:
    """Return a location as Spark spells it; None if ``like`` is on another kind of storage.

    ``like`` is another location on the same storage as Spark spells it, maybe in another bucket.
    """
    scheme, _, rest = like.partition(":")
    if storage_kind(scheme) != storage_kind(path.protocol):
        return None
    authority = rest.removeprefix("//").partition("/")[0] if rest.startswith("//") else ""
    folder = path.path.strip("/")
    match storage_kind(scheme):
        case "file":
            return f"{scheme}:/{folder}"
        case "hdfs":
            return f"{_name_node(path) or f'{scheme}://{authority}'}/{folder}"
        case "abfs" if "@" in authority:
            container, _, inner = folder.partition("/")
            return f"{scheme}://{container}@{_account(path, authority)}/{inner}"
    return f"{scheme}://{folder}"


def _name_node(path: UPath) -> str | None:
    """Return the name node in an HDFS location, if there is one."""
    host, port = path.storage_options.get("host"), path.storage_options.get("port")
    if not host or str(host).startswith("viewfs:"):
        return host
    return f"hdfs://{host}:{port}" if port else f"hdfs://{host}"


def _account(path: UPath, authority: str) -> str:
    """Return the host of a location's account: another location's, unless it names its own."""
    account, dot, service = authority.partition("@")[2].partition(".")
    return f"{path.storage_options.get('account_name', account)}{dot}{service}"
