"""What Spring Boot would hand to mm2-offset-map: files, variables and ``SPRING_APPLICATION_JSON``.

The rules are those of "Externalized Configuration" in Spring Boot's reference. ``sources`` calls
``SpringSettings``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_mm2_offsets.config.entries import Entries, Entry, flatten
from airflow_mm2_offsets.config.kubernetes_links import is_service_link
from airflow_mm2_offsets.config.mm2_offset_map_compat import (
    looks_like_mm2_offset_map,
    translate_settings,
)
from airflow_mm2_offsets.config.spring.placeholders import resolve_placeholders
from airflow_mm2_offsets.errors import ConfigurationError

SPRING_JSON = "SPRING_APPLICATION_JSON"
_SERVER = {"SERVER_PORT": "server.port", "SERVER_ADDRESS": "server.address"}
"""Spring Boot's variables of the server; other programs use such names too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpringSettings:
    """The properties of a file and of the environment, with Spring's precedence.

    The file's come first, variables take precedence over it, and ``SPRING_APPLICATION_JSON`` over
    variables.
    """

    file: Entries = field(repr=False)
    """All keys of the file's active documents: placeholders may refer to any."""
    environ: Mapping[str, str] = field(repr=False)
    json: Entries = field(repr=False)

    def of_file(self) -> Entries:
        """Return the file's settings of mm2-offset-map under this package's keys."""
        return self._translate(self.file)

    def of_environment(self) -> Entries:
        """Return the settings of mm2-offset-map in variables and in the JSON."""
        variables = {
            _SERVER.get(variable, variable): Entry(value=value, origin=f"variable {variable}")
            for variable, value in self.environ.items()
            if not is_service_link(variable, value)
        }
        return self._translate(variables | self.json)

    @property
    def _in_use(self) -> bool:
        keys = (*self.file, *self.environ, *self.json)
        return any(map(looks_like_mm2_offset_map, keys))

    def _translate(self, entries: Entries) -> Entries:
        if not self._in_use:
            return {}
        concerned = {
            key: entry
            for key, entry in entries.items()
            if looks_like_mm2_offset_map(key) or key in _SERVER.values()
        }
        return translate_settings(
            {key: resolve_placeholders(entry, self._look_up) for key, entry in concerned.items()}
        )

    def _look_up(self, name: str) -> str | None:
        """Return the property that a placeholder names."""
        variable = name.replace(".", "_").replace("-", "_").upper()
        if entry := self.json.get(name):
            return entry.value
        for candidate in (name, variable):
            if candidate in self.environ:
                return self.environ[candidate]
        found = self.file.get(name)
        return found.value if found else None


def read_spring_json(environ: Mapping[str, str]) -> Entries:
    """Return the properties of the variable ``SPRING_APPLICATION_JSON``, if it is set."""
    origin = f"variable {SPRING_JSON}"
    try:
        settings = dict(flatten(json.loads(environ.get(SPRING_JSON) or "{}")))
    except ValueError:
        raise ConfigurationError("is not a JSON object; correct it", setting=origin) from None
    return {key: Entry(value=value, origin=f"{key} in {origin}") for key, value in settings.items()}
