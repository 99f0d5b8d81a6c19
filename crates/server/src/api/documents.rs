//! A session as one document, for readers, archives and auditors.

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use serde::Deserialize;

use super::extractors::{Path, Query};
use super::openapi::{Operation, Parameter};
use super::{App, Caller, TokenScope};
use crate::host::DocumentKind;
use crate::problem::Problem;

const EXPORT: &[Parameter] =
    &[Parameter::one_of("format", &["jsonl", "markdown", "html"], "Form of the document; default jsonl")];

const AUDIT: &[Parameter] =
    &[Parameter::one_of("format", &["json", "text", "html"], "Form of the document; default json")];

pub(super) fn operations() -> Vec<Operation> {
    let read = |path, id, summary, handler| {
        Operation::new("get", path, id, TokenScope::Read, summary, handler).with_problems(&[404, 409])
    };
    vec![
        read(
            "/v1/sessions/{id}/export",
            "exportSession",
            "Read the session as one document: its record, or its conversation",
            get(export),
        )
        .with_query(EXPORT)
        .answers_as(200, &["application/jsonl", "text/markdown", "text/html"]),
        read(
            "/v1/sessions/{id}/audit",
            "auditSession",
            "Read the requester, the approver and the effects of each call, with the record verified",
            get(audit),
        )
        .with_query(AUDIT)
        .answers_as(200, &["application/json", "text/plain", "text/html"]),
    ]
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ExportFormat {
    #[default]
    Jsonl,
    Markdown,
    Html,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AuditFormat {
    #[default]
    Json,
    Text,
    Html,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FormatQuery<F: Default> {
    format: F,
}

async fn export(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(FormatQuery { format }): Query<FormatQuery<ExportFormat>>,
) -> Result<Response, Problem> {
    let kind = match format {
        ExportFormat::Jsonl => DocumentKind::Record,
        ExportFormat::Markdown => DocumentKind::Markdown,
        ExportFormat::Html => DocumentKind::Html,
    };
    document(&app, &caller, &id, kind).await
}

async fn audit(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(FormatQuery { format }): Query<FormatQuery<AuditFormat>>,
) -> Result<Response, Problem> {
    let kind = match format {
        AuditFormat::Json => DocumentKind::Audit,
        AuditFormat::Text => DocumentKind::AuditText,
        AuditFormat::Html => DocumentKind::AuditHtml,
    };
    document(&app, &caller, &id, kind).await
}

async fn document(app: &App, caller: &Caller, id: &str, kind: DocumentKind) -> Result<Response, Problem> {
    let id = app.find(caller, id).await?.summary.id;
    let text = app.hub.host.document(&id, kind).await?;
    let media_type = match kind {
        DocumentKind::Record => "application/jsonl",
        DocumentKind::Audit => "application/json",
        DocumentKind::Markdown => "text/markdown; charset=utf-8",
        DocumentKind::AuditText => "text/plain; charset=utf-8",
        DocumentKind::Html | DocumentKind::AuditHtml => "text/html; charset=utf-8",
    };
    let mut response = ([(CONTENT_TYPE, HeaderValue::from_static(media_type))], text).into_response();
    // A page with text of the session must not open in this origin.
    response.headers_mut().insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    Ok(response)
}
