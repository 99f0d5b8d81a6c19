"""Writes the suite of the programs in this directory to $OUT.

The test of a program is visible to the agent, and the original one judges it.
"""

import json
import os
import pathlib
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent


def quote(value):
    """Returns a string or a list of strings in TOML."""
    return json.dumps(value, ensure_ascii=False)


def is_test(name):
    return name.split("/")[-1].startswith(("test", "expected"))


def files(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


def task(program):
    manifest = tomllib.loads((program / "program.toml").read_text())
    changed = files(program / "fixed") + manifest.get("delete", [])
    names = [name for name in files(program / "program") if is_test(name) and name not in changed]
    lines = [
        "[[task]]",
        f"id = {quote(program.name)}",
        f"prompt = {quote(manifest['bug'])}",
        f"files = {quote(str(program / 'program'))}",
        f"restore = {quote(names)}",
        f"fail_to_pass = {quote([manifest['test']])}",
        f"tags = {quote([manifest['language']])}",
        "timeout_s = 60",
        f"gold.delete = {quote(manifest.get('delete', []))}",
        f"contract.anchor = {{ kind = 'command', command = {quote(manifest['test'])} }}",
        f"contract.scope = {{ unprotected = {quote(changed)} }}",
    ]
    if (program / "fixed").is_dir():
        lines.append(f"gold.files = {quote(str(program / 'fixed'))}")
    return "\n".join(lines) + "\n"


programs = sorted(path.parent for path in ROOT.glob("*/program.toml"))
text = 'name = "programs"\n\n' + "\n".join(map(task, programs))
(pathlib.Path(os.environ["OUT"]) / "suite.toml").write_text(text)
