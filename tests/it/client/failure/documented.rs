//! Sends each error on the errors page to the real adapter.

use std::time::Duration;

use futures_util::StreamExt as _;
use pintle_llm::{Client, Error, ErrorKind, Message, Request};
use pintle_providers::{Anthropic, Gemini, OpenAi, OpenAiCompatible};
use pintle_testkit::{Dialect, FaultScript, FaultServer};
use serde_json::{Value, json};

use crate::client::harness::model;

const PAGE: &str = include_str!("../../../../docs/reference/errors.md");

per_provider!(
    every_documented_error_is_classified,
    every_documented_overflow_is_recognised_in_bodies_of_any_form,
    every_documented_refusal_of_reasoning_is_recognised_in_bodies_of_any_form,
);

async fn every_documented_error_is_classified(dialect: Dialect) {
    let name = match dialect {
        Dialect::OpenAiResponses => "openai",
        Dialect::AnthropicMessages => "anthropic",
        Dialect::Gemini => "gemini",
        Dialect::ChatCompletions => "compatible",
    };
    let start = format!("| {name} |");
    let rows: Vec<Row> = PAGE.lines().filter(|line| line.starts_with(&start)).map(Row::read).collect();
    assert!(rows.len() >= 20, "{name} has {} rows: has the page lost some?", rows.len());
    for form in [Form::Status, Form::Whole, Form::Event] {
        assert!(rows.iter().any(|row| row.form == form), "{name} has no row of the form {form:?}");
    }
    for row in rows {
        row.check(dialect).await;
    }
}

/// Sends the messages of all servers, because each of them may offer any dialect.
async fn every_documented_overflow_is_recognised_in_bodies_of_any_form(dialect: Dialect) {
    for form in forms("Prompts that are too long") {
        for body in bodies(form.message) {
            let error = refused(dialect, &body).await;
            assert_eq!(error.kind(), ErrorKind::ContextLength, "{}: {body}\n{error:?}", form.server);
            assert!(error.to_string().contains(form.message.get(..9).unwrap()), "{}: {error}", form.server);
        }
    }
}

async fn every_documented_refusal_of_reasoning_is_recognised_in_bodies_of_any_form(dialect: Dialect) {
    for form in forms("Refused reasoning") {
        for body in bodies(form.message) {
            let error = refused(dialect, &body).await;
            assert!(error.is_reasoning_refused(), "{}: {body}\n{error:?}", form.server);
            assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::InvalidRequest, false), "{body}");
        }
    }
}

/// Message of a server, from a table of the page.
struct MessageForm {
    server: &'static str,
    message: &'static str,
}

fn forms(heading: &str) -> Vec<MessageForm> {
    let (_, section) = PAGE.split_once(&format!("### {heading}\n")).unwrap();
    let section = section.split("\n#").next().unwrap();
    let rows: Vec<[&str; 3]> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .filter_map(|line| <[&str; 3]>::try_from(line.split(" | ").collect::<Vec<_>>()).ok())
        .filter(|[server, ..]| *server != "server")
        .collect();
    assert!(rows.len() >= 14, "{rows:?}");
    let form = |[server, message, source]: [&'static str; 3]| {
        assert!(source.contains('#'), "{server} has no source");
        // A message with backticks is between two of them.
        let inside = message.strip_prefix("``").and_then(|message| message.strip_suffix("``"));
        MessageForm { server, message: inside.unwrap_or(message.trim_matches('`')) }
    };
    rows.into_iter().map(form).collect()
}

/// Returns error bodies of all forms that servers use.
fn bodies(message: &str) -> [String; 6] {
    [
        json!({"error": {"message": message, "type": "invalid_request_error", "code": null}}),
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}}),
        json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}),
        json!({"error": message}),
        json!({"object": "error", "message": message, "type": "BadRequestError", "code": 400}),
        json!({"error": {"message": "Provider returned error", "metadata": {"raw": message}}}),
    ]
    .map(|body| body.to_string())
}

/// Returns the error for a response with status 400 and this body.
async fn refused(dialect: Dialect, body: &str) -> Error {
    let response = format!(
        "HTTP/1.1 400 x\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let server = FaultServer::start([FaultScript::new().read_request().write(response)]).await.unwrap();
    let client = client(dialect, &server.url());
    let request = Request::new(model(dialect), [Message::user("What is there?")]);
    client.complete(request).await.unwrap_err()
}

#[test]
fn every_documented_error_has_a_known_provider() {
    let known = ["| openai |", "| anthropic |", "| gemini |", "| compatible |"];
    let rows = PAGE.lines().filter(|line| line.starts_with("| ") && line.matches(" | ").count() == 6);
    for row in rows.filter(|row| !row.starts_with("| provider |")) {
        assert!(known.iter().any(|start| row.starts_with(start)), "nobody reads this row: {row}");
    }
}

/// Position of the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// In a response with an error status.
    Status,
    /// In a complete response with a success status.
    Whole,
    /// In an event of a stream.
    Event,
}

