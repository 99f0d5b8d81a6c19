//! Tool calls as a client shows them: title, kind, locations, content, plan. Pure functions.

use std::path::{Path, PathBuf};

use pintle_agent::CallKind;
use pintle_env::Output;
use pintle_tools::{ChangeKind, FileChange, named_paths};
use serde_json::Value;

use crate::wire::{CallContent, FileLocation, PlanEntry, ToolKind};

/// Maximum bytes of output in an update. The model may get more or less.
const MAX_OUTPUT: usize = 64 << 10;

/// Maximum bytes of a diff in an update.
const MAX_DIFF: usize = 1 << 20;

/// Maximum characters of a title.
const MAX_TITLE: usize = 160;

/// Fields of arguments that name a file or a directory, in all toolsets.
const PATHS: [&str; 6] = ["file_path", "path", "absolute_path", "notebook_path", "dir_path", "directory"];

/// Fields of arguments that contain a patch.
const PATCHES: [&str; 2] = ["patch", "input"];

/// Fields that best describe the subject of a call, besides paths.
const SUBJECTS: [&str; 8] = ["command", "cmd", "pattern", "query", "url", "description", "task", "prompt"];

pub(crate) fn kind(kind: CallKind) -> ToolKind {
    match kind {
        CallKind::Read => ToolKind::Read,
        CallKind::Edit => ToolKind::Edit,
        CallKind::Search => ToolKind::Search,
        CallKind::Command => ToolKind::Execute,
        CallKind::Fetch => ToolKind::Fetch,
        CallKind::Agent => ToolKind::Think,
        CallKind::Other | _ => ToolKind::Other,
    }
}

/// Returns a one-line title for a call.
pub(crate) fn title(tool: &str, kind: CallKind, arguments: &Value) -> String {
    let subject = subject(kind, arguments);
    let verb = match kind {
        CallKind::Read => "Read",
        CallKind::Edit => "Edit",
        CallKind::Search => "Search",
        CallKind::Fetch => "Fetch",
        CallKind::Command => "",
        CallKind::Agent | CallKind::Other | _ => tool,
    };
    match subject {
        Some(subject) if verb.is_empty() => one_line(&subject),
        Some(subject) => one_line(&format!("{verb} {subject}")),
        None => tool.to_owned(),
    }
}

fn subject(kind: CallKind, arguments: &Value) -> Option<String> {
    let text = |field: &&str| match arguments.get(field)? {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Array(words) => {
            words.iter().map(Value::as_str).collect::<Option<Vec<_>>>().map(|words| words.join(" "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) | Value::String(_) => None,
    };
    let patched = || Some(patched_paths(arguments).join(" ")).filter(|paths| !paths.is_empty());
    match kind {
        CallKind::Read => PATHS.iter().chain(&SUBJECTS).find_map(text),
        CallKind::Edit => {
            PATHS.iter().find_map(text).or_else(patched).or_else(|| SUBJECTS.iter().find_map(text))
        }
        CallKind::Search | CallKind::Command | CallKind::Fetch | CallKind::Agent | CallKind::Other | _ => {
            SUBJECTS.iter().chain(&PATHS).find_map(text)
        }
    }
}

/// Returns the files that a patch in the arguments names. The arguments of a tool without a schema are the patch itself.
fn patched_paths(arguments: &Value) -> Vec<String> {
    let fields = PATCHES.iter().filter_map(|field| arguments.get(field));
    let patch = std::iter::once(arguments).chain(fields).find_map(Value::as_str);
    patch.map(named_paths).unwrap_or_default()
}

/// Returns the first line, shortened, without control characters.
fn one_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let is_more = line.len() < text.trim().len();
    let mut shown: String = line.chars().filter(|c| !c.is_control()).take(MAX_TITLE).collect();
    if is_more || line.chars().count() > MAX_TITLE {
        shown.push('…');
    }
    shown
}

/// Returns the files that the arguments name.
pub(crate) fn locations(arguments: &Value, directory: &Path) -> Vec<FileLocation> {
    let path = PATHS.iter().find_map(|field| arguments.get(field)?.as_str());
    let line = ["offset", "line"].iter().find_map(|field| arguments.get(field)?.as_u64());
    let line = line.and_then(|line| u32::try_from(line).ok()).filter(|line| *line > 0);
    if let Some(path) = path {
        return vec![FileLocation { path: absolute(path, directory), line }];
    }
    let paths = patched_paths(arguments);
    paths.iter().map(|path| FileLocation { path: absolute(path, directory), line: None }).collect()
}

/// Returns the changed files.
pub(crate) fn changed_locations(changes: &[FileChange], directory: &Path) -> Vec<FileLocation> {
    changes
        .iter()
        .map(|change| FileLocation { path: absolute(&change.path, directory), line: None })
        .collect()
}

/// Returns the path below the directory, without `.` and `..`.
fn absolute(path: &str, directory: &Path) -> PathBuf {
    use std::path::Component;

    let mut resolved = PathBuf::new();
    for component in directory.join(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                resolved.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => resolved.push(component),
        }
    }
    resolved
}

