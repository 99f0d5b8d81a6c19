use serde_json::json;

use super::*;

const PATCH: &str = "*** Begin Patch\n*** Update File: src/a.rs\n@@ fn main\n kept\n-old \"x\"\n+new\t\u{1b}[2J\n*** Add File: b.rs\n+é\n*** End Patch\n";

fn text(draft: &Draft, lines: usize) -> String {
    draft.last_lines(lines).map(|line| line.text() + "\n").collect()
}

fn drafted(tool: &str, arguments: &str, size: usize) -> Draft {
    let mut draft = Draft::new("call", tool, 0);
    let characters: Vec<char> = arguments.chars().collect();
    for piece in characters.chunks(size) {
        draft.push(&piece.iter().collect::<String>());
    }
    draft
}

#[test]
fn patch_diff_does_not_depend_on_chunking() {
    let json = json!({"patch": PATCH}).to_string();
    let input = json!({"input": PATCH}).to_string();
    for size in 1..40 {
        for arguments in [PATCH, &json, &input] {
            let draft = drafted("apply_patch", arguments, size);
            assert_eq!(
                text(&draft, 9),
                "M src/a.rs\n@@\n@@ fn main\n kept\n-old \"x\"\n+new \\u{1b}[2J\nA b.rs\n+é\n",
                "{size}"
            );
            assert_eq!((draft.subject().as_str(), draft.counts()), ("src/a.rs b.rs", (2, 1)));
        }
    }
}

#[test]
fn patch_grows_by_complete_lines() {
    let json = json!({"patch": PATCH}).to_string();
    let half = json.find("new").unwrap();
    let mut draft = Draft::new("call", "apply_patch", 0);
    draft.push(&json[..half]);
    assert_eq!(text(&draft, 2), " kept\n-old \"x\"\n", "complete lines only");
    draft.push(&json[half..]);
    assert_eq!(text(&draft, 2), "A b.rs\n+é\n");
}

#[test]
fn invalid_patch_shows_nothing() {
    for arguments in
        ["{\"patch\": \"rm -rf\\nx\\n\"}", "hello\nthere\n", "{\"patch\": 3}", "{\"other\": \"+x\\n\"}"]
    {
        let draft = drafted("apply_patch", arguments, 4);
        assert_eq!((text(&draft, 9).as_str(), draft.counts()), ("", (0, 0)), "{arguments}");
    }
    // A patch written to the input of a command is not a patch.
    assert_eq!(text(&drafted("write_stdin", &json!({"input": PATCH}).to_string(), 4), 9), "");
}

#[test]
fn edit_is_diffed_when_complete() {
    let arguments = json!({"file_path": "src/a.rs", "old_string": "a\nb\nc", "new_string": "a\nB\nc"});
    let mut draft = Draft::new("call", "Edit", 0);
    draft.push("{\"file_path\": \"src/a.rs\", \"old_string\": \"a\\nb\\nc\", \"new_string\": \"a\\nB");
    assert_eq!(text(&draft, 9), "-a\n-b\n-c\n+a\n+B\n");
    assert_eq!((draft.subject().as_str(), draft.counts()), ("src/a.rs", (2, 3)));
    draft.complete(&arguments);
    assert_eq!(text(&draft, 9), " a\n-b\n+B\n c\n");
    assert_eq!(draft.counts(), (1, 1));
}

#[test]
fn written_file_grows() {
    let arguments = json!({"file_path": "a.txt", "content": "one\n\ntwo"}).to_string();
    let draft = drafted("write_file", &arguments, 5);
    assert_eq!((text(&draft, 9).as_str(), draft.counts()), ("+one\n+\n+two\n", (3, 0)));
}

#[test]
fn drafts_are_bounded() {
    let mut draft = Draft::new("call", "write_file", 0);
    draft.push("{\"command\": \"");
    draft.push(&"c".repeat(10_000));
    draft.push("\", \"content\": \"");
    for _ in 0..1_000 {
        draft.push(&"é".repeat(100));
    }
    draft.push(&"\\nshort".repeat(1_000));
    assert!(draft.subject().chars().count() <= summary::MAX_CHARS + 1);
    let lines: Vec<StyledLine> = draft.last_lines(1_000).collect();
    assert!(lines.len() <= 17, "{}", lines.len());
    assert_eq!(draft.counts(), (1_001, 0));
}

/// A diff of long texts would delay the stream.
#[test]
fn long_texts_are_not_diffed() {
    let mut seed = 1_u32;
    let mut random_lines = |ends: [&str; 3]| -> String {
        (0..30_000)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                ends[(seed >> 24) as usize % 3]
            })
            .collect()
    };
    let (old, new) = (random_lines(["a\n", "b\n", "\n"]), random_lines(["b\n", "\n", "a\n"]) + "end");
    let arguments = json!({"old_string": old, "new_string": new});
    let written = format!("{{\"old_string\": {}, \"new_string\": {}}}", json!(old), json!(new));
    let mut draft = drafted("edit_file", &written, 4096);
    draft.complete(&arguments);
    assert_eq!((text(&draft, 1).as_str(), draft.counts()), ("+end\n", (30_001, 30_000)));
}