/// One row of the page.
#[derive(Debug)]
struct Row {
    line: &'static str,
    status: u16,
    form: Form,
    headers: Vec<&'static str>,
    body: &'static str,
    kind: ErrorKind,
    again: bool,
    wait: Option<Duration>,
}

impl Row {
    fn read(line: &'static str) -> Self {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [_, answer, headers, body, kind, again, wait] = cells[..] else {
            panic!("expected seven cells, found {}: {line}", cells.len())
        };
        let (status, form) = match answer.split_once(' ') {
            Some((status, "stream")) => (status, Form::Event),
            Some((_, other)) => panic!("expected `stream` after the status, found {other:?}: {line}"),
            None if answer == "200" => (answer, Form::Whole),
            None => (answer, Form::Status),
        };
        let again = match again {
            "yes" => true,
            "no" => false,
            other => panic!("expected yes or no, found {other:?}: {line}"),
        };
        let seconds = |text: &str| text.strip_suffix(" s").and_then(|text| text.parse().ok()).expect(line);
        Self {
            line,
            status: status.parse().expect(line),
            form,
            headers: bare(headers).split("; ").filter(|header| !header.is_empty()).collect(),
            body: bare(body),
            kind: serde_json::from_value(Value::from(kind)).expect(line),
            again,
            wait: Some(wait)
                .filter(|wait| !wait.is_empty())
                .map(|wait| Duration::from_secs_f64(seconds(wait))),
        }
    }

    async fn check(&self, dialect: Dialect) {
        let server =
            FaultServer::start([FaultScript::new().read_request().write(self.answer())]).await.unwrap();
        let client = client(dialect, &server.url());
        let request = || Request::new(model(dialect), [Message::user("What is there?")]);
        if self.form != Form::Event {
            self.judge(dialect, &client.complete(request()).await.expect_err(self.line));
        }
        match (self.form, client.stream(request()).await) {
            (Form::Status, Err(error)) => self.judge(dialect, &error),
            (Form::Event, Ok(stream)) => {
                let items: Vec<_> = stream.collect().await;
                let last = items.into_iter().next_back().expect(self.line);
                self.judge(dialect, &last.expect_err(self.line));
            }
            (Form::Whole, _) => {}
            (_, found) => panic!("found {:?}: {}", found.map(|_| "a stream"), self.line),
        }
    }

    fn judge(&self, dialect: Dialect, error: &Error) {
        let found = (error.kind(), error.is_retryable(), error.retry_after());
        assert_eq!(found, (self.kind, self.again, self.wait), "{}\n{error:?}", self.line);
        assert_eq!(error.provider(), Some(dialect.name()), "{}", self.line);
        if self.form == Form::Status {
            assert_eq!(error.status(), Some(self.status), "{}", self.line);
        }
        assert_eq!(error.raw().is_some(), !self.body.is_empty(), "{}", self.line);
    }

    /// Returns the bytes of the response.
    fn answer(&self) -> String {
        let headers: String = self.headers.iter().map(|header| format!("{header}\r\n")).collect();
        let (media_type, body) = match self.form {
            Form::Event => {
                let event: Value = serde_json::from_str(self.body).expect(self.line);
                let name = event["type"].as_str().map(|name| format!("event: {name}\n")).unwrap_or_default();
                ("text/event-stream", format!("{name}data: {}\n\n", self.body))
            }
            Form::Status | Form::Whole if self.body.starts_with('<') => ("text/html", self.body.to_owned()),
            Form::Status | Form::Whole => ("application/json", self.body.to_owned()),
        };
        let (status, length) = (self.status, body.len());
        format!(
            "HTTP/1.1 {status} x\r\ncontent-type: {media_type}\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
        )
    }
}

/// Returns the cell without code marks.
fn bare(cell: &'static str) -> &'static str {
    cell.trim_matches('`')
}

fn client(dialect: Dialect, url: &str) -> Client {
    let key = "key-of-the-page";
    let builder = Client::builder();
    let builder = match dialect {
        Dialect::OpenAiResponses => {
            builder.provider(OpenAi::builder(key).with_base_url(url).build().unwrap())
        }
        Dialect::AnthropicMessages => {
            builder.provider(Anthropic::builder(key).with_base_url(url).build().unwrap())
        }
        Dialect::Gemini => builder.provider(Gemini::builder(key).with_base_url(url).build().unwrap()),
        Dialect::ChatCompletions => {
            builder.provider(OpenAiCompatible::builder(url).with_api_key(key).build().unwrap())
        }
    };
    builder.default_provider(dialect.name()).build().unwrap()
}
