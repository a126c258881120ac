"""Keeps secrets out of what Airflow stores of a task's rendered fields: its database and its page.

``ApplyMirrorMakerOperator`` derives from it. Airflow's own masker knows few of Kafka's names, and
would hide a value everywhere, such as a topic's name that is also an argument of a transform.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_mm2_offsets.connect.redaction import shown
from airflow_mm2_offsets.kafka.redaction import STARS

_PLAIN: Final = frozenset({"topics", "topics_exclude", "groups", "name", "kinds"})
"""The fields of a description that are no settings."""


class SecretSettings(BaseOperator):
    """The base of an operator with a field that describes connectors, as ``MirrorDescription``.

    Once it is rendered, the field shows stars for what may be a secret; ``rendered`` returns the
    description itself.
    """

    secret_fields: tuple[str, ...] = ()
    """The template fields that hold such a description."""

    def __init__(self, **kwargs: Any) -> None:
        """Begin with nothing rendered."""
        super().__init__(**kwargs)
        self._templates: dict[str, Any] = {}
        self._rendered: dict[str, Any] = {}

    def rendered(self, field: str) -> Any:  # noqa: ANN401 - of any kind
        """Return a field's description, with its secrets."""
        return self._rendered.get(field, getattr(self, field))

    def _do_render_template_fields(self, *args: Any, **kwargs: Any) -> None:
        """Render, and put stars where Airflow reads; it renders a mapped task by this method, too.

        A task that is rendered again in the same process begins with its templates.
        """
        for field in self.secret_fields:
            setattr(self, field, self._templates.setdefault(field, getattr(self, field)))
        super()._do_render_template_fields(*args, **kwargs)
        for field in self.secret_fields:
            self._rendered[field] = getattr(self, field)
            setattr(self, field, _shown(self._rendered[field]))


def _shown(mirror: object) -> object:
    """Return a description as it may be shown; an unknown field may be misspelt settings."""
    if not isinstance(mirror, Mapping):
        return mirror and STARS
    return {
        str(name): value
        if name in _PLAIN
        else _each(value, _settings if name == "settings_of" else shown)
        for name, value in mirror.items()
    }


def _settings(_: str, settings: object) -> object:
    return _each(settings, shown)


def _each(values: object, show: Callable[[str, Any], object]) -> object:
    if isinstance(values, Mapping):
        return {str(name): show(str(name), value) for name, value in values.items()}
    return values and STARS
