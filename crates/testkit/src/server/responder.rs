//! Decisions of the server, from request to reply, without I/O.

mod state;

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::options::ServerOptions;
use super::reply::{EventStream, Reply, ReplyBody, StreamFault};
use super::request_log::RecordedRequest;
use super::round_trip;
use crate::check::{self, Checker};
use crate::dialect::Dialect;
use crate::fingerprint;
use crate::history::History;
use crate::http::HttpRequest;
use crate::prefix::{InputTokens, Prefix};
use crate::response::{self, ErrorBody, ModelResponse, ResponseSpec};
use crate::script::{ErrorEvent, Failure, FailureKind, Script, Turn};
use crate::violation::{Violation, ViolationKind};
use state::{ConversationId, ServerState};

/// Responder that follows a script.
#[derive(Debug)]
pub(super) struct Responder {
    script: Script,
    options: ServerOptions,
    state: Mutex<ServerState>,
}

/// A legal request.
struct LegalRequest<'a> {
    dialect: Dialect,
    history: History,
    id: ConversationId,
    body: &'a [u8],
}

impl Responder {
    pub(super) fn new(script: Script, options: ServerOptions) -> Self {
        let state = Mutex::new(ServerState::new(options.conversations));
        Self { script, options, state }
    }

    pub(super) fn options(&self) -> &ServerOptions {
        &self.options
    }

    pub(super) fn requests(&self) -> Vec<RecordedRequest> {
        self.state().log.all()
    }

    pub(super) fn finished(&self, dialect: Dialect) -> bool {
        let state = self.state();
        (0..self.script.turns_for(dialect).count()).all(|turn| state.was_served(dialect, turn))
    }

    /// Decides on a reply and records the request.
    pub(super) fn respond(&self, request: &HttpRequest) -> Reply {
        let mut violations = Vec::new();
        let reply = match Dialect::of_path(&request.path) {
            Some(dialect) => self.respond_in(dialect, request, &mut violations),
            None => unknown_path(request),
        };
        let id = request_id(request);
        let reply = reply.with_header("x-request-id", id.clone()).with_header("request-id", id);
        self.state().log.push(request, reply.status(), violations, self.options.recorded_bytes);
        reply
    }

    fn respond_in(&self, dialect: Dialect, request: &HttpRequest, violations: &mut Vec<Violation>) -> Reply {
        if let Some(refusal) = self.refuse_key(dialect, request) {
            return refusal;
        }
        let checker = Checker::new().with_item_ids(self.options.allow_item_ids);
        *violations = checker.check(dialect, &request.method, &request.path, &request.headers, &request.body);
        let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
        let history = History::read(dialect, &request.path, &body);
        if violations.is_empty() {
            *violations = round_trip::violations(dialect, &history, |id, turn| {
                self.issued_with_reasoning(dialect, &history, id, turn)
            });
        }
        if let Some(refusal) = refuse(dialect, violations) {
            return refusal;
        }
        if let Some(model) = self.script.model.as_ref().filter(|model| **model != history.model) {
            let message = format!("model {:?} does not exist; the script knows {model:?}", history.model);
            return error(dialect, 404, &message, Some("model"));
        }
        let id = ConversationId { dialect, first_message: history.conversation() };
        self.respond_to(&LegalRequest { dialect, history, id, body: &request.body })
    }

    /// Refuses a wrong key. A missing key is reported by the checker.
    fn refuse_key(&self, dialect: Dialect, request: &HttpRequest) -> Option<Reply> {
        let expected = self.options.api_key.as_deref()?;
        let found = check::key(dialect, &request.headers).map(str::trim).filter(|key| !key.is_empty());
        match (dialect, found) {
            (_, Some(found)) if found == expected => None,
            (Dialect::Gemini, Some(_)) => Some(Reply::json(400, &response::gemini_wrong_key())),
            (_, Some(_)) => {
                Some(error(dialect, 401, "the key is not the one that this server expects", None))
            }
            (Dialect::ChatCompletions, None) => Some(error(dialect, 401, "this server expects a key", None)),
            (Dialect::OpenAiResponses | Dialect::AnthropicMessages | Dialect::Gemini, None) => None,
        }
    }

