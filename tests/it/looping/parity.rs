//! The cross-provider matrix (section 9.12), also for the compatible dialect.

use pintle_agent::{EventKind, OutcomeStatus, SessionHandle, TurnKind};
use pintle_llm::{ReasoningEffort, Segment};
use pintle_testkit::Dialect;
use pintle_tools::ToolErrorKind;

use crate::harness::{Harness, WAITING_TURN, edit, in_each_dialect, kinds, outputs};
use crate::test_profile::offered;

in_each_dialect![
    simple_file_creation,
    read_then_edit,
    multi_file_edit,
    shell_command,
    shell_timeout,
    grep_and_glob,
    multi_step_task,
    tool_output_truncation,
    parallel_tool_calls,
    steering_mid_task,
    reasoning_effort_change,
    loop_detection,
    error_recovery,
    native_editing_format,
    reasoning_is_returned,
    the_prefix_is_stable,
];

async fn simple_file_creation(dialect: Dialect) {
    let harness = Harness::new(
        dialect,
        r#"
        [[turn]]
        text = "Creating it."
        [[turn.call]]
        tool = "write_file"
        arguments = { file_path = "src/hello.py", content = "print('Hello World')\n" }
        [[turn]]
        text = "Done."
        [[turn.expect]]
        call = 0
        is_error = false
        contains = "src/hello.py"
        "#,
    )
    .await;
    let (events, outcome) = harness.run("Create a file called hello.py that prints 'Hello World'").await;
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "Done."));
    assert_eq!(harness.read("src/hello.py"), "print('Hello World')\n");
    assert!(outcome.usage.input_tokens > 0 && outcome.usage.output_tokens > 0, "{:?}", outcome.usage);
    let kinds = kinds(&events);
    for kind in ["USER_INPUT", "ASSISTANT_TEXT_DELTA", "TOOL_CALL_START", "TOOL_CALL_END"] {
        assert!(kinds.iter().any(|seen| seen == kind), "{kind} in {kinds:?}");
    }
    assert_eq!(kinds.last().unwrap(), "PROCESSING_END");
    harness.finish().await;
}

async fn read_then_edit(dialect: Dialect) {
    let turns = format!(
        r#"
        [[turn]]
        [[turn.call]]
        tool = "read_file"
        arguments = {{ file_path = "hello.py" }}
        [[turn]]
        text = "Now the edit."
        [[turn.expect]]
        call = 0
        contains = "1 | print('Hello')"
        {}
        [[turn]]
        text = "Edited."
        [[turn.expect]]
        call = 0
        is_error = false
        contains = "hello.py"
        "#,
        edit(dialect, "hello.py", "print(\"Goodbye\")", "print(\"See you\")")
    );
    let harness = Harness::new(dialect, &turns).await;
    harness.write("hello.py", "print('Hello')\nprint(\"Goodbye\")\n");
    harness.run("Change the second line").await;
    assert_eq!(harness.read("hello.py"), "print('Hello')\nprint(\"See you\")\n");
    harness.finish().await;
}

async fn multi_file_edit(dialect: Dialect) {
    let turns = format!(
        "[[turn]]\n{}{}[[turn]]\ntext = \"Both done.\"\n[[turn.expect]]\ncall = 0\nis_error = false\n[[turn.expect]]\ncall = 1\nis_error = false\n",
        edit(dialect, "a.txt", "one", "first"),
        edit(dialect, "b.txt", "two", "second"),
    );
    let harness = Harness::new(dialect, &turns).await;
    harness.write("a.txt", "one\n");
    harness.write("b.txt", "two\n");
    let (events, _) = harness.run("Rename both").await;
    assert_eq!((harness.read("a.txt"), harness.read("b.txt")), ("first\n".into(), "second\n".into()));
    let changed: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolCallEnd { changes, .. } => {
                Some(changes.iter().map(|change| change.diff.clone()).collect())
            }
            _ => None,
        })
        .collect();
    assert!(changed.iter().any(|diff| diff.contains("-one\n+first")), "{changed:?}");
    harness.finish().await;
}

