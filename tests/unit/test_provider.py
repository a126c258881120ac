"""The provider's description, as Airflow reads it."""

import json
from importlib.metadata import entry_points, version
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService
from airflow.providers_manager import ProvidersManager

from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.operators.long_result_options import XCOM_MAX_BYTES
from airflow_mm2_offsets.provider import get_provider_info
from airflow_mm2_offsets.spark.offsets_file import MAX_ARGUMENT_BYTES

INFO = get_provider_info()
(MM2,) = INFO["connection-types"]


def _schema(name: str) -> Any:  # noqa: ANN401 - JSON
    return json.loads(files("airflow").joinpath(name).read_text())


def test_the_info_matches_airflows_schema() -> None:
    """Airflow's schema of a provider's info accepts it."""
    jsonschema.validate(INFO, _schema("provider_info.schema.json"))


def test_the_guides_exist() -> None:
    """Airflow's schema of a provider.yaml accepts the integration, and its guides are pages."""
    kinds = _schema("provider.yaml.schema.json")["properties"]["integrations"]
    jsonschema.validate(INFO["integrations"], kinds)
    (integration,) = INFO["integrations"]
    root = Path(__file__).parents[2]
    assert [page for page in integration["how-to-guide"] if not (root / page[1:]).is_file()] == []


@pytest.mark.parametrize("part", ["conn-fields", "ui-field-behaviour"])
def test_the_form_matches_airflows_schema(part: str) -> None:
    """Airflow's schema of connection forms accepts every field and label."""
    kinds = _schema("provider.yaml.schema.json")["properties"]["connection-types"]["items"]
    if part not in kinds["properties"]:
        pytest.skip("forms are declared like this from Airflow 3.2 on")
    jsonschema.validate(MM2[part], kinds["properties"][part])


def test_the_package_name_is_the_distribution() -> None:
    """Airflow loads no provider at all if one provider's name differs from its distribution's."""
    (entry,) = (
        point
        for point in entry_points(group="apache_airflow_provider")
        if point.module == "airflow_mm2_offsets.provider"
    )
    assert entry.dist is not None
    assert entry.dist.name == INFO["package-name"]
    assert entry.load()() == INFO
    assert INFO["versions"] == [version("airflow-mm2-offsets")]


def test_airflow_lists_the_connection_type() -> None:
    """Airflow finds the type, its hook and a Test button; the hook's attributes agree."""
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
    """Each field is in the form with its label, help, default and choices, on every Airflow."""
    ProvidersManager()._cleanup()  # noqa: SLF001 - a test before this one may have listed the hooks
    HookMetaService.hook_meta_data.cache_clear()
    (form,) = (meta for meta in HookMetaService.hook_meta_data() if meta.connection_type == "mm2")
    assert form.extra_fields is not None
    assert form.extra_fields.keys() == MM2["conn-fields"].keys()
    for name, field in MM2["conn-fields"].items():
        shown = form.extra_fields[name]
        assert shown["schema"]["title"] == field["label"]
        assert shown["description"] == field["description"]
        assert shown["value"] == field["schema"].get("default")
        assert shown["schema"].get("enum") == field["schema"].get("enum")
        assert shown["schema"].get("format") != "password"
    standard = form.standard_fields
    assert standard is not None
    assert standard.host is not None
    assert standard.host.hidden
    assert standard.login is not None
    assert standard.login.title == "Kafka Connect user"
    assert standard.password is not None
    assert standard.password.placeholder == "only if Kafka Connect asks for a login"


def test_the_airflow_of_the_tests_is_private(airflow_home: str) -> None:
    """Tests read and write only their own temporary Airflow home."""
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


def test_the_sizes_are_described_as_they_are() -> None:
    """Airflow takes the defaults from the description, and not from the constants."""
    options = INFO["config"]["mm2_offsets"]["options"]
    assert options["argument_max_bytes"]["default"] == str(MAX_ARGUMENT_BYTES)
    assert options["xcom_max_bytes"]["default"] == str(XCOM_MAX_BYTES)
