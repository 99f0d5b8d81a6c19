"""Both SDKs for Python with the command in its default settings, as in shipped.mjs."""

import json
import unittest

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, PermissionResultAllow, ResultMessage
from openai_codex_sdk import Codex

from support import CompatTest, binary

# Mends a sum and commits it, and continues in another process.
MEND = """
[[turn]]
call = [{ tool = "Read", arguments = { file_path = "add.sh" } }]
[[turn]]
call = [{ tool = "Edit", arguments = { file_path = "add.sh", old_string = "$1 - $2", new_string = "$1 + $2" } }]
[[turn]]
call = [{ tool = "Bash", arguments = { command = "git commit --quiet --all --message=Mend; echo beyond >../beyond.txt; echo ran >ran.txt" } }]
[[turn]]
text = "Mended."
[[turn]]
call = [{ tool = "Bash", arguments = { command = ". ./add.sh; add 3 2 >sum.txt" } }]
[[turn.expect]]
request_contains = "Mend the sum"
[[turn]]
text = "It is 5."
"""


class ShippedTest(CompatTest):
    def setUp(self):
        self.set_up(MEND)
        (self.directory / "add.sh").write_text("add() { echo $(($1 - $2)); }\n")
        self.run_program("git", "add", "add.sh")
        self.run_program("git", "commit", "--quiet", "--message=second")

    def read(self, name: str) -> str:
        return (self.directory / name).read_text()

    def sessions(self) -> list:
        listed = self.run_program(binary("PINTLE_BINARY"), "sessions", "list", "--output", "json")
        return [row["id"] for row in json.loads(listed)]

    def assert_mended(self, session: str):
        log = self.run_program("git", "log", "--format=%an: %s")
        self.assertEqual(log, "A User: Mend\nA User: second\nA User: first\n")
        self.assertEqual(self.read("add.sh"), "add() { echo $(($1 + $2)); }\n")
        self.assertEqual((self.read("ran.txt"), (self.home / "beyond.txt").exists()), ("ran\n", False))
        self.assertEqual(self.sessions(), [session])
        self.assertTrue((self.home / ".local/state/pintle/sessions").is_dir())

    async def test_claude_edits_and_commits_in_the_sandbox_and_resumes(self):
        asked = []

        async def allow(name, arguments, context):
            asked.append(name)
            return PermissionResultAllow(updated_input=arguments)

        async def ask(prompt, **more) -> ResultMessage:
            options = ClaudeAgentOptions(
                cli_path=binary("CLAUDE_BINARY"), cwd=self.directory, env=self.env, can_use_tool=allow, **more
            )
            async with ClaudeSDKClient(options) as client:
                await client.query(prompt)
                seen = [message async for message in client.receive_response()]
            return next(message for message in seen if isinstance(message, ResultMessage))

        first = await ask("Mend the sum")
        self.assertEqual((first.subtype, first.result, asked), ("success", "Mended.", ["Edit", "Bash"]))
        self.assert_mended(first.session_id)
        second = await ask("Add 3 and 2", resume=first.session_id)
        self.assertEqual((second.result, second.session_id), ("It is 5.", first.session_id))
        self.assertEqual(self.read("sum.txt"), "5\n")
        self.assertEqual(self.sessions(), [first.session_id])

    async def test_codex_edits_and_commits_in_the_sandbox_and_resumes(self):
        codex = Codex({"codex_path_override": binary("CODEX_BINARY"), "env": self.env})
        options = {"working_directory": str(self.directory), "sandbox_mode": "workspace-write"}
        thread = codex.start_thread(options)
        self.assertEqual((await thread.run("Mend the sum")).final_response, "Mended.")
        self.assert_mended(thread.id)
        again = codex.resume_thread(thread.id, options)
        self.assertEqual((await again.run("Add 3 and 2")).final_response, "It is 5.")
        self.assertEqual(again.id, thread.id)
        self.assertEqual(self.read("sum.txt"), "5\n")
        self.assertEqual(self.sessions(), [thread.id])


if __name__ == "__main__":
    unittest.main()