async fn shell_command(dialect: Dialect) {
    let harness = Harness::new(
        dialect,
        r#"
        [[turn]]
        [[turn.call]]
        tool = "shell"
        arguments = { command = "echo out; echo err >&2; exit 3", description = "Try it" }
        [[turn]]
        text = "It exits with 3."
        [[turn.expect]]
        call = 0
        contains = "out\n"
        [[turn.expect]]
        call = 0
        contains = "err\n"
        [[turn.expect]]
        call = 0
        is_error = false
        contains = "Exit code: 3"
        "#,
    )
    .await;
    let (events, _) = harness.run("Run it").await;
    assert!(kinds(&events).contains(&"TOOL_CALL_OUTPUT_DELTA".to_owned()), "output is streamed");
    harness.finish().await;
}

async fn shell_timeout(dialect: Dialect) {
    let harness = Harness::new(
        dialect,
        r#"
        [[turn]]
        [[turn.call]]
        tool = "shell"
        arguments = { command = "echo before; sleep 600", timeout_ms = 300 }
        [[turn]]
        text = "It took too long."
        [[turn.expect]]
        call = 0
        is_error = true
        contains = "before"
        [[turn.expect]]
        call = 0
        contains = "[ERROR: Command timed out after 300ms. Partial output is shown above.\nYou can retry with a longer timeout by setting the timeout_ms parameter.]"
        "#,
    )
    .await;
    assert_eq!(harness.run("Run 'sleep 600'").await.1.text, "It took too long.");
    harness.finish().await;
}

async fn grep_and_glob(dialect: Dialect) {
    let harness = Harness::new(
        dialect,
        r#"
        [[turn]]
        [[turn.call]]
        tool = "grep"
        arguments = { pattern = "fn needle", glob_filter = "*.rs" }
        [[turn.call]]
        tool = "glob"
        arguments = { pattern = "**/*.rs" }
        [[turn]]
        text = "Found."
        [[turn.expect]]
        call = 0
        contains = "src/deep/a.rs:2:"
        not_contains = "notes.txt"
        [[turn.expect]]
        call = 1
        contains = "src/deep/a.rs"
        not_contains = "notes.txt"
        "#,
    )
    .await;
    harness.write("src/deep/a.rs", "// a\nfn needle() {}\n");
    harness.write("notes.txt", "fn needle\n");
    harness.run("Find it").await;
    harness.finish().await;
}

async fn multi_step_task(dialect: Dialect) {
    let turns = format!(
        r#"
        [[turn]]
        [[turn.call]]
        tool = "read_file"
        arguments = {{ file_path = "calc.sh" }}
        [[turn]]
        text = "The result is printed wrongly; I'll check."
        [[turn.expect]]
        call = 0
        contains = "echo $((2 - 2))"
        [[turn.call]]
        tool = "shell"
        arguments = {{ command = "sh calc.sh" }}
        [[turn]]
        [[turn.expect]]
        call = 0
        contains = "0\n"
        {}
        [[turn]]
        [[turn.expect]]
        call = 0
        is_error = false
        [[turn.call]]
        tool = "shell"
        arguments = {{ command = "sh calc.sh" }}
        [[turn]]
        text = "It prints 4 now."
        [[turn.expect]]
        call = 0
        contains = "4\n"
        "#,
        edit(dialect, "calc.sh", "echo $((2 - 2))", "echo $((2 + 2))")
    );
    let harness = Harness::new(dialect, &turns).await;
    harness.write("calc.sh", "echo $((2 - 2))\n");
    let (_, outcome) = harness.run("Two and two should be four").await;
    assert_eq!((outcome.model_calls, outcome.tool_calls), (5, 4));
    harness.finish().await;
}

async fn tool_output_truncation(dialect: Dialect) {
    let harness = Harness::new(
        dialect,
        r#"
        [[turn]]
        [[turn.call]]
        tool = "read_file"
        arguments = { file_path = "big.txt" }
        [[turn]]
        text = "That is a lot."
        [[turn.expect]]
        call = 0
        contains = "[WARNING: Tool output was truncated."
        "#,
    )
    .await;
    harness.write("big.txt", &"x".repeat(100_000));
    let (events, _) = harness.run("Read big.txt").await;
    let whole = &outputs(&events)[0];
    assert!(whole.matches('x').count() == 100_000 && !whole.contains("WARNING"), "the event has all of it");
    let sent = harness.session.history()[2].item.results().next().unwrap().text();
    assert!(sent.contains("characters were removed from the middle"), "{}", sent.len());
    // Behind Chat Completions, an unknown model is assumed to have a small context window.
    let limit = if dialect == Dialect::ChatCompletions { 16_384 } else { 50_000 };
    assert!((limit..limit + 1_000).contains(&sent.chars().count()), "{}", sent.chars().count());
    harness.finish().await;
}

