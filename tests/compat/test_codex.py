"""The documented examples of openai-codex-sdk, against the binary that CODEX_BINARY names."""

import unittest

from openai_codex_sdk import Codex

from support import CompatTest, binary

SCHEMA = {"type": "object", "properties": {"files": {"type": "integer"}}, "required": ["files"]}


class CodexTest(CompatTest):
    def thread(self, script: str, **options):
        self.set_up(script)
        self.client = Codex({"codex_path_override": binary("CODEX_BINARY"), "env": self.env})
        self.thread_options = {
            "working_directory": str(self.directory),
            "skip_git_repo_check": True,
            **options,
        }
        return self.client.start_thread(self.thread_options)

    async def test_a_turn_and_the_next_one(self):
        thread = self.thread(
            '[[turn]]\ntext = "It divides by zero."\n'
            '[[turn]]\ntext = "Fixed."\n[[turn.expect]]\nrequest_contains = "Diagnose"\n'
        )
        turn = await thread.run("Diagnose the failure")
        self.assertEqual(turn.final_response, "It divides by zero.")
        self.assertGreater(turn.usage.output_tokens, 0)
        again = self.client.resume_thread(thread.id, self.thread_options)
        self.assertEqual((await again.run("Fix it")).final_response, "Fixed.")

    async def test_items_of_a_run_that_writes(self):
        thread = self.thread(
            '[[turn]]\ncall = [{ tool = "Bash", arguments = { command = "echo one >a.txt" } }]\n'
            '[[turn]]\ntext = "Done."\n',
            sandbox_mode="workspace-write",
        )
        streamed = await thread.run_streamed("Write a.txt")
        kinds = [event.type async for event in streamed.events]
        self.assertEqual((kinds[0], kinds[1], kinds[-1]), ("thread.started", "turn.started", "turn.completed"))
        self.assertEqual((self.directory / "a.txt").read_text(), "one\n")

    async def test_a_run_without_a_sandbox_mode_only_reads(self):
        thread = self.thread(
            '[[turn]]\ncall = [{ tool = "Write", arguments = { file_path = "a.txt", content = "one" } }]\n'
            '[[turn]]\ntext = "Done."\n'
        )
        await thread.run("Write a.txt")
        self.assertFalse((self.directory / "a.txt").exists())

    async def test_an_answer_is_repaired_until_it_matches(self):
        thread = self.thread('[[turn]]\ntext = "Seven."\n[[turn]]\ntext = \'{"files": 7}\'\n')
        turn = await thread.run("Count", {"output_schema": SCHEMA})
        self.assertEqual(turn.final_response, '{"files":7}')


if __name__ == "__main__":
    unittest.main()
