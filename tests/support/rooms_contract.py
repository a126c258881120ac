"""The contract between the rooms: import-linter runs it with the table in pyproject.toml."""

import sys
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

Table = dict[str, list[str]]


class _TableField(fields.Field[Table]):
    def parse(self, raw_data: Any) -> Table:  # noqa: ANN401 - as TOML has it
        if not isinstance(raw_data, dict):
            raise fields.ValidationError("give a table: room = [what it may import]")
        return {room: list(names) for room, names in raw_data.items()}


class RoomsContract(Contract):
    """A room imports the standard library, itself, and what its row lists: nothing else.

    Import-linter's own ``forbidden`` lists what is forbidden, so it allows every package that is
    missing from the list.
    """

    type_name = "rooms"

    may_import: Any = _TableField()
    """For each room, a module with its submodules, what it may import: rooms and other packages,
    with their submodules; the package's own name stands for its ``__init__``. A part of a room may
    have a row of its own, such as ``job.stop``."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002, FBT001
        """Find imports that no row allows, and rooms without a row."""
        package = self.session_options["root_packages"][0]
        rooms = {each.removeprefix(f"{package}.") for each in graph.find_children(package)}
        problems = [f"{room} has no row" for room in sorted(rooms - self.may_import.keys())]
        for room in self.may_import:
            problems += sorted(self._foreign_imports(graph, package, room))
        return ContractCheck(kept=not problems, metadata={"problems": problems})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Name each problem."""
        for problem in check.metadata["problems"]:
            output.print_error(problem, bold=False)

    def _foreign_imports(self, graph: ImportGraph, package: str, room: str) -> Iterator[str]:
        names: list[str] = self.may_import[room]
        here = f"{package}.{room}"
        allowed = {here, *sys.stdlib_module_names, *names, *(f"{package}.{name}" for name in names)}
        for module in {here} | graph.find_descendants(here):
            for imported in graph.find_modules_directly_imported_by(module):
                # An import of the package's own name is of its ``__init__``, not of its rooms.
                holders = {*accumulate(imported.split("."), "{}.{}".format)} - {package}
                if not (holders | {imported}) & allowed:
                    yield f"{module} imports {imported}; {room} may not"
