"""Keeps secrets out of what Airflow stores of a task's rendered fields: its database and its page.

``ApplyMirrorMakerOperator`` derives from it. Airflow's own masker knows few of Kafka's names, and
would hide a value everywhere, such as a topic's name that is also an argument of a transform.
"""

from collections.abc import Mapping
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_mm2_offsets.connect.redaction import shown
from airflow_mm2_offsets.kafka.redaction import STARS


class SecretSettings(BaseOperator):
    """The base of an operator whose fields hold settings of connectors.

    Once they are rendered, the fields show stars for what may be a secret; ``rendered`` returns
    the settings themselves.
    """

    secret_fields: tuple[str, ...] = ()
    """The template fields that hold settings by name."""

    def __init__(self, **kwargs: Any) -> None:
        """Begin with nothing rendered."""
        super().__init__(**kwargs)
        self._templates: dict[str, Any] = {}
        self._rendered: dict[str, Any] = {}

    def rendered(self, field: str) -> Any:  # noqa: ANN401 - of any kind
        """Return a field's settings, with their secrets."""
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


def _shown(settings: object) -> object:
    if isinstance(settings, Mapping):
        return {str(name): shown(str(name), value) for name, value in settings.items()}
    return settings and STARS
