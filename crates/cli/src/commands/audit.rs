//! `pintle audit`: reports the requests, approvals, commands, changes and costs of a session, and verifies its record.

use pintle_governance::CallHistory;
use pintle_governance::audit::AuditReport;
use pintle_host::audit::{AuditDetail, read_audit, redact_audit, render_audit};
use pintle_host::failure::Failure;
use pintle_host::process_env::ProcessEnv;
use pintle_host::sessions::Sessions;
use pintle_tools::most_similar;
use pintle_tui::console;

use crate::arguments::AuditArgs;
use crate::commands::sessions::verify;
use crate::exit::Exit;

/// Runs `pintle audit`.
pub(crate) async fn audit(args: AuditArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let head = args.head.as_deref().map(verify::parse_head).transpose()?;
    let sessions = Sessions::open(process_env).await?;
    let id = sessions.find(&args.session).await?.id;
    let mut report = read_audit(&sessions, id, head).await?;
    if !args.full {
        report = redact_audit(report, process_env)?;
    }
    let call = args.call.as_deref().map(|wanted| find_call(&report, wanted)).transpose()?;
    let detail = if args.full { AuditDetail::Complete } else { AuditDetail::Decisive };
    let text = render_audit(&report, call, args.output.into(), detail)?;
    console::print(&text).await?;
    Ok(if report.is_intact() { Exit::Done } else { Exit::Failed })
}

/// Returns the call with this id, or the only one whose id has this prefix. Calls of the session precede calls of its
/// subagents.
fn find_call<'a>(report: &'a AuditReport, wanted: &str) -> Result<&'a CallHistory, Failure> {
    let id = &report.session_id;
    let known: Vec<&CallHistory> = report.calls().collect();
    let of_session = |call: &&&CallHistory| call.session_id == *id;
    let exact: Vec<&CallHistory> = known.iter().copied().filter(|call| call.call_id == wanted).collect();
    let found = if exact.is_empty() {
        known.iter().copied().filter(|call| call.call_id.starts_with(wanted)).collect()
    } else {
        exact
    };
    let own: Vec<&CallHistory> = found.iter().filter(of_session).copied().collect();
    let found = if own.is_empty() { found } else { own };
    match found.as_slice() {
        [call] => Ok(call),
        [one, other, ..] => {
            let name = |call: &CallHistory| format!("{} of session {}", call.call_id, call.session_id);
            let (one, other) = (name(one), name(other));
            Err(Failure::usage(format!("`{wanted}` is a prefix of several calls, such as {one} and {other}"))
                .with_hint("give the session of the call, or a longer prefix of its id"))
        }
        [] => {
            let failure = Failure::usage(format!("session {id} has no call `{wanted}`"));
            let ids = known.iter().map(|call| call.call_id.as_str());
            let similar = most_similar(wanted, ids);
            let nearest = if similar.is_empty() {
                known.iter().take(1).map(|call| call.call_id.as_str()).collect()
            } else {
                similar
            };
            Err(match nearest.first() {
                Some(nearest) => failure.with_hint(&format!("the nearest is `{nearest}`")),
                None => failure.with_hint("it made no calls"),
            })
        }
    }
}
