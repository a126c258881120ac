"""The contract of a room: import-linter calls it for each contract of type ``room``."""

import sys
from itertools import accumulate

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class RoomContract(Contract):
    """A room imports the standard library, itself, and what ``may_import`` lists: nothing else.

    Import-linter's own ``forbidden`` names what is forbidden, so it passes over a package that
    nobody has thought of.
    """

    type_name = "room"

    room = fields.StringField()
    """A module; its submodules belong to the room."""
    may_import = fields.SetField(subfield=fields.StringField(), default=set())
    """Rooms and other packages, with their submodules; the package's own name: ``__init__``."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002, FBT001
        """Find the imports that are not allowed."""
        package = self.session_options["root_packages"][0]
        room = f"{package}.{self.room}"
        allowed = {room, *sys.stdlib_module_names, *self.may_import}
        allowed |= {f"{package}.{name}" for name in self.may_import}
        foreign = sorted(
            (module, imported)
            for module in {room} | graph.find_descendants(room)
            for imported in graph.find_modules_directly_imported_by(module)
            if not _is_in(imported, allowed, package)
        )
        return ContractCheck(kept=not foreign, metadata={"foreign": foreign})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Name each import that is not allowed."""
        for module, imported in check.metadata["foreign"]:
            output.print_error(f"{module} imports {imported}; {self.room} may not", bold=False)


def _is_in(module: str, allowed: set[str], package: str) -> bool:
    """Tell whether a module is allowed, or one that holds it; the package itself holds no room."""
    holders = accumulate(module.split("."), "{}.{}".format)
    return module in allowed or any(each in allowed - {package} for each in holders)