/// Returns the diffs of changes, one for each hunk.
pub(crate) fn diffs(changes: &[FileChange], directory: &Path) -> Vec<CallContent> {
    changes.iter().flat_map(|change| diff(change, directory)).collect()
}

fn diff(change: &FileChange, directory: &Path) -> Vec<CallContent> {
    if change.diff.len() > MAX_DIFF {
        return vec![CallContent::text(format!("The diff of {} is too long to be shown.", change.path))];
    }
    let path = absolute(&change.path, directory);
    let is_new = matches!(change.kind, ChangeKind::Added);
    let shown = |DiffHunk { old, new }| CallContent::Diff {
        path: path.clone(),
        old_text: (!is_new).then_some(old),
        new_text: new,
    };
    hunks(&change.diff).into_iter().map(shown).collect()
}

/// Lines of a unified diff between two of its headers.
#[derive(Debug, Default, PartialEq, Eq)]
struct DiffHunk {
    old: String,
    new: String,
}

fn hunks(diff: &str) -> Vec<DiffHunk> {
    let mut hunks: Vec<DiffHunk> = Vec::new();
    let mut last = '\n';
    for line in diff.split_inclusive('\n') {
        if line.starts_with("@@") {
            hunks.push(DiffHunk::default());
            continue;
        }
        // File names precede the first hunk.
        let Some(DiffHunk { old, new }) = hunks.last_mut() else { continue };
        let (mark, text) = (line.chars().next().unwrap_or(' '), line.get(1..).unwrap_or_default());
        match mark {
            '-' => old.push_str(text),
            '+' => new.push_str(text),
            // "\ No newline at end of file" applies to the previous line.
            '\\' => {
                for (side, other) in [(&mut *old, '+'), (&mut *new, '-')] {
                    if last != other && side.ends_with('\n') {
                        side.pop();
                    }
                }
            }
            _ => {
                old.push_str(text);
                new.push_str(text);
            }
        }
        last = mark;
    }
    hunks
}

/// Returns output as a fenced code block, so that a client that renders Markdown shows it verbatim.
pub(crate) fn output(output: &Output) -> Option<CallContent> {
    if output.is_empty() {
        return None;
    }
    let mut text = match output.head_text_lossy(MAX_OUTPUT) {
        Ok(text) => text,
        Err(error) => format!("the output cannot be read: {error}"),
    };
    let rest = output.len().saturating_sub(MAX_OUTPUT as u64);
    if rest > 0 {
        text.push_str(&format!("\n[{rest} more bytes]"));
    }
    Some(CallContent::text(fenced(&text)))
}

/// Returns the text between fences that are longer than any run of backticks in it.
pub(crate) fn fenced(text: &str) -> String {
    let (mut longest, mut run) = (2, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}")
}

/// Returns whether the tool records plans. Clients show its calls as plans.
pub(crate) fn is_plan_tool(tool: &str) -> bool {
    plan_fields(tool).is_some()
}

/// Returns the names of the fields for the list of steps and the text of a step, if the tool records plans.
fn plan_fields(tool: &str) -> Option<(&'static str, &'static str)> {
    match tool {
        "update_plan" => Some(("plan", "step")),
        "TodoWrite" => Some(("todos", "content")),
        _ => None,
    }
}