    /// Gives the turn that the history asks for, or the failure that comes before it.
    fn respond_to(&self, request: &LegalRequest<'_>) -> Reply {
        let (dialect, index) = (request.dialect, request.history.turn());
        let Some(turn) = self.script.turns_for(dialect).nth(index) else {
            let count = self.script.turns_for(dialect).count();
            let message = format!(
                "script `{}` ends after turn {count} in dialect {dialect}, but the request asks for turn {}",
                self.script.name,
                index + 1
            );
            return error(dialect, 400, &message, None);
        };
        if let Some(message) = self.failed_expectation(turn, request) {
            return error(dialect, 400, &message, None);
        }
        let attempt = self.state().attempt(request.id, index, turn.failures.len());
        match attempt.and_then(|attempt| turn.failures.get(attempt)) {
            Some(failure) => self.fail(failure, turn, request),
            None => {
                let reply = self.response(turn, request);
                self.state().mark_served(dialect, index);
                reply
            }
        }
    }

    fn failed_expectation(&self, turn: &Turn, request: &LegalRequest<'_>) -> Option<String> {
        turn.expectations.iter().enumerate().find_map(|(number, expectation)| {
            let problem = expectation.check(&request.history)?;
            Some(format!(
                "script `{}`, turn {} in dialect {}, expectation {}: {problem}",
                self.script.name,
                request.history.turn() + 1,
                request.dialect,
                number + 1,
            ))
        })
    }

    fn fail(&self, failure: &Failure, turn: &Turn, request: &LegalRequest<'_>) -> Reply {
        let dialect = request.dialect;
        let mut reply = match &failure.kind {
            FailureKind::Status { status, retry_after, body } => {
                scripted_status(dialect, *status, retry_after.as_deref(), body.as_deref())
            }
            FailureKind::Silence => Reply::close(),
            FailureKind::Cut { after_events } => {
                let mut reply = self.response(turn, request);
                match &mut reply.body {
                    ReplyBody::Stream(stream) => {
                        // A cut must be before the end.
                        let after = (*after_events).min(stream.frames.len().saturating_sub(1));
                        stream.fault = Some(StreamFault { after, stall: failure.stall, cut: true });
                        return reply;
                    }
                    ReplyBody::Complete { cut, .. } => *cut = true,
                    ReplyBody::Close => {}
                }
                reply
            }
            FailureKind::ErrorEvent(event) => {
                let mut reply = self.response(turn, request);
                if let ReplyBody::Stream(stream) = &mut reply.body {
                    break_stream(dialect, *event, failure, stream);
                    return reply;
                }
                error(dialect, response::event_status(dialect, *event), response::event_message(*event), None)
            }
        };
        reply.stall = failure.stall;
        reply
    }

    fn response(&self, turn: &Turn, request: &LegalRequest<'_>) -> Reply {
        let prefix = Prefix::read(request.dialect, request.body);
        let before = self.state().replace_prefix(request.id, &request.history.model, prefix.clone());
        let input = prefix.tokens(request.dialect, before.as_ref());
        let turn = self.turn_for(turn, request);
        let turn = turn.as_ref();
        let parts = ResponseSpec {
            input,
            ..self.parts(request.dialect, &request.history, request.history.turn(), turn)
        };
        let response = ModelResponse::new(&parts);
        if request.history.stream {
            let frames = response.frames(request.dialect);
            return Reply::stream(EventStream { frames, pause: turn.pause(), fault: None });
        }
        let mut reply = Reply::json(200, &response.complete(request.dialect));
        reply.stall = turn.pause();
        reply
    }

    /// Returns the turn with the content for the request, without the reasoning that the request has not enabled.
    fn turn_for<'a>(&self, turn: &'a Turn, request: &LegalRequest<'_>) -> Cow<'a, Turn> {
        let turn = turn.for_request(&request.history);
        let enabled = request.dialect != Dialect::AnthropicMessages || request.history.allows_thinking;
        if enabled || !self.options.thinking_on_request {
            return turn;
        }
        Cow::Owned(Turn { reasoning: None, ..turn.into_owned() })
    }

