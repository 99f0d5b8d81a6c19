"""Predictions of `pintle eval`, with the code of the published harness that reads and selects them."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from swebench.harness.run_evaluation import get_dataset_from_preds
from swebench.harness.utils import get_predictions_from_file
from unidiff import PatchSet

# Solves the first instance, reports the second one as blocked with a change, and changes nothing in the third one.
AGENT = """case $1 in
*2*) echo 2 >value.txt ;;
*3*) echo 3 >value.txt; printf 'a\\0b' >data.bin; exit 1 ;;
esac
"""

SUITE = """name = "swe"
[instances]
file = "instances.jsonl"
repositories = "mirrors"
test = "sh {files}"
results = "tap"
"""


class PredictionsTest(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory(prefix="home-", dir=os.environ.get("TEST_HOMES"))
        self.addCleanup(home.cleanup)
        self.home = Path(home.name)
        self.mirror = self.home / "mirrors/owner__sums"
        self.mirror.mkdir(parents=True)
        (self.mirror / "value.txt").write_text("1\n")
        self.run_git("init", "--quiet")
        self.run_git("add", ".")
        self.run_git("-c", "user.name=a", "-c", "user.email=b", "commit", "--quiet", "--message=first")
        commit = self.run_git("rev-parse", "HEAD").strip()
        self.instances = self.home / "instances.jsonl"
        self.instances.write_text("".join(self.instance(number, commit) for number in (2, 3, 4)))
        (self.home / "suite.toml").write_text(SUITE)
        (self.home / "agent.sh").write_text(AGENT)

    def run_git(self, *words: str, stdin: str = "") -> str:
        return self.run_program("git", "-C", str(self.mirror), *words, stdin=stdin)

    def run_program(self, *words: str, stdin: str = "") -> str:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        result = subprocess.run(words, cwd=self.home, env=env, input=stdin, stdout=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 0, words)
        return result.stdout

    def instance(self, number: int, commit: str) -> str:
        test = f"test $(cat value.txt) -eq {number} || printf 'not '"
        patch = f"--- /dev/null\n+++ b/test.sh\n@@ -0,0 +1,3 @@\n+echo 1..1\n+{test}\n+echo ok 1 - value\n"
        line = {
            "instance_id": f"owner__sums-{number}",
            "repo": "owner/sums",
            "base_commit": commit,
            "problem_statement": f"The value is {number}.",
            "test_patch": patch,
            "FAIL_TO_PASS": '["value"]',
            "PASS_TO_PASS": "[]",
        }
        return json.dumps(line) + "\n"

    def test_the_harness_accepts_predictions_of_all_attempts(self):
        pintle, out = os.environ["PINTLE_BINARY"], str(self.home / "out")
        agent = f"sh {self.home}/agent.sh"
        run = ["eval", "run", str(self.home), "--agent", agent, "--model", "vendor/model-1"]
        self.run_program(pintle, *run, "--no-sandbox", "--out", out)
        file = self.home / "predictions.jsonl"
        file.write_text(self.run_program(pintle, "eval", "export", out, "--format", "predictions"))

        read = get_predictions_from_file(str(file), str(self.instances), "test")
        predictions = {prediction["instance_id"]: prediction for prediction in read}
        self.assertEqual(sorted(predictions), [f"owner__sums-{number}" for number in (2, 3, 4)])
        self.assertEqual({prediction["model_name_or_path"] for prediction in read}, {"vendor/model-1"})

        # Those with a change are evaluated, also if the agent reports that it is blocked.
        selected = get_dataset_from_preds(str(self.instances), "test", [], predictions, "run", False)
        self.assertEqual([row["instance_id"] for row in selected], ["owner__sums-2", "owner__sums-3"])
        for row, files in zip(selected, [["value.txt"], ["data.bin", "value.txt"]]):
            patch = predictions[row["instance_id"]]["model_patch"]
            self.run_git("apply", "--check", "-", stdin=patch)
            self.assertEqual(sorted(file.path for file in PatchSet(patch)), files)


if __name__ == "__main__":
    unittest.main()
