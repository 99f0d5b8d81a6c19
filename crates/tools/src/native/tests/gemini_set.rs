use super::gemini::{Glob, ListDirectory, ReadFile, Replace, RunShellCommand, SearchFileContent, WriteFile};
use super::*;

#[tokio::test]
async fn a_part_of_a_file_has_a_header() {
    let harness = Harness::new();
    harness.write("a.txt", "one\n\ttwo\nthree\n");
    let read = async |arguments: Value| harness.call(ReadFile::new(), &arguments.to_string()).await;
    assert_eq!(read(json!({"file_path": "a.txt"})).await, "ok: one\n\ttwo\nthree");
    insta::assert_snapshot!(read(json!({"file_path": "a.txt", "offset": 1, "limit": 1})).await, @"
    ok: IMPORTANT: The file content has been truncated.
    Status: Showing lines 2-2 of 3 total lines.
    Action: To go on, call 'read_file' with offset: 2 and a 'limit'.

    --- FILE CONTENT (truncated) ---
    	two
    ");
    insta::assert_snapshot!(read(json!({"file_path": "a.txt", "offset": 2})).await, @"
    ok: IMPORTANT: The file content has been truncated.
    Status: Showing lines 3-3 of 3 total lines.
    Action: This is the end of the file.

    --- FILE CONTENT (truncated) ---
    three
    ");
    assert_eq!(
        read(json!({"file_path": "a.txt", "offset": 5})).await,
        "error: Tool error (read_file): offset 5 is past the end of a.txt, which has 3 lines; \
         the first is at offset 0"
    );
    harness.write("long.txt", format!("a\n{}\n", "x".repeat(2_003)));
    let long = read(json!({"file_path": "long.txt"})).await;
    assert!(long.ends_with("x [... 3 more characters]"), "{long}");
    let action = "Action: This is the end of the file. \
                  To read a long line whole, read it alone, such as with offset: 1 and limit: 1.";
    assert!(long.lines().any(|line| line == action), "{long}");
    let alone = read(json!({"file_path": "long.txt", "offset": 1, "limit": 1})).await;
    assert!(alone.ends_with(&"x".repeat(2_003)) && !alone.contains("whole"), "{alone}");
}

#[tokio::test]
async fn a_file_is_written_and_edited() {
    let harness = Harness::new();
    let written = r#"{"file_path": "src/a.py", "content": "x = 1\ny = 1\n"}"#;
    assert_eq!(
        harness.call(WriteFile::new(), written).await,
        "ok: Successfully created and wrote to new file: src/a.py."
    );
    assert_eq!(harness.call(WriteFile::new(), written).await, "ok: Successfully overwrote file: src/a.py.");
    let replace = |old: &str, new: &str, expected: Option<u64>| {
        let mut call = json!({"file_path": "src/a.py", "instruction": "Change it.", "old_string": old, "new_string": new});
        if let Some(expected) = expected {
            call["expected_replacements"] = expected.into();
        }
        call.to_string()
    };
    assert_eq!(
        harness.call(Replace::new(), &replace("x = 1", "x = 2", None)).await,
        "ok: Successfully modified file: src/a.py (1 replacements)."
    );
    insta::assert_snapshot!(harness.call(Replace::new(), &replace(" = ", " == ", None)).await, @"error: Tool error (replace): old_string occurs 2 times in src/a.py, at lines 1, 2, and one occurrence was expected. Add neighbouring lines to make it unique, or set expected_replacements to 2 to replace every one");
    assert_eq!(
        harness.call(Replace::new(), &replace(" = ", " == ", Some(2))).await,
        "ok: Successfully modified file: src/a.py (2 replacements)."
    );
    assert_eq!(harness.text("src/a.py"), "x == 2\ny == 1\n");
}

#[tokio::test]
async fn a_non_zero_exit_is_a_result() {
    let harness = Harness::new();
    harness.write("sub/file", "");
    let cases = [
        (json!({"command": "{ echo out; echo err >&2; } 2>&1"}), "ok: Output: out\nerr\n"),
        (json!({"command": "true"}), "ok: Output: (empty)"),
        (json!({"command": "ls; exit 3", "dir_path": "sub"}), "ok: Exit Code: 3\nOutput: file\n"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(
            harness.call(RunShellCommand::new(), &arguments.to_string()).await,
            expected,
            "{arguments}"
        );
    }
}

#[tokio::test]
async fn long_output_keeps_a_fifth_at_the_start() {
    let harness = Harness::new();
    let execution = harness.execute(RunShellCommand::new(), r#"{"command": "seq 1 40000"}"#).await;
    let seen = text(&execution.result);
    let (head, rest) = seen.split_once("\n\n... [").unwrap();
    let (count, tail) = rest.split_once(" characters omitted] ...\n\n").unwrap();
    assert_eq!(head.strip_prefix("Output: ").unwrap().chars().count(), 8_000);
    assert_eq!(count.parse::<u64>().unwrap(), execution.output.len() - 40_000);
    assert!(tail.starts_with(|first: char| first.is_ascii_digit() || first == '\n'), "{tail}");
    assert!(tail.contains("\n40000\n"), "{tail}");
}

#[tokio::test]
async fn matches_are_grouped_by_file() {
    let harness = Harness::new();
    harness.write("a.rs", "fn One() {}\n\nfn two() {}\n");
    harness.write("sub/b.py", "def FN():\n");
    let search =
        async |arguments: Value| harness.call(SearchFileContent::new(), &arguments.to_string()).await;
    insta::assert_snapshot!(search(json!({"pattern": "fn"})).await, @r#"
    ok: Found 3 matches for pattern "fn" in path ".":
    ---
    File: a.rs
    L1: fn One() {}
    L3: fn two() {}
    ---
    File: sub/b.py
    L1: def FN():
    ---
    "#);
    insta::assert_snapshot!(search(json!({"pattern": "fn", "dir_path": "sub", "include": "*.py"})).await, @r#"
    ok: Found 1 match for pattern "fn" in path "sub" (filter: "*.py"):
    ---
    File: sub/b.py
    L1: def FN():
    ---
    "#);
    assert_eq!(
        search(json!({"pattern": "nowhere"})).await,
        "ok: No matches found for pattern \"nowhere\" in path \".\"."
    );
}

#[tokio::test]
async fn files_and_directories_are_listed() {
    let harness = Harness::new();
    harness.write("src/a.rs", "12345");
    harness.write("README.md", "1");
    insta::assert_snapshot!(harness.call(Glob::new(), r#"{"pattern": "**/*.rs"}"#).await, @r#"
    ok: Found 1 file(s) matching "**/*.rs" within DIR, sorted by modification time (newest first):
    DIR/src/a.rs
    "#);
    assert_eq!(
        harness.call(Glob::new(), r#"{"pattern": "*.c", "dir_path": "src"}"#).await,
        "ok: No files found matching pattern \"*.c\" within DIR/src"
    );
    insta::assert_snapshot!(harness.call(ListDirectory::new(), r#"{"dir_path": "."}"#).await, @"
    ok: Directory listing for DIR:
    [DIR] src
    README.md (1 bytes)
    ");
    assert_eq!(
        harness.call(ListDirectory::new(), r#"{"dir_path": "sr"}"#).await,
        "error: Tool error (list_directory): DIR/sr does not exist. Did you mean src?"
    );
}
