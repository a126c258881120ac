"""What the demo makes of the example DAGs, and of Spark's settings."""

from pathlib import Path

from demo.environment import ROOT, copy_dags
from stack import spark


def test_each_demo_has_an_archive_of_its_own(tmp_path: Path) -> None:
    """The copied DAG names it; all else is as in dags/."""
    archive = tmp_path / "archive"
    copied = copy_dags(tmp_path / "dags", archive=archive)
    original = ROOT / "dags" / "mm2_archive_syncs.py"
    text = (copied / original.name).read_text()
    assert f'"{archive}"' in text
    assert text.replace(str(archive), "/tmp/mm2-syncs") == original.read_text()  # noqa: S108
    for name in ("mm2_failover.py", "orders_stream.py", "jobs/orders_stream.py", ".airflowignore"):
        assert (copied / name).read_bytes() == (ROOT / "dags" / name).read_bytes()


def test_spark_gets_the_settings_of_a_storage(tmp_path: Path) -> None:
    """They stand after the stack's own, in the file that SPARK_CONF_DIR names."""
    jar, python = tmp_path / "a.jar", Path("/usr/bin/python3")
    env = spark.configure(tmp_path / "conf", [jar], python, conf={"spark.hadoop.x": "1"})
    lines = (Path(env["SPARK_CONF_DIR"]) / "spark-defaults.conf").read_text().splitlines()
    assert lines[0] == f"spark.jars {jar}"
    assert lines[-1] == "spark.hadoop.x 1"