/// Returns the plan that a call records, if its tool records plans.
pub(crate) fn plan(tool: &str, arguments: &Value) -> Option<Vec<PlanEntry>> {
    let (list, text) = plan_fields(tool)?;
    let entry = |step: &Value| {
        let status = match step.get("status").and_then(Value::as_str) {
            Some("in_progress") => "in_progress",
            Some("completed") => "completed",
            Some(_) | None => "pending",
        };
        let content = step.get(text)?.as_str()?.to_owned();
        Some(PlanEntry { content, priority: "medium", status })
    };
    arguments.get(list)?.as_array()?.iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PATCH: &str =
        "*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n+y\n*** Delete File: b.rs\n*** End Patch\n";

    #[test]
    fn titles_say_what_a_call_does() {
        let cases = [
            ("shell", CallKind::Command, json!({"command": "make\nmake test"}), "make…"),
            ("exec", CallKind::Command, json!({"cmd": ["ls", "-l"]}), "ls -l"),
            ("read_file", CallKind::Read, json!({"file_path": "/w/a.rs"}), "Read /w/a.rs"),
            ("apply_patch", CallKind::Edit, json!("*** Begin Patch"), "apply_patch"),
            ("apply_patch", CallKind::Edit, json!(PATCH), "Edit a.rs b.rs"),
            ("apply_patch", CallKind::Edit, json!({"patch": PATCH}), "Edit a.rs b.rs"),
            ("apply_patch", CallKind::Edit, json!({"input": PATCH}), "Edit a.rs b.rs"),
            // It does not parse.
            ("apply_patch", CallKind::Edit, json!(PATCH.replace("-x", "x")), "Edit a.rs b.rs"),
            ("grep", CallKind::Search, json!({"pattern": "fn", "path": "src"}), "Search fn"),
            (
                "web_fetch",
                CallKind::Fetch,
                json!({"url": "https://example.org"}),
                "Fetch https://example.org",
            ),
            ("deploy", CallKind::Other, json!({}), "deploy"),
            ("shell", CallKind::Command, json!({"command": "a\u{1b}[2J"}), "a[2J"),
        ];
        for (tool, kind, arguments, expected) in cases {
            assert_eq!(title(tool, kind, &arguments), expected);
        }
    }

    #[test]
    fn locations_are_absolute() {
        let at = |path: &str, line| vec![FileLocation { path: path.into(), line }];
        let cases = [
            (json!({"file_path": "src/../a.rs"}), at("/w/a.rs", None)),
            (json!({"path": "/x/b", "offset": 7}), at("/x/b", Some(7))),
            (json!({"path": "/x/b", "offset": 0}), at("/x/b", None)),
            (json!({"path": 7}), vec![]),
            (json!("text"), vec![]),
            (json!(PATCH), [at("/w/a.rs", None), at("/w/b.rs", None)].concat()),
        ];
        for (arguments, expected) in cases {
            assert_eq!(locations(&arguments, Path::new("/w")), expected, "{arguments}");
        }
    }

    #[test]
    fn hunks_have_both_sides() {
        let hunk = |old: &str, new: &str| DiffHunk { old: old.into(), new: new.into() };
        let cases = [
            ("--- a\n+++ b\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n", vec![hunk("one\ntwo\n", "one\n2\n")]),
            ("@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n", vec![hunk("a\n", "b\n"), hunk("c\n", "")]),
            (
                "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
                vec![hunk("a", "b")],
            ),
            ("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", vec![hunk("a", "a\n")]),
            ("@@ -1 +1 @@\n--- x\n+++ y\n", vec![hunk("-- x\n", "++ y\n")]),
            ("", vec![]),
        ];
        for (diff, expected) in cases {
            assert_eq!(hunks(diff), expected, "{diff}");
        }
    }

    #[test]
    fn fences_are_longer_than_those_within() {
        assert_eq!(fenced("a\n"), "```\na\n```");
        assert_eq!(fenced("```\na"), "````\n```\na\n````");
    }

    #[test]
    fn plans_of_both_toolsets_are_shown() {
        let entry = |content: &str, status| PlanEntry { content: content.into(), priority: "medium", status };
        let cases = [
            (
                "update_plan",
                json!({"plan": [{"step": "a", "status": "completed"}]}),
                Some(vec![entry("a", "completed")]),
            ),
            (
                "TodoWrite",
                json!({"todos": [{"content": "b", "status": "?"}]}),
                Some(vec![entry("b", "pending")]),
            ),
            ("TodoWrite", json!({"todos": [{}]}), None),
            ("shell", json!({"plan": []}), None),
        ];
        for (tool, arguments, expected) in cases {
            assert_eq!(plan(tool, &arguments), expected, "{tool}");
        }
    }
}
