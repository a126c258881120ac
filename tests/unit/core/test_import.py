"""The core needs nothing but Python."""

import subprocess
import sys

PROGRAM = """
import sys
before = set(sys.modules)
sys.modules.update(airflow=None, confluent_kafka=None)
import airflow_mm2_offsets.core
new = {name.partition(".")[0] for name in set(sys.modules) - before}
ours = {"airflow_mm2_offsets", "airflow", "confluent_kafka"}
print(*sorted(new - set(sys.stdlib_module_names) - ours))
"""


def test_the_core_imports_the_standard_library_alone() -> None:
    """With Airflow and confluent-kafka absent the core imports, and loads no other package."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == ""
