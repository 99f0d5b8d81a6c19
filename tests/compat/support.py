"""Binaries under test, scripts of the model, and homes that are removed at the end."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path


def binary(variable: str) -> str:
    """Returns the path in a variable; a binary that is missing fails the test and is never skipped."""
    path = os.environ.get(variable)
    if not path:
        raise RuntimeError(f"set {variable} to the path of the binary under test")
    return path


# Directory for homes. It must not be below `/tmp` or `/var/tmp`, which the sandbox replaces; `cargo xtask` selects it.
HOMES = os.environ.get("TEST_HOMES") or str(Path.home().resolve())


class CompatTest(unittest.IsolatedAsyncioTestCase):
    """A test with the home of a user, who has a git configuration and a repository with a commit, and with the environment of the
    binary."""

    maxDiff = None

    def set_up(self, script: str) -> None:
        home = tempfile.TemporaryDirectory(prefix="home-", dir=HOMES)
        self.addCleanup(home.cleanup)
        self.home = Path(home.name)
        self.directory = self.home / "work"
        state = self.home / "state"
        self.directory.mkdir()
        state.mkdir()
        file = self.home / "script.toml"
        file.write_text(f'name = "compat"\n{script}')
        (self.home / ".gitconfig").write_text("[user]\n\tname = A User\n\temail = user@example.org\n")
        self.env = {
            "HOME": str(self.home),
            "COMPAT_SCRIPT": str(file),
            "COMPAT_STATE": str(state),
            **{name: os.environ[name] for name in ("PATH", "PINTLE_BINARY") if name in os.environ},
        }
        self.run_program("git", "init", "--quiet")
        self.run_program("git", "commit", "--quiet", "--allow-empty", "--message=first")

    def run_program(self, *words: str) -> str:
        """Runs a program as the user in the repository, and returns its output."""
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        return subprocess.run(words, cwd=self.directory, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
