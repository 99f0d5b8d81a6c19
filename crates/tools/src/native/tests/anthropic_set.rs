use super::anthropic::{Bash, Edit, Glob, Grep, Read, TaskOutput, TaskStop, TodoWrite, Write};
use super::*;

#[tokio::test]
async fn lines_have_numbers_and_arrows() {
    let harness = Harness::new();
    harness.write("a.txt", "one\n\tTwo | 2\n\n");
    harness.write("empty.txt", "");
    let cases = [
        (json!({"file_path": "a.txt"}), "     1→one\n     2→\tTwo | 2\n     3→"),
        (
            json!({"file_path": "a.txt", "offset": 2, "limit": 1}),
            "     2→\tTwo | 2\n\n[More lines follow. To go on, read with offset 3.]",
        ),
        (
            json!({"file_path": "a.txt", "offset": 9}),
            "<system-reminder>Warning: offset 9 is past the end of a.txt, which has 3 lines</system-reminder>",
        ),
        (
            json!({"file_path": "empty.txt"}),
            "<system-reminder>Warning: [empty.txt is empty]</system-reminder>",
        ),
    ];
    for (arguments, expected) in cases {
        let answer = harness.call(Read::new(), &arguments.to_string()).await;
        assert_eq!(answer, format!("ok: {expected}"), "{arguments}");
    }
    assert_eq!(
        harness.call(Read::new(), r#"{"file_path": "b.txt"}"#).await,
        "error: Tool error (Read): DIR/b.txt does not exist. Did you mean a.txt?"
    );
}

#[tokio::test]
async fn an_image_is_returned_as_an_image() {
    let harness = Harness::new();
    harness.write("a.png", b"\x89PNG\r\n\x1a\nrest");
    let execution = harness.execute(Read::new(), r#"{"file_path": "a.png"}"#).await;
    assert_eq!(execution.result.images.len(), 1);
    assert_eq!(text(&execution.result), "[a.png: image/png, 12 bytes, shown as an image]");
}

#[tokio::test]
async fn a_file_is_written_and_edited() {
    let harness = Harness::new();
    let written = r#"{"file_path": "src/a.py", "content": "x = 1\ny = 1\n"}"#;
    let created = harness.execute(Write::new(), written).await;
    assert_eq!(text(&created.result), "File created successfully at: src/a.py");
    assert_eq!(created.changes[0].kind, ChangeKind::Added);
    assert_eq!(harness.call(Write::new(), written).await, "ok: The file src/a.py has been updated.");

    let edit = |old: &str, new: &str, all: bool| {
        json!({"file_path": "src/a.py", "old_string": old, "new_string": new, "replace_all": all}).to_string()
    };
    assert_eq!(
        harness.call(Edit::new(), &edit("x = 1", "x = 2", false)).await,
        "ok: The file src/a.py has been updated successfully."
    );
    insta::assert_snapshot!(harness.call(Edit::new(), &edit(" = ", " == ", false)).await, @"error: Tool error (Edit): old_string occurs 2 times in src/a.py, at lines 1, 2. Add neighbouring lines to make it unique, or set replace_all to replace every one");
    assert_eq!(
        harness.call(Edit::new(), &edit(" = ", " == ", true)).await,
        "ok: The file src/a.py has been updated. All occurrences were replaced: 2."
    );
    assert_eq!(harness.text("src/a.py"), "x == 2\ny == 1\n");
    let loose = harness.call(Edit::new(), &edit("  x == 2", "  x == 3", false)).await;
    assert!(loose.contains("\nNote: old_string matched only"), "{loose}");
}

#[tokio::test]
async fn a_non_zero_exit_is_a_result() {
    let harness = Harness::new();
    let cases = [
        (json!({"command": "{ echo out; echo err >&2; } 2>&1"}), "ok: out\nerr\n"),
        (json!({"command": "true", "description": "Nothing"}), "ok: (Bash completed with no output)"),
        (json!({"command": "echo out; exit 3", "timeout": 60000}), "ok: Exit code 3\nout\n"),
        (json!({"command": "exit 4"}), "ok: Exit code 4\n"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(harness.call(Bash::new(), &arguments.to_string()).await, expected, "{arguments}");
    }
    let slow = harness.call(Bash::new(), r#"{"command": "echo out; sleep 60", "timeout": 200}"#).await;
    assert_eq!(
        slow,
        "error: Exit code 143\nCommand timed out after 0.2s. Set timeout to give it longer.\nout\n"
    );
}

#[tokio::test]
async fn long_output_keeps_its_exit_code() {
    let harness = Harness::new();
    let arguments = r#"{"command": "seq 1 40000; exit 3"}"#;
    let execution = harness.execute(Bash::new(), arguments).await;
    let seen = text(&execution.result);
    assert!(seen.starts_with("Exit code 3\n1\n2\n"), "{seen}");
    assert!(seen.ends_with("\n40000\n") && seen.contains("lines omitted"), "{seen}");
    assert!(execution.output.len() > 200_000, "the application has all of it");
}

#[tokio::test]
async fn matches_have_three_output_modes() {
    let harness = Harness::new();
    harness.write("a.rs", "fn One() {}\n\n\nfn two() {}\n// end\n");
    harness.write("sub/b.py", "def fn():\n    pass\n");
    let cases = [
        (json!({"pattern": "fn"}), "Found 2 files\na.rs\nsub/b.py"),
        (json!({"pattern": "fn", "type": "py"}), "Found 1 file\nsub/b.py"),
        (
            json!({"pattern": "fn", "glob": "*.rs", "output_mode": "count"}),
            "a.rs:2\n\nFound 2 total occurrences across 1 file.",
        ),
        (json!({"pattern": "ONE", "-i": true, "output_mode": "content"}), "a.rs:1:fn One() {}"),
        (json!({"pattern": "^def", "-n": false, "output_mode": "content"}), "sub/b.py:def fn():"),
        (
            json!({"pattern": "fn", "path": "a.rs", "output_mode": "content", "-A": 1}),
            "a.rs:1:fn One() {}\na.rs-2-\n--\na.rs:4:fn two() {}\na.rs-5-// end",
        ),
        (
            json!({"pattern": "fn", "output_mode": "content", "head_limit": 1, "offset": 1}),
            "a.rs:4:fn two() {}\n\n[Showing results with pagination = limit: 1, offset: 1]",
        ),
        (
            json!({"pattern": "fn", "head_limit": 1}),
            "Found 1 file\na.rs\n\n[Showing results with pagination = limit: 1, offset: 0]",
        ),
        (json!({"pattern": "nowhere"}), "No files found"),
        (json!({"pattern": "nowhere", "output_mode": "content"}), "No matches found"),
    ];
    for (arguments, expected) in cases {
        let answer = harness.call(Grep::new(), &arguments.to_string()).await;
        assert_eq!(answer, format!("ok: {expected}"), "{arguments}");
    }
    assert_eq!(
        harness.call(Grep::new(), r#"{"pattern": "a", "glob": "*.rs", "type": "rust"}"#).await,
        "error: Tool error (Grep): glob and type exclude each other: give the one that says it best"
    );
}

#[tokio::test]
async fn files_are_found_with_absolute_paths() {
    let harness = Harness::new();
    harness.write("src/a.rs", "");
    assert_eq!(harness.call(Glob::new(), r#"{"pattern": "**/*.rs"}"#).await, "ok: DIR/src/a.rs");
    assert_eq!(harness.call(Glob::new(), r#"{"pattern": "*.c", "path": "src"}"#).await, "ok: No files found");
}

#[tokio::test]
async fn a_todo_list_is_accepted() {
    let harness = Harness::new();
    let todos = json!({"todos": [
        {"content": "Read", "status": "completed", "activeForm": "Reading"},
        {"content": "Write", "status": "in_progress", "activeForm": "Writing"},
    ]});
    assert_eq!(
        harness.call(TodoWrite::new(), &todos.to_string()).await,
        "ok: The list was taken: 0 pending, 1 in progress, 1 completed. Go on with the work."
    );
}

#[tokio::test]
async fn a_command_runs_in_the_background() {
    let harness = Harness::new();
    let cx = harness.context();
    let call = async |tool: Box<dyn DynTool>, arguments: Value| {
        let mut registry = crate::ToolRegistry::new();
        registry.register_shared(tool.into()).unwrap();
        let name = registry.names().next().unwrap().to_owned();
        let call = pintle_llm::ToolCall::from_raw("call_1", name, arguments.to_string());
        let prepared = crate::pipeline::prepare(&registry, &[], harness.env.as_ref(), &call).await;
        let crate::pipeline::JudgedCall::Ready { call, .. } = prepared else {
            return format!("{prepared:?}");
        };
        let execution = crate::pipeline::execute(&call, &cx, &crate::TruncationLimits::new()).await;
        let sign = if execution.result.is_error { "error" } else { "ok" };
        format!("{sign}: {}", text(&execution.result))
    };
    let line = json!({"command": "echo up; until test -e go; do sleep 0.01; done; echo down; exit 3", "run_in_background": true});
    let started = call(Box::new(Bash::new()), line).await;
    assert!(
        started.starts_with("ok: Command running in background with ID: 1. Read its output"),
        "{started}"
    );
    let mut seen = started;
    while !seen.contains("up\n") {
        seen = call(Box::new(TaskOutput::new()), json!({"task_id": "1", "timeout": 10})).await;
        assert!(seen.contains("<retrieval_status>timeout</retrieval_status>"), "{seen}");
    }
    let look = call(Box::new(TaskOutput::new()), json!({"task_id": "1", "block": false})).await;
    insta::assert_snapshot!(look, @"
    ok: <retrieval_status>not_ready</retrieval_status>
    <task_id>1</task_id>
    <task_type>local_bash</task_type>
    <status>running</status>
    (no new output)
    ");
    harness.write("go", "");
    insta::assert_snapshot!(call(Box::new(TaskOutput::new()), json!({"task_id": "1"})).await, @"
    ok: <retrieval_status>success</retrieval_status>
    <task_id>1</task_id>
    <task_type>local_bash</task_type>
    <status>failed</status>
    <exit_code>3</exit_code>
    <output>
    down
    ");
    let gone =
        call(Box::new(Bash::new()), json!({"command": "no-such-program", "run_in_background": true})).await;
    assert!(
        gone.starts_with("ok: Command started in background with ID: 2. It exited with code 127 at once.\n"),
        "{gone}"
    );
    call(Box::new(Bash::new()), json!({"command": "sleep 600", "run_in_background": true})).await;
    insta::assert_snapshot!(call(Box::new(TaskStop::new()), json!({"task_id": "3"})).await, @"ok: Task 3 was stopped: sleep 600");
    insta::assert_snapshot!(call(Box::new(TaskStop::new()), json!({"shell_id": "1"})).await, @"ok: Task 1 had ended before: it exited with code 3");
    let refused = call(Box::new(TaskStop::new()), json!({})).await;
    assert!(refused.contains("`task_id`: required, but missing"), "{refused}");
    insta::assert_snapshot!(call(Box::new(TaskOutput::new()), json!({"task_id": "b1"})).await, @r#"error: Tool error (TaskOutput): `task_id`: expected the ID that Bash gave for a background command, such as "1", got "b1""#);
    insta::assert_snapshot!(call(Box::new(TaskOutput::new()), json!({"task_id": "9"})).await, @"error: Tool error (TaskOutput): there is no background command 9: known are 1, 2, 3");
}
