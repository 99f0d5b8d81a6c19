//! Audit of a session as a document: its requests, approvals, commands, changes and costs, with the verification of its
//! record.

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
use serde::Serialize;

use self::document::AuditDocument;
pub use self::reading::read_audit;
use crate::failure::{Failure, OrFailure as _};
use crate::process_env::ProcessEnv;
use crate::process_secrets;
use crate::sanitize::json_line;
use crate::sessions::Sessions;

/// Format of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditFormat {
    /// Plain lines.
    Text,
    /// One JSON object.
    Json,
    /// One HTML page without scripts and external resources.
    Html,
}

/// How much of each call is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditDetail {
    /// Decision and outcome.
    Decisive,
    /// Everything.
    Complete,
}

/// Report about one call.
#[derive(Debug, Serialize)]
struct CallReport<'a> {
    session_id: &'a SessionId,
    chain: Option<&'a ChainReport>,
    call: &'a CallHistory,
}

/// Replaces the secrets of the process in a report.
///
/// # Errors
///
/// A secret that is a word that the report itself uses.
pub fn redact_audit(report: AuditReport, process_env: &ProcessEnv) -> Result<AuditReport, Failure> {
    report.redacted(&process_secrets::redactions(process_env, None)).or_failed("the audit cannot be redacted")
}

/// Returns the audit of a session as text, without secrets. `prefix` is the id of the session or the beginning of it.
///
/// # Errors
///
/// A session that is not found, and a store that cannot be read. Damage is a part of the report.
pub async fn export_audit(
    sessions: &Sessions,
    prefix: &str,
    format: AuditFormat,
    process_env: &ProcessEnv,
) -> Result<String, Failure> {
    let report = read_audit(sessions, sessions.find(prefix).await?.id, None).await?;
    render_audit(&redact_audit(report, process_env)?, None, format, AuditDetail::Decisive)
}

/// Renders a report, or one call of it. HTML pages contain every detail.
///
/// # Errors
///
/// A report that cannot be serialised.
pub fn render_audit(
    report: &AuditReport,
    call: Option<&CallHistory>,
    format: AuditFormat,
    detail: AuditDetail,
) -> Result<String, Failure> {
    Ok(match (format, call) {
        (AuditFormat::Json, None) => json_line(report)?,
        (AuditFormat::Json, Some(call)) => {
            json_line(&CallReport { session_id: &report.session_id, chain: report.chain.as_ref(), call })?
        }
        (AuditFormat::Text, call) => text::render(&document(report, call, detail)),
        (AuditFormat::Html, call) => html::render(&document(report, call, AuditDetail::Complete)),
    })
}

fn document(report: &AuditReport, call: Option<&CallHistory>, detail: AuditDetail) -> AuditDocument {
    match call {
        Some(call) => calls::document(report, call),
        None => report::document(report, detail),
    }
}
