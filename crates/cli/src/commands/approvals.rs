//! `pintle approvals`: lists the calls of all sessions that wait for a decision, and decides on them from any terminal.

use std::time::Duration;

use pintle_agent::{
    Decision, EventKind, PendingApproval, PostedInput, Principal, Replay, SessionEvent, SessionId,
};
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::{json_line, sanitize};
use pintle_host::sessions::Sessions;
use pintle_store::{Filter, Page, StoredJournal, Summary, post_input};
use pintle_tools::SandboxSide;
use pintle_tui::approve::inside;
use pintle_tui::console;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::arguments::{ApprovalArg, ApprovalsArgs, ApprovalsCommand, DecideArgs, DecisionName, ListFormat};
use crate::exit::Exit;

/// How long to wait for a running session to apply a decision.
const APPLY_TIMEOUT: Duration = Duration::from_secs(15);

const POLL: Duration = Duration::from_millis(100);

/// Runs `pintle approvals`.
pub(crate) async fn approvals(args: ApprovalsArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let sessions = Sessions::open(process_env).await?;
    let text = match &args.command {
        ApprovalsCommand::List => list(&sessions, args.output).await?,
        ApprovalsCommand::Show(approval) => show(&sessions, approval, args.output).await?,
        ApprovalsCommand::Decide(decide) => {
            decide_on(&sessions, decide, args.output, process_env.principal()).await?
        }
    };
    console::print(&text).await?;
    Ok(Exit::Done)
}

/// Call that waits, with its session.
struct SessionApproval {
    session: SessionId,
    title: String,
    approval: PendingApproval,
}

/// Returns the calls that wait in a session and in its subagents.
async fn pending_calls(sessions: &Sessions, summary: &Summary) -> Result<Vec<SessionApproval>, Failure> {
    let mut waiting = Vec::new();
    if summary.properties.contains_key(StoredJournal::PENDING_APPROVALS) {
        for approval in replay(sessions, &summary.id).await?.pending_approvals() {
            waiting.push(SessionApproval {
                session: summary.id.clone(),
                title: summary.title.clone(),
                approval,
            });
        }
    }
    let below = Filter::default().with_parent(summary.id.clone());
    for child in sessions.list(&below, &Page::default()).await? {
        waiting.extend(Box::pin(pending_calls(sessions, &child)).await?);
    }
    Ok(waiting)
}

async fn replay(sessions: &Sessions, id: &SessionId) -> Result<Replay, Failure> {
    sessions.record(id).await?.replay().or_failed("the session cannot be read")
}

async fn list(sessions: &Sessions, output: ListFormat) -> Result<String, Failure> {
    let mut waiting = Vec::new();
    for summary in sessions.list(&Filter::default(), &Page::default()).await? {
        waiting.extend(pending_calls(sessions, &summary).await?);
    }
    waiting.sort_by_key(|waiting| waiting.approval.asked_at);
    match output {
        ListFormat::Json => json_line(&waiting.iter().map(row).collect::<Vec<_>>()),
        ListFormat::Text if waiting.is_empty() => Ok("no calls are pending\n".to_owned()),
        ListFormat::Text => Ok(waiting.iter().map(line).collect()),
    }
}

fn row(waiting: &SessionApproval) -> serde_json::Value {
    let SessionApproval { session, title, approval } = waiting;
    json!({
        "session": session,
        "title": title,
        "call_id": approval.call_id,
        "tool_name": approval.tool_name,
        "arguments": approval.arguments,
        "reason": approval.reason,
        "sandbox": approval.sandbox,
        "suggested_rules": approval.suggested_rules,
        "asked_at": approval.asked_at,
        "ticket": approval.fingerprint,
    })
}

fn line(waiting: &SessionApproval) -> String {
    let SessionApproval { session, title, approval } = waiting;
    let time = approval.asked_at.to_string();
    let time = time.get(..16).unwrap_or(&time).replace('T', " ");
    let arguments = pintle_tui::render::summarize_arguments(&approval.arguments);
    let call = format!("{} {arguments}", approval.tool_name);
    format!(
        "{session}  {}  {time}  {}: {}  ({})\n",
        sanitize(&approval.call_id),
        sanitize(call.trim_end()),
        sanitize(&approval.reason),
        sanitize(title)
    )
}

/// Finds the requested call.
async fn find(sessions: &Sessions, wanted: &ApprovalArg) -> Result<SessionApproval, Failure> {
    let summary = sessions.find(&wanted.session).await?;
    let all = pending_calls(sessions, &summary).await?;
    let names: Vec<String> = all.iter().map(|waiting| waiting.approval.call_id.clone()).collect();
    let is_meant =
        |waiting: &SessionApproval| wanted.call.as_ref().is_none_or(|call| *call == waiting.approval.call_id);
    let mut meant = all.into_iter().filter(is_meant);
    match (meant.next(), meant.next(), &wanted.call) {
        (Some(waiting), None, _) => Ok(waiting),
        (Some(_), Some(_), _) => {
            Err(Failure::usage(format!("several calls are pending: expected one of {}", names.join(", "))))
        }
        (None, _, None) => Err(Failure::usage(format!("session {} has no pending call", summary.id))),
        (None, _, Some(call)) => Err(not_pending_failure(sessions, &summary.id, call).await?),
    }
}

