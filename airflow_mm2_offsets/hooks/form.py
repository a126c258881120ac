"""The connection's form for Airflow 3.1, which asks the hook for it.

From Airflow 3.2 on the provider's description is enough. Both show the same fields.
"""

from typing import Any

from airflow_mm2_offsets.provider import CONNECTION_FIELDS, FORM_BEHAVIOUR


def form_widgets() -> dict[str, Any]:
    """Return the form's fields by name, as WTForms fields.

    Airflow's API server puts its own classes in place of WTForms while it asks.
    """
    from wtforms import StringField  # noqa: PLC0415 - see above
    from wtforms.validators import any_of  # noqa: PLC0415 - see above

    return {
        name: StringField(
            field["label"],
            description=field["description"],
            default=field["schema"].get("default"),
            validators=[any_of(choices)] if (choices := field["schema"].get("enum")) else [],
        )
        for name, field in CONNECTION_FIELDS.items()
    }


def field_behaviour() -> dict[str, Any]:
    """Return which of Airflow's own fields are hidden or have another label."""
    return {key.replace("-", "_"): value for key, value in FORM_BEHAVIOUR.items()}
