import subprocess
import sys
from pathlib import Path

import workflow_register


def test_all_names_what_is_public_once() -> None:
    public = {
        name
        for name, value in vars(workflow_register).items()
        if not name.startswith("_") and type(value).__name__ != "module"
    }
    # Their order is ruff's (RUF022): constants first.
    assert sorted(workflow_register.__all__) == sorted(public)


def test_importing_and_configuring_a_model_loads_no_validator_and_reads_nothing(
    tmp_path: Path,
) -> None:
    code = """
import sys
from workflow_register import configured_llm, load_config, find_home
reads = []
sys.addaudithook(lambda event, args: reads.append(args[0]) if event == "open" else None)
llm = configured_llm("extract")
assert repr(llm) == "configured_llm('extract')", llm
assert not reads, reads
load_config(find_home())
print([name for name in ("pydantic", "ruamel", "ruamel.yaml") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"UWF_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