    fn parts<'a>(
        &'a self,
        dialect: Dialect,
        history: &'a History,
        index: usize,
        turn: &'a Turn,
    ) -> ResponseSpec<'a> {
        ResponseSpec {
            script: &self.script.name,
            dialect,
            model: &history.model,
            conversation: history.conversation(),
            index,
            turn,
            input: InputTokens::default(),
            stream_usage: history.stream_usage,
            // Only the first step of a turn must begin with thinking.
            requires_thinking: history.requires_thinking && history.open_from == history.turn(),
            gemini_call_ids: self.options.gemini_call_ids,
        }
    }

    /// Returns whether this server sent a call id to the same model after scripted reasoning.
    fn issued_with_reasoning(&self, dialect: Dialect, history: &History, id: &str, index: usize) -> bool {
        let Some(turn) = self.script.turns_for(dialect).nth(index).filter(|turn| turn.reasoning.is_some())
        else {
            return false;
        };
        let parts = self.parts(dialect, history, index, turn);
        (0..turn.calls.len()).any(|call| response::call_id(&parts, call) == id)
    }

    /// Locks the state. A poisoned lock is usable, because no update can panic halfway.
    fn state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an id that is equal for equal requests.
fn request_id(request: &HttpRequest) -> String {
    let body = String::from_utf8_lossy(&request.body);
    format!("req_{}", fingerprint::hex(&[&request.path, &body]))
}

fn unknown_path(request: &HttpRequest) -> Reply {
    let dialect =
        if request.path.starts_with("/v1beta") { Dialect::Gemini } else { Dialect::OpenAiResponses };
    let path = request.path.split('?').next().unwrap_or_default();
    let message = format!(
        "unknown path {} {path}; expected POST to /v1/responses, /v1/messages, /v1/chat/completions or \
         /v1beta/models/MODEL:generateContent or :streamGenerateContent",
        request.method
    );
    error(dialect, 404, &message, None)
}

fn error(dialect: Dialect, status: u16, message: &str, field: Option<&str>) -> Reply {
    Reply::json(status, &ErrorBody { status, message, field, retry_after: None }.body(dialect))
}

/// Returns the error of the most severe violation, with a message that names all of them.
fn refuse(dialect: Dialect, violations: &[Violation]) -> Option<Reply> {
    let worst = violations.iter().min_by_key(|violation| violation.kind)?;
    let status = match worst.kind {
        ViolationKind::NotFound => 404,
        ViolationKind::Method => 405,
        // The Gemini API reports a missing key as missing permission.
        ViolationKind::Authentication if dialect == Dialect::Gemini => 403,
        ViolationKind::Authentication => 401,
        ViolationKind::Invalid => 400,
    };
    let others =
        violations.iter().filter(|violation| *violation != worst).map(|violation| format!("; {violation}"));
    let message: String = std::iter::once(worst.message.clone()).chain(others).collect();
    Some(error(dialect, status, &message, Some(&worst.field)))
}

fn scripted_status(dialect: Dialect, status: u16, retry_after: Option<&str>, body: Option<&str>) -> Reply {
    let seconds = retry_after.and_then(|wait| wait.parse().ok()).filter(|_| dialect == Dialect::Gemini);
    let message = format!("scripted failure with status {status}");
    let reply = match body {
        Some(body) => Reply::complete(status, body.as_bytes().to_vec()),
        None => {
            let error = ErrorBody { status, message: &message, field: None, retry_after: seconds };
            Reply::json(status, &error.body(dialect))
        }
    };
    match retry_after {
        // Gemini sends the delay only in the body.
        Some(wait) if seconds.is_none() || body.is_some() => {
            reply.with_header("retry-after", wait.to_owned())
        }
        Some(_) | None => reply,
    }
}

/// Ends a stream halfway with an error event. The connection stays usable.
fn break_stream(dialect: Dialect, event: ErrorEvent, failure: &Failure, stream: &mut EventStream) {
    let after = stream.frames.len() / 2;
    stream.frames.truncate(after);
    stream.frames.push(response::error_frame(dialect, event, after));
    stream.fault = Some(StreamFault { after, stall: failure.stall, cut: false });
}