async fn parallel_tool_calls(dialect: Dialect) {
    // Each command waits for the file that the other one creates, so sequential calls would never end.
    let harness = Harness::new(
        dialect,
        r#"
        [[turn]]
        [[turn.call]]
        tool = "shell"
        arguments = { command = "touch a; while [ ! -e b ]; do sleep 0.01; done; echo first", timeout_ms = 20000 }
        [[turn.call]]
        tool = "shell"
        arguments = { command = "touch b; while [ ! -e a ]; do sleep 0.01; done; echo second", timeout_ms = 20000 }
        [[turn]]
        text = "Both ran."
        [[turn.expect]]
        call = 0
        contains = "first"
        [[turn.expect]]
        call = 1
        contains = "second"
        "#,
    )
    .await;
    if harness.dialect == Dialect::ChatCompletions {
        // The profile of unknown servers assumes no parallel calls.
        harness.write("b", "");
    }
    harness.run("Run both").await;
    harness.finish().await;
}

async fn steering_mid_task(dialect: Dialect) {
    let turns = r#"
        [[turn]]
        text = "Only the health endpoint then."
        [[turn.expect]]
        request_contains = "Actually, just a /health endpoint"
        "#;
    let harness = Harness::new(dialect, &format!("{WAITING_TURN}{turns}")).await;
    let task = "Create a web application with many routes";
    let steer =
        async |handle: &SessionHandle| handle.steer("Actually, just a /health endpoint").await.unwrap();
    assert_eq!(harness.while_command_runs(task, steer).await.status, OutcomeStatus::Completed);
    let kinds: Vec<TurnKind> = harness.session.history().iter().map(|turn| turn.kind).collect();
    use TurnKind::{Assistant, Steering, ToolResults, User};
    assert_eq!(kinds, [User, Assistant, ToolResults, Steering, Assistant]);
    harness.finish().await;
}

async fn reasoning_effort_change(dialect: Dialect) {
    use ReasoningEffort::{High, Low, Medium};
    let efforts = [None, Some(Low), Some(Medium), Some(High), None];
    let harness = Harness::new(dialect, &"[[turn]]\ntext = \"Done.\"\n".repeat(efforts.len())).await;
    for (turn, effort) in efforts.into_iter().enumerate() {
        // The first turn has the default of the code.
        if turn > 0 {
            harness.session.handle().set_reasoning_effort(effort).unwrap();
        }
        harness.run(&format!("Task {turn}")).await;
    }
    let pointer = match dialect {
        Dialect::OpenAiResponses => "/reasoning/effort",
        Dialect::AnthropicMessages => "/output_config/effort",
        Dialect::Gemini => "/generationConfig/thinkingConfig/thinkingLevel",
        Dialect::ChatCompletions => "/reasoning_effort",
    };
    let sent: Vec<Option<String>> = harness
        .requests()
        .iter()
        .map(|request| request.body.pointer(pointer).and_then(|value| value.as_str()).map(str::to_lowercase))
        .collect();
    assert_eq!(
        sent,
        [None, Some("low"), Some("medium"), Some("high"), None].map(|effort| effort.map(str::to_owned))
    );
    harness.finish().await;
}

async fn loop_detection(dialect: Dialect) {
    let round = "[[turn]]\n[[turn.call]]\ntool = \"glob\"\narguments = { pattern = \"*.rs\" }\n";
    let last = "[[turn]]\ntext = \"Something else then.\"\n[[turn.expect]]\nrequest_contains = \"Loop detected: the last 10 tool calls follow a repeating pattern. Try a different approach.\"\n";
    let harness = Harness::new(dialect, &format!("{}{last}", round.repeat(10))).await;
    let (events, _) = harness.run("Go").await;
    assert_eq!(kinds(&events).iter().filter(|kind| *kind == "LOOP_DETECTION").count(), 1);
    harness.finish().await;
}