/// Returns why there is nothing to decide on, with an earlier decision on the call, if any.
async fn not_pending_failure(sessions: &Sessions, id: &SessionId, call: &str) -> Result<Failure, Failure> {
    let replay = replay(sessions, id).await?;
    let decided = replay.events.iter().rev().find_map(|event| ending_of(event, call));
    Ok(Failure::usage(match decided {
        Some(ending) => format!("{call} has already been decided: {ending}"),
        None => format!("session {id} has no pending call {call}"),
    }))
}

/// Returns how a request for approval of a call ended, if this event reports it.
fn ending_of(event: &SessionEvent, call: &str) -> Option<String> {
    let EventKind::ApprovalDecided { call_id, approved, ending, by, .. } = &event.kind else { return None };
    if call_id != call {
        return None;
    }
    let ending = ending.and_then(|ending| serde_json::to_value(ending).ok());
    let ending = ending.as_ref().and_then(|ending| ending.as_str());
    let ending = ending.unwrap_or(if *approved { "allowed" } else { "denied" });
    let by = by.as_ref().map_or_else(String::new, |by| format!(" by {}", sanitize(by.as_str())));
    Some(format!("{ending}{by}"))
}

async fn show(sessions: &Sessions, wanted: &ApprovalArg, output: ListFormat) -> Result<String, Failure> {
    let waiting = find(sessions, wanted).await?;
    if output == ListFormat::Json {
        return json_line(&row(&waiting));
    }
    let SessionApproval { session, title, approval } = waiting;
    let arguments = serde_json::to_string_pretty(&approval.arguments).unwrap_or_default();
    let rules = match approval.suggested_rules.as_slice() {
        [] => String::new(),
        rules => format!("rule:    {}\n", sanitize(&rules.join(", "))),
    };
    let side = approval.sandbox.map_or_else(String::new, |side| format!("runs:    {}\n", side.as_words()));
    Ok(format!(
        "session: {session} ({})\ncall:    {}\ntool:    {}\nasked:   {}\nreason:  {}\n{side}{rules}arguments:\n{}\n",
        sanitize(&title),
        sanitize(&approval.call_id),
        sanitize(&approval.tool_name),
        approval.asked_at,
        sanitize(&approval.reason),
        arguments.lines().map(|line| format!("  {}", sanitize(line))).collect::<Vec<_>>().join("\n")
    ))
}

async fn decide_on(
    sessions: &Sessions,
    args: &DecideArgs,
    output: ListFormat,
    by: Principal,
) -> Result<String, Failure> {
    let mut decision = decision(args)?;
    let SessionApproval { session, approval, .. } = find(sessions, &args.approval).await?;
    if args.inside {
        if approval.sandbox != Some(SandboxSide::Outside) {
            return Err(Failure::usage(format!(
                "--inside: {} does not ask to leave the sandbox",
                approval.call_id
            )));
        }
        decision = Decision::Change { arguments: inside(&approval.arguments) };
    }
    let PendingApproval { call_id, fingerprint, .. } = approval;
    let input = PostedInput::Decision { call_id: call_id.clone(), fingerprint, decision, by: Some(by) };
    let input_id = format!("decision-{}", SessionId::generate());
    post_input(sessions.store(), &session, &input_id, input).await.or_failed("cannot post the decision")?;
    let ending = if sessions.is_live(&session).await {
        wait_until_applied(sessions, &session, &call_id).await?
    } else {
        None
    };
    match output {
        ListFormat::Json => json_line(&json!({"session": session, "call_id": call_id, "ending": ending})),
        ListFormat::Text => Ok(match ending {
            Some(ending) => format!("{}: {ending}\n", sanitize(&call_id)),
            None => format!(
                "{}: decided; it applies when the session resumes, for example with `pintle run --resume {session}`\n",
                sanitize(&call_id)
            ),
        }),
    }
}

fn decision(args: &DecideArgs) -> Result<Decision, Failure> {
    match (args.decision, &args.arguments) {
        (DecisionName::Deny, _) if args.inside => Err(Failure::usage("--inside goes with `approve`")),
        (DecisionName::Deny, Some(_)) => Err(Failure::usage("--arguments goes with `approve`")),
        (DecisionName::Deny, None) => Ok(Decision::Deny { reason: args.reason.clone() }),
        (DecisionName::Approve, None) if args.reason.is_some() => {
            Err(Failure::usage("--reason goes with `deny`"))
        }
        (DecisionName::Approve, None) => Ok(Decision::Approve),
        (DecisionName::Approve, Some(text)) => {
            let arguments: serde_json::Value =
                serde_json::from_str(text).or_usage("--arguments is not JSON")?;
            if !arguments.is_object() {
                return Err(Failure::usage("--arguments is not a JSON object"));
            }
            Ok(Decision::Change { arguments })
        }
    }
}

/// Waits until the running session has applied the decision, and returns how the request ended: another decision may
/// have come first. `None` if the session does not apply it soon.
async fn wait_until_applied(
    sessions: &Sessions,
    id: &SessionId,
    call: &str,
) -> Result<Option<String>, Failure> {
    let deadline = Instant::now() + APPLY_TIMEOUT;
    while Instant::now() < deadline {
        let replay = replay(sessions, id).await?;
        if let Some(ending) = replay.events.iter().rev().find_map(|event| ending_of(event, call))
            && !replay.pending_approvals().iter().any(|pending| pending.call_id == call)
        {
            return Ok(Some(ending));
        }
        sleep(POLL).await;
    }
    Ok(None)
}
