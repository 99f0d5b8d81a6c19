//! Details of a call that needs approval: its effect, as far as it is known before the call runs.

use pintle_agent::{ApprovalRequest, SubagentOrigin};
use pintle_host::sanitize::diff_lines;
use pintle_tools::{ChangeKind, Effect, FileChange};
use serde_json::Value;

use super::is_plan;
use crate::render::Section;

/// Returns the name of the tool, prefixed with the name of the subagent that calls it.
pub(crate) fn title(request: &ApprovalRequest) -> String {
    let origin = request.origin.as_ref().map(origin_prefix).unwrap_or_default();
    format!("{origin}{}", request.tool_name)
}

/// Returns a prefix that names the calling subagent.
fn origin_prefix(origin: &SubagentOrigin) -> String {
    let depth = if origin.depth > 1 { format!(" at depth {}", origin.depth) } else { String::new() };
    format!("{}{depth}: ", origin.agent_id)
}

/// Returns the diff of the call, or its arguments if it has no diff. Mentions a failed dry run, because the real call may
/// still succeed.
pub(crate) fn effect(request: &ApprovalRequest) -> Vec<Section> {
    let dry_run = request.dry_run.as_ref();
    if let Some(diff) = dry_run.and_then(|dry_run| diff(&dry_run.changes)) {
        return vec![diff];
    }
    let failure = dry_run.and_then(|dry_run| dry_run.failure.as_ref());
    let failure = failure.map(|failure| Section::text(&format!("a dry run failed:\n{failure}\narguments:")));
    failure.into_iter().chain(arguments(request)).collect()
}

/// Returns the command below its other arguments, the text of a plan, or all arguments as JSON.
fn arguments(request: &ApprovalRequest) -> Vec<Section> {
    if is_plan(request)
        && let Some(plan) = request.arguments.get("plan").and_then(Value::as_str)
    {
        return vec![Section::text(plan)];
    }
    if request.effect == Effect::Execute
        && let Some(sections) = command(&request.arguments)
    {
        return sections;
    }
    vec![Section::text(&serde_json::to_string_pretty(&request.arguments).unwrap_or_default())]
}

/// Returns the command line verbatim, below the other arguments. The working directory matters as much as the command.
fn command(arguments: &Value) -> Option<Vec<Section>> {
    let fields = arguments.as_object()?;
    let (name, command) =
        ["command", "cmd"].into_iter().find_map(|name| Some((name, fields.get(name)?.as_str()?)))?;
    let others = fields.iter().filter(|(field, value)| *field != name && !value.is_null());
    let others = others.map(|(field, value)| format!("{field}: {value}"));
    Some(vec![Section::plain(others), Section::text(command)])
}

/// Returns the lines of all diffs, or `None` unless every change has a diff: the user must see the complete effect.
fn diff(changes: &[FileChange]) -> Option<Section> {
    let is_visible = |change: &FileChange| !change.diff.is_empty() && has_honest_header(change);
    let all = !changes.is_empty() && changes.iter().all(is_visible);
    all.then(|| Section::diff(changes.iter().flat_map(|change| diff_lines(&change.diff))))
}

/// Returns whether the diff's header can be trusted. With a line end in its name, a file could pose as another file.
fn has_honest_header(change: &FileChange) -> bool {
    let from = match &change.kind {
        ChangeKind::Renamed { from } => from.as_str(),
        ChangeKind::Added | ChangeKind::Modified | ChangeKind::Deleted => "",
    };
    !change.path.contains(char::is_control) && !from.contains(char::is_control)
}