/// Makes the mistakes of the table in appendix B, then the corrected calls.
async fn error_recovery(dialect: Dialect) {
    // Gemini sends arguments as JSON values, so they cannot be malformed.
    let broken =
        if dialect == Dialect::Gemini { "arguments = { file_path = 7 }" } else { "arguments_raw = '{'" };
    let turns = r#"
        [[turn]]
        [[turn.call]]
        tool = "read_file"
        arguments = { file_path = "missing.txt" }
        [[turn.call]]
        tool = "reed_file"
        arguments = { file_path = "there.txt" }
        [[turn.call]]
        tool = "read_file"
        arguments = { name = "there.txt" }
        [[turn.call]]
        tool = "read_file"
        BROKEN
        CONFLICT
        [[turn.call]]
        tool = "shell"
        arguments = { command = "echo begun; sleep 600", timeout_ms = 200 }
        [[turn]]
        text = "I'll correct that."
        [[turn.expect]]
        call = 0
        is_error = true
        contains = "does not exist"
        [[turn.expect]]
        call = 1
        is_error = true
        contains = "Unknown tool: reed_file"
        [[turn.expect]]
        call = 1
        contains = "read_file"
        [[turn.expect]]
        call = 2
        is_error = true
        contains = "`file_path`: required, but missing"
        [[turn.expect]]
        call = 3
        is_error = true
        contains = "Invalid arguments for tool: read_file"
        [[turn.expect]]
        call = 4
        is_error = true
        contains = "there.txt"
        [[turn.expect]]
        call = 5
        is_error = true
        contains = "[ERROR: Command timed out after 200ms."
        [[turn.call]]
        tool = "read_file"
        arguments = { file_path = "other.txt" }
        CORRECTED
        [[turn]]
        text = "Got it."
        [[turn.expect]]
        call = 0
        is_error = false
        contains = "1 | here"
        [[turn.expect]]
        call = 1
        is_error = false
        "#;
    let turns = turns
        .replace("BROKEN", broken)
        .replace("CONFLICT", &edit(dialect, "there.txt", "nowhere", "found"))
        .replace("CORRECTED", &edit(dialect, "there.txt", "here", "found"));
    let harness = Harness::new(dialect, &turns).await;
    harness.write("there.txt", "here\n");
    // A read and an edit of one file in one round may come in either order.
    harness.write("other.txt", "here\n");
    let (events, outcome) = harness.run("Read it").await;
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "Got it."));
    assert_eq!(harness.read("there.txt"), "found\n");
    // The OpenAI dialects cannot mark errors, so check events and history too.
    let mut failed: Vec<ToolErrorKind> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolCallEnd { error, .. } => *error,
            _ => None,
        })
        .collect();
    failed.sort_by_key(|kind| format!("{kind:?}"));
    use ToolErrorKind::{EditConflict, InvalidArguments, NotFound, TimedOut, UnknownTool};
    assert_eq!(failed, [EditConflict, InvalidArguments, InvalidArguments, NotFound, TimedOut, UnknownTool]);
    let history = harness.session.history();
    let marked: Vec<bool> =
        history.iter().flat_map(|turn| turn.item.results()).map(|result| result.is_error).collect();
    assert_eq!(marked, [true, true, true, true, true, true, false, false]);
    harness.finish().await;
}

