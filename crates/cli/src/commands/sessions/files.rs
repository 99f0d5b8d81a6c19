//! Formats the changes of a session in its directory, and their rewind.

use pintle_host::failure::Failure;
use pintle_host::sanitize::{json_line, to_single_line};
use pintle_host::sessions::files::{RewindOptions, RewindReport, SessionFiles, SessionPoint};
use pintle_tui::console;
use pintle_tui::render;
use serde_json::{Value, json};

use crate::arguments::{ListFormat, RewindArgs};

/// Writes the notice about a change that is not in a patch.
pub(crate) fn notify_left_out(path: &str) {
    console::notice(&format!("not in the patch: {}", to_single_line(path)));
}

/// Returns the changes since a point.
pub(super) async fn diff(
    files: &SessionFiles<'_>,
    point: &SessionPoint<'_>,
    output: ListFormat,
) -> Result<String, Failure> {
    let Some((id, comparison)) = files.changes(point).await? else {
        return match output {
            ListFormat::Json => json_line(&json!({"changes": [], "unknown": []})),
            ListFormat::Text => Ok(String::new()),
        };
    };
    if output == ListFormat::Json {
        let changes: Vec<Value> = comparison
            .changes
            .iter()
            .map(|change| json!({"path": change.path.to_string_lossy(), "kind": change.kind}))
            .collect();
        let unknown: Vec<_> = comparison.unknown.iter().map(|path| path.to_string_lossy()).collect();
        return json_line(&json!({"checkpoint": id, "changes": changes, "unknown": unknown}));
    }
    files.diff_text(&comparison).await
}

/// Where a report is read, which decides which commands it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RewindSurface {
    /// After a command line.
    Shell,
    /// In a conversation, which has the session open and has its own commands.
    Conversation,
}

impl RewindSurface {
    /// Returns the remedy for files that another process may have changed.
    const fn force_hint(self) -> &'static str {
        match self {
            Self::Shell => {
                "nothing was changed; --force restores these files as well, and --dry-run shows all"
            }
            Self::Conversation => {
                "nothing was changed; /rewind lists the inputs, /rewind N shows all changes, and /rewind N force restores these files as well"
            }
        }
    }

    /// Returns the words before a command line. The session must be closed first.
    const fn before_command(self) -> &'static str {
        match self {
            Self::Shell => "",
            Self::Conversation => "/quit, then ",
        }
    }
}

/// Restores files and rewinds the conversation, and returns a report.
///
/// Fails if another process has changed something, unless it is forced, or if a file was not restored.
pub(super) async fn rewind(
    files: &SessionFiles<'_>,
    point: &SessionPoint<'_>,
    args: &RewindArgs,
    surface: RewindSurface,
) -> Result<String, Failure> {
    let options = RewindOptions {
        files: !args.conversation,
        conversation: !args.files,
        force: args.force,
        dry_run: args.dry_run,
        // Only the user can restore files with this command.
        keeps_protected: false,
    };
    let report = files.rewind(point, options).await?;
    if !report.foreign.is_empty() && !args.force && !args.dry_run {
        let changed: Vec<String> = report.foreign.iter().map(|path| to_single_line(path)).collect();
        let message = format!("another process may have changed {}", changed.join(", "));
        return Err(Failure::failed(message).with_hint(surface.force_hint()));
    }
    let text = report_text(&report, args.output, surface)?;
    if report.problems.is_empty() {
        return Ok(text);
    }
    console::print(&text).await?;
    Err(Failure::failed("not every file was restored").with_hint("the same command resumes where it stopped"))
}

/// Returns the text of a report.
fn report_text(report: &RewindReport, output: ListFormat, surface: RewindSurface) -> Result<String, Failure> {
    if output == ListFormat::Json {
        let list = |pairs: &[(String, &'static str)]| -> Vec<Value> {
            pairs.iter().map(|(path, action)| json!({"path": path, "action": action})).collect()
        };
        let left: Vec<Value> =
            report.left_alone.iter().map(|(path, why)| json!({"path": path, "reason": why})).collect();
        return json_line(&json!({
            "id": report.id,
            "dry_run": report.dry_run,
            "turns": report.turns,
            "turns_before": report.before,
            "files": list(&report.steps),
            "changed_by_others": report.foreign,
            "left_alone": left,
            "undo": report.undo.as_ref().filter(|_| !report.dry_run),
            "problems": report.problems,
        }));
    }
    let mut text = String::new();
    for (path, action) in &report.steps {
        let by = if report.foreign.contains(path) { "  (possibly changed by another process)" } else { "" };
        text.push_str(&format!("{action:<9} {}{by}\n", to_single_line(path)));
    }
    for (path, why) in &report.left_alone {
        text.push_str(&format!("left      {}: {}\n", to_single_line(path), to_single_line(why)));
    }
    for problem in &report.problems {
        text.push_str(&format!("FAILED    {}\n", to_single_line(problem)));
    }
    let would = if report.dry_run { "would be" } else { "was" };
    let leave = surface.before_command();
    let entries = |turns: usize| render::plural(turns as u64, "entry");
    match report.turns {
        Some(turns) if turns < report.before => {
            text.push_str(&format!("the conversation {would} rewound to {}\n", entries(turns)));
            if !report.dry_run {
                text.push_str(&format!(
                    "to undo this before the conversation continues: {leave}pintle sessions rewind {}@{} --conversation\n",
                    report.id, report.before
                ));
            }
        }
        Some(turns) => text.push_str(&format!("the conversation {would} restored to {}\n", entries(turns))),
        None => {}
    }
    match &report.undo {
        None if report.turns.is_none() => text.push_str("no file has changed since\n"),
        Some(undo) if !report.dry_run => text.push_str(&format!(
            "to undo the files: {leave}pintle sessions rewind {} --checkpoint {undo}\n",
            report.id
        )),
        None | Some(_) => {}
    }
    Ok(text)
}
