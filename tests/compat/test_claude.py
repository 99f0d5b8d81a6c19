"""The documented examples of claude-agent-sdk for Python, against the binary that CLAUDE_BINARY names."""

import unittest

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    SystemMessage,
    create_sdk_mcp_server,
    query,
    tool,
)

from support import CompatTest, binary

WRITE = """
[[turn]]
text = "I write."
call = [{ tool = "Write", arguments = { file_path = "a.txt", content = "one\\n" } }]
[[turn]]
text = "Done."
"""


class ClaudeTest(CompatTest):
    def options(self, **more) -> ClaudeAgentOptions:
        return ClaudeAgentOptions(cli_path=binary("CLAUDE_BINARY"), cwd=self.directory, env=self.env, **more)

    async def ask(self, prompt, **more) -> list:
        return [message async for message in query(prompt=prompt, options=self.options(**more))]

    def result(self, seen: list) -> ResultMessage:
        return next(message for message in seen if isinstance(message, ResultMessage))

    async def test_a_prompt_has_init_answer_and_result(self):
        self.set_up(WRITE)
        seen = await self.ask("Write a.txt", allowed_tools=["Write"])
        self.assertIsInstance(seen[0], SystemMessage)
        self.assertEqual(seen[0].subtype, "init")
        self.assertTrue(any(isinstance(message, AssistantMessage) for message in seen))
        end = self.result(seen)
        self.assertEqual((end.subtype, end.result, end.num_turns), ("success", "Done.", 2))
        self.assertEqual((self.directory / "a.txt").read_text(), "one\n")

    async def test_bypass_of_permissions_needs_no_other_option(self):
        self.set_up(WRITE)
        seen = await self.ask("Write a.txt", permission_mode="bypassPermissions")
        self.assertEqual(self.result(seen).subtype, "success")
        self.assertTrue((self.directory / "a.txt").exists())

    async def test_a_server_in_the_process_of_the_sdk(self):
        self.set_up(
            """
[[turn]]
call = [{ tool = "mcp__calculator__add", arguments = { a = 2, b = 3 } }]
[[turn]]
text = "Five."
[[turn.expect]]
call = 0
contains = "sum: 5"
"""
        )

        @tool("add", "Adds two numbers", {"a": float, "b": float})
        async def add(arguments):
            return {"content": [{"type": "text", "text": f"sum: {arguments['a'] + arguments['b']:g}"}]}

        calculator = create_sdk_mcp_server(name="calculator", version="1.0.0", tools=[add])
        seen = await self.ask(
            "Add 2 and 3", mcp_servers={"calculator": calculator}, allowed_tools=["mcp__calculator__add"]
        )
        self.assertEqual(self.result(seen).result, "Five.")
        self.assertEqual(seen[0].data["mcp_servers"], [{"name": "calculator", "status": "connected"}])
        self.assertIn("mcp__calculator__add", seen[0].data["tools"])

    async def test_a_callback_decides_on_calls(self):
        async def allow(name, arguments, context):
            return PermissionResultAllow(updated_input={**arguments, "file_path": "b.txt"})

        async def deny(name, arguments, context):
            return PermissionResultDeny(message="not on a Friday")

        for decide, made in ((allow, ["b.txt"]), (deny, [])):
            self.set_up(WRITE)
            async with ClaudeSDKClient(self.options(can_use_tool=decide)) as client:
                await client.query("Write a.txt")
                seen = [message async for message in client.receive_response()]
            self.assertEqual(self.result(seen).result, "Done.")
            self.assertEqual(sorted(path.name for path in self.directory.glob("*.txt")), made)

    async def test_a_hook_denies_a_call(self):
        self.set_up(WRITE)

        async def before(data, tool_use_id, context):
            decision = {"hookEventName": "PreToolUse", "permissionDecision": "deny"}
            return {"hookSpecificOutput": decision}

        hooks = {"PreToolUse": [HookMatcher(matcher="Write", hooks=[before])]}
        async with ClaudeSDKClient(self.options(hooks=hooks, permission_mode="acceptEdits")) as client:
            await client.query("Write a.txt")
            seen = [message async for message in client.receive_response()]
        self.assertEqual(self.result(seen).subtype, "success")
        self.assertFalse((self.directory / "a.txt").exists())

    async def test_a_session_continues(self):
        self.set_up('[[turn]]\ntext = "One."\n[[turn]]\ntext = "Two."\n[[turn.expect]]\nrequest_contains = "First"\n')
        first = self.result(await self.ask("First"))
        second = self.result(await self.ask("Second", resume=first.session_id))
        self.assertEqual((second.result, second.session_id), ("Two.", first.session_id))

    async def test_model_and_mode_change_during_a_session(self):
        self.set_up('[[turn]]\ntext = "One."\n[[turn]]\ntext = "Two."\n')
        async with ClaudeSDKClient(self.options()) as client:
            await client.query("First")
            await anext_result(client)
            await client.set_model("claude-sonnet-4-5")
            await client.set_permission_mode("acceptEdits")
            await client.query("Second")
            seen = await anext_result(client)
        init = next(message for message in seen if isinstance(message, SystemMessage))
        found = (init.data["model"], init.data["permissionMode"])
        self.assertEqual(found, ("claude-sonnet-4-5", "acceptEdits"))

    async def test_a_system_prompt_in_a_file_reaches_the_model(self):
        self.set_up('[[turn]]\ntext = "Arr."\n[[turn.expect]]\nrequest_contains = "Speak like a pirate."\n')
        file = self.directory / "prompt.md"
        file.write_text("Speak like a pirate.")
        seen = await self.ask("Hello", system_prompt={"type": "file", "path": str(file)})
        self.assertEqual(self.result(seen).result, "Arr.")

    async def test_options_that_restrict_and_are_not_supported_are_refused(self):
        self.set_up('[[turn]]\ntext = "Never."\n')
        for more in ({"extra_args": {"tool-policy": "strict"}}, {"plugins": [{"type": "local", "path": "/p"}]}):
            with self.assertRaises(Exception, msg=more):
                await self.ask("Go", **more)


async def anext_result(client: ClaudeSDKClient) -> list:
    """Returns the messages up to the next result."""
    return [message async for message in client.receive_response()]


if __name__ == "__main__":
    unittest.main()