async fn native_editing_format(dialect: Dialect) {
    let turns = match dialect {
        Dialect::OpenAiResponses => r#"
            [[turn]]
            [[turn.call]]
            tool = "apply_patch"
            arguments = { patch = '''
*** Begin Patch
*** Add File: new.txt
+new
*** Update File: old.py
*** Move to: moved.py
@@ import os
 import sys
-import old_dep
+import new_dep
*** Delete File: gone.txt
*** End Patch
''' }
            [[turn]]
            text = "Patched."
            [[turn.expect]]
            call = 0
            contains = "A new.txt"
            [[turn.expect]]
            call = 0
            contains = "moved.py"
            "#
        .to_owned(),
        Dialect::AnthropicMessages | Dialect::Gemini | Dialect::ChatCompletions => format!(
            r#"
            [[turn]]
            [[turn.call]]
            tool = "edit_file"
            arguments = {{ file_path = "old.py", old_string = "import", new_string = "load" }}
            [[turn]]
            text = "It occurs three times."
            [[turn.expect]]
            call = 0
            is_error = true
            contains = "3"
            {}
            [[turn]]
            text = "All of them are meant."
            [[turn.expect]]
            call = 0
            is_error = false
            [[turn.call]]
            tool = "edit_file"
            arguments = {{ file_path = "old.py", old_string = "import", new_string = "load", {} }}
            [[turn]]
            text = "Edited."
            [[turn.expect]]
            call = 0
            is_error = false
            "#,
            edit(dialect, "old.py", "import old_dep", "import new_dep"),
            if dialect == Dialect::Gemini {
                "expected_replacements = 3, instruction = 'Load them.'"
            } else {
                "replace_all = true"
            }
        ),
    };
    let harness = Harness::new(dialect, &turns).await;
    harness.write("old.py", "import os\nimport sys\nimport old_dep\n");
    harness.write("gone.txt", "bye\n");
    harness.run("Edit").await;
    if dialect == Dialect::OpenAiResponses {
        assert_eq!(harness.read("moved.py"), "import os\nimport sys\nimport new_dep\n");
        assert_eq!(harness.read("new.txt"), "new\n");
        assert!(!harness.path("gone.txt").exists() && !harness.path("old.py").exists());
    } else {
        assert_eq!(harness.read("old.py"), "load os\nload sys\nload new_dep\n");
    }
    // The model is offered this format, and no other provider's.
    let request = &harness.requests()[0];
    let tools: Vec<String> = offered(request).into_iter().map(|(name, _)| name).collect();
    let is_offered = |tool: &str| tools.iter().any(|name| name == tool);
    let patches = dialect == Dialect::OpenAiResponses;
    assert_eq!((is_offered("apply_patch"), is_offered("edit_file")), (patches, !patches), "{tools:?}");
    let schemas = request.body["tools"].to_string();
    assert_eq!(schemas.contains("\"old_string\""), !patches, "{schemas}");
    assert_eq!(schemas.contains("\"expected_replacements\""), dialect == Dialect::Gemini, "{schemas}");
    harness.finish().await;
}

/// The server seals its reasoning and rejects a changed or missing seal.
async fn reasoning_is_returned(dialect: Dialect) {
    let harness = Harness::new(
        dialect,
        r#"
        [[turn]]
        reasoning = "I should look first."
        text = "Looking."
        [[turn.call]]
        tool = "glob"
        arguments = { pattern = "*" }
        [[turn]]
        reasoning = "That was all."
        text = "Nothing there."
        [[turn]]
        text = "As I said."
        "#,
    )
    .await;
    let (events, _) = harness.run("Look").await;
    let thought: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ReasoningEnd { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(thought, ["I should look first.", "That was all."]);
    harness.run("Again").await;
    harness.finish().await;
}

async fn the_prefix_is_stable(dialect: Dialect) {
    let round =
        "[[turn]]\ntext = \"Next.\"\n[[turn.call]]\ntool = \"glob\"\narguments = { pattern = \"*.rs\" }\n";
    let harness = Harness::new(dialect, &format!("{}[[turn]]\ntext = \"Done.\"\n", round.repeat(5))).await;
    let (events, _) = harness.run("Go").await;
    let moved: Vec<Option<Segment>> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::RequestPrepared { moved, .. } => Some(*moved),
            _ => None,
        })
        .collect();
    assert_eq!(moved, vec![None; 6]);
    let last = events
        .iter()
        .rev()
        .find_map(|event| match &event.kind {
            EventKind::ModelResponse { usage, .. } => Some(usage.clone()),
            _ => None,
        })
        .unwrap();
    if dialect != Dialect::ChatCompletions || last.cache_read_tokens.is_some() {
        let read = last.cache_read_tokens.unwrap_or(0);
        assert!(read * 2 > last.input_tokens, "the server saw the same prefix again: {last:?}");
    }
    harness.finish().await;
}
