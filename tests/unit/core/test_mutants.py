"""The changes that ``make mutants`` tries."""

import ast
from itertools import islice
from pathlib import Path

from tests.support.mutants import FILES, mutants_of

ROOT = Path(__file__).parents[3]
RULE = """
def rule(low, high, found):
    assert low < high
    if found and not low:
        return min(low + 1, high)
    return [each for each in found if each]
"""


def test_each_change_is_made_once(tmp_path: Path) -> None:
    """Comparisons, conditions, ends and the one that is added; assertions stay."""
    (tmp_path / "rule.py").write_text(RULE)
    changes = {(each.old, each.new) for each in mutants_of(tmp_path / "rule.py", tmp_path)}
    assert changes == {
        ("found and (not low)", "False"),
        ("found and (not low)", "found or not low"),
        ("found and (not low)", "found"),
        ("found and (not low)", "not low"),
        ("not low", "low"),
        ("min(low + 1, high)", "max(low + 1, high)"),
        ("low + 1", "low"),
        ("[each for each in found if each]", "[each for each in found]"),
    }


def test_each_changed_file_is_python() -> None:
    """And differs from the file."""
    for path in (ROOT / name for name in FILES):
        if path.exists():
            for mutant in islice(mutants_of(path, ROOT), 0, None, 100):
                assert mutant.source != path.read_bytes()
                ast.parse(mutant.source)
