"""What the demo makes of the example DAGs, and of Spark's settings."""

from pathlib import Path

from demo.environment import ROOT, copy_dags
from stack import spark


def test_the_demo_runs_the_examples_as_they_are(tmp_path: Path) -> None:
    """Nothing is replaced in them: the folders of a demo are Airflow's variables."""
    copied = copy_dags(tmp_path / "dags")
    names = [path.name for path in (ROOT / "dags").glob("*.py")]
    assert names
    for name in (*names, "jobs/orders_stream.py", ".airflowignore"):
        assert (copied / name).read_bytes() == (ROOT / "dags" / name).read_bytes()


def test_spark_gets_the_settings_of_a_storage(tmp_path: Path) -> None:
    """They stand after the stack's own, in the file that SPARK_CONF_DIR names."""
    jar, python = tmp_path / "a.jar", Path("/usr/bin/python3")
    env = spark.configure(tmp_path / "conf", [jar], python, conf={"spark.hadoop.x": "1"})
    lines = (Path(env["SPARK_CONF_DIR"]) / "spark-defaults.conf").read_text().splitlines()
    assert lines[0] == f"spark.jars {jar}"
    assert lines[-1] == "spark.hadoop.x 1"
