"""Writes the suite `long` to $OUT: for each goal the directories base, gold and hidden, and steps/N with the files that step N
changes. A script of a planner can apply the steps one after another."""

import json
import os
import pathlib

import goals

OUT = pathlib.Path(os.environ["OUT"])

VISIBLE = "python3 -B -m unittest discover --start-directory tests --top-level-directory ."


def write(directory, files):
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def task(goal):
    """Writes the files of a goal, and returns its entry in suite.toml."""
    root = OUT / goal.name
    write(root / "base", goal.base)
    removed = []
    for number, step in enumerate(goal.steps, 1):
        write(root / "steps" / str(number), step.files)
        write(root / "steps" / str(number), {".removed": "".join(f"{name}\n" for name in step.removed)})
        write(root / "gold", step.files)
        write(root / "hidden", {f"hidden/step_{number}.py": step.test})
        removed += step.removed
    tests = [f"PYTHONPATH=. python3 -B hidden/step_{number}.py" for number in range(1, len(goal.steps) + 1)]
    lines = [
        "[[task]]",
        f"id = {json.dumps(goal.name)}",
        f"prompt = {json.dumps(goal.prompt)}",
        f'files = "{goal.name}/base"',
        f'hidden = "{goal.name}/hidden"',
        f"fail_to_pass = {json.dumps(tests)}",
        f"pass_to_pass = {json.dumps([VISIBLE])}",
        'restore = ["tests"]',
        'tags = ["Python", "long"]',
        "timeout_s = 60",
        f'gold = {{ files = "{goal.name}/gold", delete = {json.dumps(removed)} }}',
        "[[task.contract.check]]",
        'name = "tests"',
        f"command = {json.dumps(VISIBLE)}",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    entries = [task(goal) for goal in goals.all_goals()]
    (OUT / "suite.toml").write_text('name = "long"\n\n' + "\n".join(entries))
