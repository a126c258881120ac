"""A Kerberos realm on loopback: MIT's ``krb5kdc`` with a database and keys in a folder.

Nothing of it needs root: port, files and caches are its own. ``stack.kerberos`` starts brokers
that log in to it; clients find it through the variables of ``Kdc.env``.
"""

import secrets
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from stack.process import Program, accepts, free_ports
from stack.waiting import Progress, quiet

PACKAGES = {
    "kdb5_util": "krb5-kdc",
    "krb5kdc": "krb5-kdc",
    "kadmin.local": "krb5-admin-server",
    "kinit": "krb5-user",
}
"""Debian's package of each program."""
# Names stay as they are written, and no DNS is asked: there may be none. TCP alone: a port that is
# free for TCP may be taken for UDP.
_CLIENT = """[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  qualify_shortname = ""
  rdns = false
  udp_preference_limit = 1
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
[domain_realm]
  localhost = {realm}
"""
_SERVER = """[kdcdefaults]
  kdc_listen = ""
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {folder}/principals
    key_stash_file = {folder}/stash
    acl_file = {folder}/acl
    max_life = 1h
    supported_enctypes = aes256-cts:normal
  }}
"""


def obstacle() -> str | None:
    """Say what a KDC lacks here, or None where it can run."""
    missing = sorted({package for tool, package in PACKAGES.items() if _path(tool) is None})
    return f"a KDC needs {' and '.join(missing)}: apt-get install them" if missing else None


class Kdc:
    """A key distribution centre; as a context manager, from up to down.

    Args:
        folder: Holds its database, configuration, keytabs and log.
        realm: Its name.
        progress: Told what is being waited for.
    """

    def __init__(
        self,
        folder: Path,
        *,
        realm: str = "MM2.TEST",
        progress: Progress = quiet,
    ) -> None:
        """Choose a port and write the configuration; nothing runs yet."""
        (port,) = free_ports(1)
        self.realm = realm
        self.krb5_conf = folder / "krb5.conf"
        self._address = f"127.0.0.1:{port}"
        self._folder = folder
        self._progress = progress
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in {self.krb5_conf: _CLIENT, folder / "kdc.conf": _SERVER}.items():
            path.write_text(text.format(realm=realm, port=port, folder=folder))
        self._server: Program | None = None

    @property
    def env(self) -> Mapping[str, str]:
        """The variables by which MIT's library finds this realm."""
        return {"KRB5_CONFIG": str(self.krb5_conf)}

    @property
    def _server_env(self) -> Mapping[str, str]:
        return {**self.env, "KRB5_KDC_PROFILE": str(self._folder / "kdc.conf")}

    def __enter__(self) -> Self:
        """Make the database, and answer."""
        self._run("kdb5_util", "create", "-s", "-P", secrets.token_hex())
        self.start()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Stop it; the database stays in the folder."""
        self.stop()

    def start(self, *, clock: str = "") -> None:
        """Start the server on the database that is there, and wait until it answers.

        Args:
            clock: How far its clock is off, as ``faketime`` takes it (``+1h``); empty: it is right.
        """
        skew = ["faketime", "-f", clock] if clock else []
        # In the foreground: its process is the one that is ended.
        command = [*skew, _tool("krb5kdc"), "-n"]
        self._server = Program("KDC", command, log=self._folder / "kdc.log", env=self._server_env)
        self._server.start()
        self._server.wait_ready(partial(accepts, self._address), progress=self._progress)

    def stop(self) -> None:
        """Stop the server."""
        if self._server is not None:
            self._server.stop()

    def keytab(self, principal: str) -> Path:
        """Make a principal with a random key, and return the keytab that holds it.

        Args:
            principal: Its name without the realm, as ``kafka/localhost``.
        """
        path = self._folder / f"{principal.replace('/', '-')}.keytab"
        # As realms have it: without preauthentication, a wrong clock is found later or not at all.
        self._run("kadmin.local", "addprinc", "-randkey", "+requires_preauth", principal)
        self._run("kadmin.local", "ktadd", "-k", str(path), principal)
        return path

    def change_key(self, principal: str) -> None:
        """Give a principal another key; its keytab no longer works."""
        self._run("kadmin.local", "cpw", "-randkey", principal)

    def remove(self, principal: str) -> None:
        """Remove a principal; keytabs that hold its key stay."""
        self._run("kadmin.local", "delprinc", "-force", principal)

    def full_name(self, principal: str) -> str:
        """Return a principal's name with the realm."""
        return f"{principal}@{self.realm}"

    def _run(self, tool: str, *arguments: str) -> None:
        command = [_tool(tool), "-r", self.realm, *arguments]
        program = Program(tool, command, log=self._folder / f"{tool}.log", env=self._server_env)
        program.start()
        program.wait_end(progress=self._progress)


def _tool(name: str) -> str:
    return _path(name) or name


def _path(name: str) -> str | None:
    # Debian has the server's programs where only root's PATH leads.
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
