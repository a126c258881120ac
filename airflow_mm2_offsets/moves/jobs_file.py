"""The file of jobs: YAML or JSON, which DAGs, the command line and the page read.

``jobs.schema.json`` has every field with its meaning.
"""

import json
from collections.abc import Hashable, Iterator, Mapping
from functools import cache, partial
from importlib.resources import files
from math import isnan
from typing import Any, Final

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from upath import UPath

from airflow_mm2_offsets.collected_errors import Problems
from airflow_mm2_offsets.errors import ConfigurationError, did_you_mean
from airflow_mm2_offsets.logins import without_login
from airflow_mm2_offsets.moves.jobs import LOCATIONS, Home, SparkJob
from airflow_mm2_offsets.storage import read_text

Path = tuple[str | int, ...]
_LOCATIONS: Final = LOCATIONS | {"homes"}


@cache
def jobs_schema() -> Mapping[str, Any]:
    """Return the JSON schema of a file of jobs."""
    text = files("airflow_mm2_offsets.moves").joinpath("jobs.schema.json").read_text("utf-8")
    schema: Mapping[str, Any] = json.loads(text)
    return schema


def read_jobs(path: UPath) -> tuple[SparkJob, ...]:
    """Return the jobs of a file.

    Raises:
        ConfigurationError: The file is not there, can't be read, or is no file of jobs. All that is
            wrong is named.
    """
    text = read_text(path, ConfigurationError)
    if text is None:
        raise ConfigurationError("there is no such file of jobs", file=without_login(str(path)))
    return parse_jobs(text, without_login(str(path)))


def find_job(jobs: tuple[SparkJob, ...], name: str, *, file: str) -> SparkJob:
    """Return the job of a name.

    Raises:
        ConfigurationError: There is none; the most similar name is shown.
    """
    by_name = {job.name: job for job in jobs}
    if name in by_name:
        return by_name[name]
    known = f"it has {', '.join(sorted(by_name)[:20])}"
    hint = did_you_mean(name, by_name, otherwise=known)
    raise ConfigurationError(f"there is no job {name!r}; {hint}", file=file)


def parse_jobs(text: str, file: str) -> tuple[SparkJob, ...]:
    """Return the jobs that a text describes.

    Args:
        text: The content, YAML or JSON.
        file: What messages call it.

    Raises:
        ConfigurationError: It is no file of jobs. All that is wrong is named.
    """
    content = _load(text, file)
    problems = Problems()
    problems.add(*_schema_problems(content), *_value_problems(content))
    problems.raise_all(file=file)
    defaults = content.get("defaults", {})
    jobs = [
        problems.attempt(partial(SparkJob.from_json, _with_defaults(own, defaults)))
        for own in content["jobs"]
    ]
    known = [job for job in jobs if job is not None]
    problems.add(*_name_problems(known), *_folder_problems(known))
    problems.raise_all(file=file)
    return tuple(known)


class _Loader(yaml.SafeLoader):  # type: ignore[misc] # PyYAML has no types here
    """Refuses a key that a mapping has twice: the first value would be lost in silence."""

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002 - PyYAML's
    ) -> dict[Hashable, Any]:
        """Return the mapping of a node."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is there twice", node.start_mark
                )
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping


def _load(text: str, file: str) -> Any:  # noqa: ANN401 - the schema checks it
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        raise ConfigurationError(f"it is no YAML: {error}", file=file) from error


def _schema_problems(content: Any) -> Iterator[ConfigurationError]:  # noqa: ANN401
    validator = Draft202012Validator(jobs_schema())
    for error in sorted(validator.iter_errors(content), key=lambda each: str(each.path)):
        yield _problem(content, tuple(error.absolute_path), _sentence(error))


def _value_problems(content: Any, path: Path = ()) -> Iterator[ConfigurationError]:  # noqa: ANN401
    """Yield what a schema can't say: a login in a location, and a number that is none."""
    items: Any = ()
    if isinstance(content, (dict, list)):
        items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        yield from _value_problems(value, (*path, key))
    if isinstance(content, float) and isnan(content):
        yield ConfigurationError(f"{_shown(path)}: {content} is not a number; give seconds")
    if isinstance(content, str) and _LOCATIONS & set(path) and without_login(content) != content:
        yield ConfigurationError(
            f"{_shown(path)}: holds a login; keep it in an Airflow connection, and write "
            f"<protocol>://<conn_id>@<bucket>/<folder>"
        )


def _sentence(error: ValidationError) -> str:
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        unknown = [str(name) for name in error.instance if name not in known]
        hints = (
            f"{name!r}, {did_you_mean(name, known, otherwise='which no field is called')}"
            for name in unknown
        )
        return f"has the unknown {', and '.join(hints)}; correct or remove it"
    return without_login(error.message)


def _problem(content: Any, path: Path, problem: str) -> ConfigurationError:  # noqa: ANN401
    job = content["jobs"][path[1]] if path[:1] == ("jobs",) and len(path) > 1 else None
    name = f" of job {job['name']}" if isinstance(job, dict) and "name" in job else ""
    return ConfigurationError(f"{_shown(path)}{name}: {problem}")


def _shown(path: Path) -> str:
    return ".".join(map(str, path)) or "the file"


def _with_defaults(own: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {**_named(defaults, own["name"]), **own}


def _named(value: Any, name: str) -> Any:  # noqa: ANN401 - of any kind
    """Return a default with the job's name in the place of ``{name}``."""
    if isinstance(value, str):
        return value.replace("{name}", name)
    if isinstance(value, dict):
        return {key: _named(inner, name) for key, inner in value.items()}
    return value


def _name_problems(jobs: list[SparkJob]) -> Iterator[ConfigurationError]:
    names = [job.name for job in jobs]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield ConfigurationError(f"two jobs are called {name}; give each its own name")
    for job in jobs:
        for name in job.after:
            if name not in names:
                hint = did_you_mean(name, names, otherwise="add that job, or remove the name")
                yield ConfigurationError(
                    f"after of job {job.name} names {name}, and the file has no such job; {hint}"
                )


def _folder_problems(jobs: list[SparkJob]) -> Iterator[ConfigurationError]:
    """Yield which jobs would use one folder, for a first stay or a later one."""
    owners = {home.folder: job.name for job in jobs for home in job.homes}
    for job in jobs:
        for home in job.homes:
            around = Home(cluster=home.cluster, folder=home.folder.rpartition("/")[0])
            folders = [home.folder, *([around.folder] if around.stay_in(home.folder) else [])]
            for other in {owners.get(each, job.name) for each in folders} - {job.name}:
                yield ConfigurationError(
                    f"the jobs {job.name} and {other} share the folder {home.folder}: each stay of "
                    f"a job has a folder of its own; give another one"
                )
