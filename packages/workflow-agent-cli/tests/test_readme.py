import re
from pathlib import Path

from workflow_register import build_bundle, check_bundle

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


async def test_the_entry_of_the_readme_can_be_bundled(tmp_path: Path) -> None:
    (script,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    entry = tmp_path / "entry.py"
    entry.write_text(script, encoding="utf-8")

    described = (await check_bundle(build_bundle(entry))).workflow

    assert list(described.roles) == ["coder", "reviewer"]
