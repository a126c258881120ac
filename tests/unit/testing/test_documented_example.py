"""The example of docs/testing.md, run as it is written there."""

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"


def test_the_documented_example_passes() -> None:
    """Each test of the page's code block passes when its text is executed."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)  # noqa: S102 - the page's own example
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()
