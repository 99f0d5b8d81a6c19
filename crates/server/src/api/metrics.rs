//! Metrics in the text format of Prometheus.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use pintle_agent::{Session, SessionState};

use super::openapi::Operation;
use super::{App, TokenScope};

const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "get",
            "/v1/metrics",
            "readMetrics",
            TokenScope::Admin,
            "Read measurements of the server, in the text format of Prometheus",
            get(metrics),
        )
        .answers_as(200, &["text/plain"]),
    ]
}

async fn metrics(State(app): State<App>) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE))], text(&app)).into_response()
}

fn text(app: &App) -> String {
    let counters = &app.hub.counters;
    let live = app.hub.all_live();
    let working = live
        .iter()
        .filter(|live| live.with_session(Session::state) == Some(SessionState::Processing))
        .count();
    let waiting: usize = live.iter().map(|live| live.handle.tree_approvals().len()).sum();
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let mut text = String::new();
    let mut add = |name: &str, kind: &str, help: &str, samples: &[(&str, u64)]| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP pintle_{name} {help}\n# TYPE pintle_{name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "pintle_{name}{labels} {value}");
        }
    };
    add("sessions_open", "gauge", "Sessions that this server has open.", &[("", live.len() as u64)]);
    let queued = [("", app.hub.waiting() as u64)];
    add("sessions_waiting", "gauge", "Sessions that wait until others are closed.", &queued);
    add("sessions_working", "gauge", "Open sessions with a run in progress.", &[("", working as u64)]);
    add("approvals_pending", "gauge", "Calls that wait for a decision.", &[("", waiting as u64)]);
    add("streams_open", "gauge", "Streams of events that are open.", &[("", read(&counters.streams))]);
    let answers = [
        ("{class=\"2xx\"}", counters.answers(2)),
        ("{class=\"3xx\"}", counters.answers(3)),
        ("{class=\"4xx\"}", counters.answers(4)),
        ("{class=\"5xx\"}", counters.answers(5)),
    ];
    add("http_responses_total", "counter", "Answers by the class of their status.", &answers);
    for (name, help, count) in [
        ("events_total", "Events of sessions, excluding subagents.", &counters.events),
        ("runs_total", "Runs that ended.", &counters.runs),
        (
            "model_responses_total",
            "Responses of models, excluding responses to subagents.",
            &counters.model_responses,
        ),
        ("model_input_tokens_total", "Input tokens of these responses.", &counters.input_tokens),
        ("model_output_tokens_total", "Output tokens of these responses.", &counters.output_tokens),
        ("tool_calls_total", "Tool calls that started, excluding calls of subagents.", &counters.tool_calls),
    ] {
        add(name, "counter", help, &[("", read(count))]);
    }
    text
}
