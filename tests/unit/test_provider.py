"""What Airflow learns of the package."""

import json
from importlib.metadata import entry_points, version
from importlib.resources import files
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from airflow.providers_manager import ProvidersManager

from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.provider import get_provider_info

INFO = get_provider_info()
(MM2,) = INFO["connection-types"]


def _schema(name: str) -> Any:  # noqa: ANN401 - JSON
    return json.loads(files("airflow").joinpath(name).read_text())


def test_the_info_is_what_airflow_reads() -> None:
    """Airflow's own schema of a provider's info takes it."""
    jsonschema.validate(INFO, _schema("provider_info.schema.json"))


@pytest.mark.parametrize("part", ["conn-fields", "ui-field-behaviour"])
def test_the_form_is_what_airflow_reads(part: str) -> None:
    """Airflow's own schema of connection forms takes each field and each label."""
    kinds = _schema("provider.yaml.schema.json")["properties"]["connection-types"]["items"]
    if part not in kinds["properties"]:
        pytest.skip("forms are declared like this from Airflow 3.2 on")
    jsonschema.validate(MM2[part], kinds["properties"][part])


def test_the_name_is_the_distributions() -> None:
    """Airflow gives up on all providers where one bears another name than its distribution."""
    (entry,) = (
        each
        for each in entry_points(group="apache_airflow_provider")
        if each.module == "airflow_mm2_offsets.provider"
    )
    assert entry.dist is not None
    assert entry.dist.name == INFO["package-name"]
    assert entry.load()() == INFO
    assert INFO["versions"] == [version("airflow-mm2-offsets")]


def test_airflow_lists_the_connection_type() -> None:
    """Airflow finds the type, its hook and a Test button; the hook says the same of itself."""
    manager = ProvidersManager()
    manager.initialize_providers_list()
    assert manager.providers["airflow-mm2-offsets"].data["connection-types"] == [MM2]
    hook = _registered(manager)
    assert hook.connection_type == MM2["connection-type"] == Mm2OffsetHook.conn_type
    assert hook.connection_id_attribute_name == Mm2OffsetHook.conn_name_attr
    assert hook.hook_name == MM2["hook-name"] == Mm2OffsetHook.hook_name
    assert hook.connection_testable
    assert hook.hook_class_name == f"{Mm2OffsetHook.__module__}.{Mm2OffsetHook.__qualname__}"


def test_airflow_shows_the_form() -> None:
    """Every field is in the form under its own name, the choices as choices; none is a secret."""
    manager = ProvidersManager()
    widgets = manager.connection_form_widgets
    found = {each.field_name: each for name, each in widgets.items() if "__mm2__" in name}
    if not found:
        pytest.skip("forms are declared like this from Airflow 3.2 on")
    assert found.keys() == MM2["conn-fields"].keys()
    assert found["replication_policy"].field["schema"]["enum"] == ["default", "identity"]
    assert found["offset_syncs_topic_location"].field["schema"]["enum"] == ["source", "target"]
    assert not any(each.is_sensitive for each in found.values())
    assert manager.field_behaviours["mm2"]["hidden_fields"] == ["schema", "port", "host"]


def test_the_airflow_of_the_tests_is_private(airflow_home: str) -> None:
    """No test reads or writes the home of an Airflow that is not the tests' own."""
    from airflow.configuration import AIRFLOW_HOME, conf  # noqa: PLC0415 - after its import

    assert airflow_home == AIRFLOW_HOME
    assert airflow_home in conf.get("database", "sql_alchemy_conn")


def _registered(manager: ProvidersManager) -> Any:  # noqa: ANN401 - its class moved in 3.2
    try:  # from 3.2 on, asking the manager warns
        from airflow.sdk.providers_manager_runtime import (  # noqa: PLC0415
            ProvidersManagerTaskRuntime,
        )
    except ImportError:
        return manager.hooks["mm2"]
    return ProvidersManagerTaskRuntime().hooks["mm2"]
