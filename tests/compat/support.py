"""Binaries under test, scripts of the model, and directories that are removed at the end."""

import os
import tempfile
import unittest
from pathlib import Path


def binary(variable: str) -> str:
    """Returns the path in a variable; a binary that is missing fails the test and is never skipped."""
    path = os.environ.get(variable)
    if not path:
        raise RuntimeError(f"set {variable} to the path of the binary under test")
    return path


class CompatTest(unittest.IsolatedAsyncioTestCase):
    """A test with a working directory, a directory of journals, and the environment of the binary."""

    maxDiff = None

    def set_up(self, script: str) -> None:
        root = tempfile.TemporaryDirectory(prefix="pintle-compat-")
        self.addCleanup(root.cleanup)
        self.directory = Path(root.name, "work")
        state = Path(root.name, "state")
        self.directory.mkdir()
        state.mkdir()
        file = Path(root.name, "script.toml")
        file.write_text(f'name = "compat"\n{script}')
        self.env = {
            "HOME": root.name,
            "COMPAT_SCRIPT": str(file),
            "COMPAT_STATE": str(state),
            **{name: os.environ[name] for name in ("PATH", "PINTLE_BINARY") if name in os.environ},
        }
