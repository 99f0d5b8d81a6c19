//! `pintle audit`: reports the requests, approvals, commands, changes and costs of a session, and verifies its record.

mod calls;
mod document;
mod html;
mod reading;
mod report;
mod text;
mod verification;

use pintle_agent::SessionId;
use pintle_governance::CallHistory;
use pintle_governance::audit::{AuditReport, ChainReport};
use pintle_tools::most_similar;
use serde::Serialize;

use self::document::AuditDocument;
use crate::arguments::{AuditArgs, AuditFormat};
use crate::commands::sessions::verify;
use crate::console;
use crate::exit::Exit;
use crate::failure::{Failure, OrFailure as _};
use crate::process_env::ProcessEnv;
use crate::process_secrets;
use crate::render;
use crate::sessions::Sessions;

/// Report about one call.
#[derive(Debug, Serialize)]
struct CallReport<'a> {
    session_id: &'a SessionId,
    chain: Option<&'a ChainReport>,
    call: &'a CallHistory,
}

/// How much of each call is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallDetail {
    /// Decision and outcome.
    Decisive,
    /// Everything.
    Complete,
}

/// Runs `pintle audit`.
pub(crate) async fn audit(args: AuditArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let head = args.head.as_deref().map(verify::parse_head).transpose()?;
    let sessions = Sessions::open(process_env).await?;
    let id = sessions.find(&args.session).await?.id;
    let mut report = reading::report(&sessions, id, head).await?;
    if !args.full {
        report = report
            .redacted(&process_secrets::redactions(process_env, None))
            .or_failed("the audit cannot be redacted")?;
    }
    let call = args.call.as_deref().map(|wanted| find_call(&report, wanted)).transpose()?;
    let detail = if args.full { CallDetail::Complete } else { CallDetail::Decisive };
    let text = render_report(&report, call, args.output, detail)?;
    console::print(&text).await?;
    Ok(if report.is_intact() { Exit::Done } else { Exit::Failed })
}

/// Returns the audit of a session as text, without secrets.
#[cfg(feature = "server")]
pub(crate) async fn text(
    sessions: &Sessions,
    prefix: &str,
    format: AuditFormat,
    process_env: &ProcessEnv,
) -> Result<String, Failure> {
    let report = reading::report(sessions, sessions.find(prefix).await?.id, None).await?;
    let report = report
        .redacted(&process_secrets::redactions(process_env, None))
        .or_failed("the audit cannot be redacted")?;
    render_report(&report, None, format, CallDetail::Decisive)
}

/// Renders a report, or one call of it. HTML pages contain every detail.
fn render_report(
    report: &AuditReport,
    call: Option<&CallHistory>,
    format: AuditFormat,
    detail: CallDetail,
) -> Result<String, Failure> {
    Ok(match (format, call) {
        (AuditFormat::Json, None) => render::json_line(report)?,
        (AuditFormat::Json, Some(call)) => render::json_line(&CallReport {
            session_id: &report.session_id,
            chain: report.chain.as_ref(),
            call,
        })?,
        (AuditFormat::Text, call) => text::render(&document(report, call, detail)),
        (AuditFormat::Html, call) => html::render(&document(report, call, CallDetail::Complete)),
    })
}

fn document(report: &AuditReport, call: Option<&CallHistory>, detail: CallDetail) -> AuditDocument {
    match call {
        Some(call) => calls::document(report, call),
        None => report::document(report, detail),
    }
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
