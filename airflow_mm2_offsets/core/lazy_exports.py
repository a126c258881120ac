"""Imports what a package exports on its first use (PEP 562); ``__init__`` files call it.

It is in this room because every room may import it.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def import_on_first_use(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package.

    Args:
        package: The package's ``__name__``.
        modules: The exported names, and the module of the package that each is in.
    """

    def find(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
