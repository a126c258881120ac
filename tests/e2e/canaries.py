"""Secrets that can be recognised wherever they turn up, also in base64 and in hexadecimal."""

import secrets
from base64 import b64encode
from collections.abc import Iterator

_ALIGNMENTS = 3
"""Base64 takes three bytes at a time: a text looks otherwise at each of three places."""
_PEM_LINE = 40
"""Shorter lines of a PEM text are its ends."""


class Canaries:
    """Makes secrets, and finds them in what programs have left.

    A canary holds letters and digits only: no quoting, of JSON, JAAS, a URL or a shell, changes it.
    """

    def __init__(self) -> None:
        """Start without one."""
        self._forms: dict[str, tuple[bytes, ...]] = {}

    def make(self, name: str) -> str:
        """Return a canary, to be put into a secret."""
        canary = f"Canary{secrets.token_hex(12)}"
        self.add(name, canary)
        return canary

    def add(self, name: str, secret: str) -> None:
        """Look for a secret that somebody else has made."""
        self._forms[name] = tuple(_forms(secret.encode()))

    def add_key(self, name: str, pem: str) -> None:
        """Look for each whole line of a private key."""
        lines = [line for line in pem.splitlines() if len(line) >= _PEM_LINE and "-" not in line]
        for number, line in enumerate(lines):
            self._forms[f"{name}, line {number}"] = (line.encode(),)

    @property
    def names(self) -> frozenset[str]:
        """What is looked for."""
        return frozenset(self._forms)

    def find(self, content: bytes) -> frozenset[str]:
        """Return the names of the canaries in a content."""
        known = tuple(self._forms.items())  # another thread may add one
        return frozenset(name for name, forms in known if any(form in content for form in forms))


def _forms(secret: bytes) -> Iterator[bytes]:
    yield secret
    yield secret.hex().encode()
    for shift in range(_ALIGNMENTS):
        # What stands before and after it decides about the characters at both ends.
        encoded = b64encode(bytes(shift) + secret).rstrip(b"=")
        yield encoded[4 if shift else 0 : -2]
