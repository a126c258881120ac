"""The manifest: which jobs a fleet failover moves, and by which settings.

``parse_manifest`` checks all that the file alone can tell; ``places`` compares the locations.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import isnan
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from airflow_mm2_offsets.collected_errors import Problems
from airflow_mm2_offsets.errors import ConfigurationError, did_you_mean
from airflow_mm2_offsets.fleet.job import FleetJob
from airflow_mm2_offsets.fleet.order import order_jobs
from airflow_mm2_offsets.fleet.yaml_lines import Document, Path, parse_yaml
from airflow_mm2_offsets.logins import without_login

REQUIRED = ("stream_dag_id", "source_folder", "target_folder")
"""A job or the defaults must say them."""
LOCATIONS = frozenset(
    {
        *("source_folder", "target_folder", "source_output", "target_output"),
        *("spark_folder", "saved_positions"),
    }
)
"""The fields that name a folder."""


def parse_manifest(text: str, file: str, *, waves: int | None = None) -> tuple[FleetJob, ...]:
    """Return the jobs of a manifest in the order in which they begin.

    Args:
        text: The file's content, YAML or JSON.
        file: What messages call it.
        waves: How many waves the DAG has; None: any number.

    Raises:
        ConfigurationError: The file is no manifest. Fields are checked first, then names and
            waves, then the order; the first check that fails names all that it finds.
    """
    document = parse_yaml(text, file)
    problems = Problems()
    problems.add(*_login_problems(document), *_schema_problems(document))
    problems.raise_all(file=file)
    jobs = [_job(document, number, problems) for number in range(len(document.content["jobs"]))]
    known = [job for job in jobs if job is not None]
    problems.add(*_name_problems(known), *_wave_problems(known, waves))
    problems.raise_all(file=file)
    return order_jobs(known, file)


@cache
def manifest_schema() -> Mapping[str, Any]:
    """Return the JSON schema of a manifest."""
    text = files("airflow_mm2_offsets.fleet").joinpath("manifest.schema.json").read_text("utf-8")
    schema: Mapping[str, Any] = json.loads(text)
    return schema


def _schema_problems(document: Document) -> Iterator[ConfigurationError]:
    validator = Draft202012Validator(manifest_schema())
    found = sorted(validator.iter_errors(document.content), key=lambda each: str(each.path))
    for error in found:
        yield _problem(document, tuple(error.absolute_path), _sentence(error))
    # A schema's limits let it pass, and JSON has no such number.
    for path, value in _numbers(document.content):
        if isnan(value):
            yield _problem(document, path, f"{value} is not a number; give seconds")


def _login_problems(document: Document) -> Iterator[ConfigurationError]:
    """Yield the locations that hold a login, without it: what is read goes to XCom and logs."""
    for path, value in _texts(document.content):
        if set(path) & LOCATIONS and without_login(value) != value:
            yield _problem(
                document,
                path,
                "holds a login; keep it in an Airflow connection, and write "
                "<protocol>://<conn_id>@<bucket>/<folder>",
            )


def _numbers(content: Any) -> Iterator[tuple[Path, float]]:  # noqa: ANN401 - of any kind
    yield from ((path, each) for path, each in _values(content) if isinstance(each, float))


def _texts(content: Any) -> Iterator[tuple[Path, str]]:  # noqa: ANN401 - of any kind
    yield from ((path, each) for path, each in _values(content) if isinstance(each, str))


def _values(content: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:  # noqa: ANN401 - of any kind
    """Yield what is neither a list nor a mapping, with the keys that lead to it."""
    inner: Iterable[tuple[str | int, Any]] = ()
    if isinstance(content, (dict, list)):
        inner = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in inner:
        yield from _values(value, (*path, key))
    if not isinstance(content, (dict, list)):
        yield path, content


def _sentence(error: ValidationError) -> str:
    if error.validator == "additionalProperties":
        known = error.schema["properties"]
        unknown = [str(name) for name in error.instance if name not in known]
        hints = (
            f"{name!r}, {did_you_mean(name, known, otherwise='which no field is called')}"
            for name in unknown
        )
        return f"has the unknown {', and '.join(hints)}; correct or remove it"
    # It may quote a whole value.
    return f"{without_login(error.message)}; see docs/fleet.md for what a manifest holds"


def _problem(document: Document, path: Path, problem: str) -> ConfigurationError:
    content, name = document.content, ""
    if path[:1] == ("jobs",) and len(path) > 1 and isinstance(content["jobs"], list):
        job = content["jobs"][path[1]]  # type: ignore[index]
        name = f" of job {job['name']}" if isinstance(job, dict) and "name" in job else ""
    line = document.line(path)
    shown = ".".join(map(str, path)) or "the manifest"
    return ConfigurationError(f"line {line}: {shown}{name}: {problem}")


def _job(document: Document, number: int, problems: Problems) -> FleetJob | None:
    """Return a job with the defaults; None if it lacks a field, which is a problem."""
    own = document.content["jobs"][number]
    name = own["name"]
    defaults = {
        key: value.replace("{name}", name) if isinstance(value, str) else value
        for key, value in (document.content.get("defaults") or {}).items()
    }
    values = {**defaults, **own}
    if missing := [each for each in REQUIRED if each not in values]:
        problem = f"lacks {', '.join(missing)}; name it there or in defaults"
        problems.add(_problem(document, ("jobs", number), problem))
        return None
    for each in ("source_folder", "target_folder"):
        values[each] = values[each].rstrip("/") or "/"
    outputs = {
        f"{side}_output": values.get(f"{side}_output") or f"{values[f'{side}_folder']}/output"
        for side in ("source", "target")
    }
    line = document.line(("jobs", number))
    return FleetJob.from_json({**values, **outputs, "line": line})


def _name_problems(jobs: Sequence[FleetJob]) -> Iterator[ConfigurationError]:
    first: dict[str, FleetJob] = {}
    for job in jobs:
        other = first.setdefault(job.name, job)
        if other is not job:
            yield ConfigurationError(
                f"line {job.line}: the name {job.name} is that of the job at line {other.line}, "
                f"too; give each job its own"
            )
    for job in jobs:
        for name in job.after:
            if name not in first:
                hint = did_you_mean(name, first, otherwise="add that job, or remove the name")
                yield ConfigurationError(
                    f"line {job.line}: after of job {job.name} names {name}, and the manifest has "
                    f"no such job; {hint}"
                )


def _wave_problems(jobs: Sequence[FleetJob], waves: int | None) -> Iterator[ConfigurationError]:
    for job in jobs:
        if waves is not None and job.wave > waves:
            yield ConfigurationError(
                f"line {job.line}: wave of job {job.name} is {job.wave}, and the DAG has {waves} "
                f"waves; give fleet_tasks more waves, or name an earlier one"
            )
