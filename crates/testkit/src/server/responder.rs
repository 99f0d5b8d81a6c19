//! The decisions of the server: from a request to a reply, without any I/O.

mod memory;

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::options::ServerOptions;
use super::recorded::RecordedRequest;
use super::reply::{EventStream, Reply, ReplyBody, StreamFault};
use super::round_trip;
use crate::answer::{self, Answer, ErrorBody, Parts};
use crate::check::{self, Checker};
use crate::dialect::Dialect;
use crate::fingerprint;
use crate::history::History;
use crate::http::HttpRequest;
use crate::prefix::{InputTokens, Prefix};
use crate::script::{ErrorEvent, Failure, FailureKind, Script, Turn};
use crate::violation::{Violation, ViolationKind};
use memory::{ConversationId, Memory};

/// Answers requests by a script.
#[derive(Debug)]
pub(super) struct Responder {
    script: Script,
    options: ServerOptions,
    memory: Mutex<Memory>,
}

/// A request that was found legal, and what it asks for.
struct Asked<'a> {
    dialect: Dialect,
    history: History,
    id: ConversationId,
    body: &'a [u8],
}

impl Responder {
    pub(super) fn new(script: Script, options: ServerOptions) -> Self {
        let memory = Mutex::new(Memory::new(options.conversations));
        Self { script, options, memory }
    }

    pub(super) fn options(&self) -> &ServerOptions {
        &self.options
    }

    pub(super) fn requests(&self) -> Vec<RecordedRequest> {
        self.memory().record.all()
    }

    pub(super) fn finished(&self, dialect: Dialect) -> bool {
        let memory = self.memory();
        (0..self.script.turns_for(dialect).count()).all(|turn| memory.was_given(dialect, turn))
    }

    /// Decides on a reply, and remembers the request.
    pub(super) fn respond(&self, request: &HttpRequest) -> Reply {
        let mut violations = Vec::new();
        let reply = match Dialect::of_path(&request.path) {
            Some(dialect) => self.respond_in(dialect, request, &mut violations),
            None => unknown_path(request),
        };
        let id = request_id(request);
        let reply = reply.with_header("x-request-id", id.clone()).with_header("request-id", id);
        self.memory().record.push(request, reply.status(), violations, self.options.recorded_bytes);
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
                self.gave_reasoning(dialect, &history, id, turn)
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
        self.give(&Asked { dialect, history, id, body: &request.body })
    }

    /// A key that is there and wrong; a key that is missing is the checker's matter.
    fn refuse_key(&self, dialect: Dialect, request: &HttpRequest) -> Option<Reply> {
        let expected = self.options.api_key.as_deref()?;
        let found = check::key(dialect, &request.headers).map(str::trim).filter(|key| !key.is_empty());
        match (dialect, found) {
            (_, Some(found)) if found == expected => None,
            (Dialect::Gemini, Some(_)) => Some(Reply::json(400, &answer::gemini_wrong_key())),
            (_, Some(_)) => {
                Some(error(dialect, 401, "the key is not the one that this server expects", None))
            }
            (Dialect::ChatCompletions, None) => Some(error(dialect, 401, "this server expects a key", None)),
            (Dialect::OpenAiResponses | Dialect::AnthropicMessages | Dialect::Gemini, None) => None,
        }
    }

    /// Gives the turn that the history asks for, or the failure that comes before it.
    fn give(&self, asked: &Asked<'_>) -> Reply {
        let (dialect, index) = (asked.dialect, asked.history.turn());
        let Some(turn) = self.script.turns_for(dialect).nth(index) else {
            let count = self.script.turns_for(dialect).count();
            let message = format!(
                "script `{}` ends after turn {count} in dialect {dialect}, but the request asks for turn {}",
                self.script.name,
                index + 1
            );
            return error(dialect, 400, &message, None);
        };
        if let Some(message) = self.failed_expectation(turn, asked) {
            return error(dialect, 400, &message, None);
        }
        let attempt = self.memory().attempt(asked.id, index, turn.failures.len());
        match attempt.and_then(|attempt| turn.failures.get(attempt)) {
            Some(failure) => self.fail(failure, turn, asked),
            None => {
                let reply = self.answer(turn, asked);
                self.memory().give(dialect, index);
                reply
            }
        }
    }

    fn failed_expectation(&self, turn: &Turn, asked: &Asked<'_>) -> Option<String> {
        turn.expectations.iter().enumerate().find_map(|(number, expectation)| {
            let problem = expectation.judge(&asked.history)?;
            Some(format!(
                "script `{}`, turn {} in dialect {}, expectation {}: {problem}",
                self.script.name,
                asked.history.turn() + 1,
                asked.dialect,
                number + 1,
            ))
        })
    }

    fn fail(&self, failure: &Failure, turn: &Turn, asked: &Asked<'_>) -> Reply {
        let dialect = asked.dialect;
        let mut reply = match &failure.kind {
            FailureKind::Status { status, retry_after, body } => {
                scripted_status(dialect, *status, retry_after.as_deref(), body.as_deref())
            }
            FailureKind::Silence => Reply::nothing(),
            FailureKind::Cut { after_events } => {
                let mut reply = self.answer(turn, asked);
                match &mut reply.body {
                    ReplyBody::Stream(stream) => {
                        // A cut must come before the end, or it would be none.
                        let after = (*after_events).min(stream.frames.len().saturating_sub(1));
                        stream.fault = Some(StreamFault { after, stall: failure.stall, cut: true });
                        return reply;
                    }
                    ReplyBody::Whole { cut, .. } => *cut = true,
                    ReplyBody::Nothing => {}
                }
                reply
            }
            FailureKind::ErrorEvent(event) => {
                let mut reply = self.answer(turn, asked);
                if let ReplyBody::Stream(stream) = &mut reply.body {
                    break_stream(dialect, *event, failure, stream);
                    return reply;
                }
                error(dialect, answer::event_status(dialect, *event), answer::event_message(*event), None)
            }
        };
        reply.stall = failure.stall;
        reply
    }

    fn answer(&self, turn: &Turn, asked: &Asked<'_>) -> Reply {
        let prefix = Prefix::read(asked.dialect, asked.body);
        let before = self.memory().replace_prefix(asked.id, &asked.history.model, prefix.clone());
        let input = prefix.tokens(asked.dialect, before.as_ref());
        let parts =
            Parts { turn, input, ..self.parts(asked.dialect, &asked.history, asked.history.turn(), turn) };
        let answer = Answer::new(&parts);
        if asked.history.stream {
            let frames = answer.frames(asked.dialect);
            return Reply::stream(EventStream { frames, pause: turn.pause(), fault: None });
        }
        let mut reply = Reply::json(200, &answer.whole(asked.dialect));
        reply.stall = turn.pause();
        reply
    }

    fn parts<'a>(
        &'a self,
        dialect: Dialect,
        history: &'a History,
        index: usize,
        turn: &'a Turn,
    ) -> Parts<'a> {
        Parts {
            script: &self.script.name,
            dialect,
            model: &history.model,
            conversation: history.conversation(),
            index,
            turn,
            input: InputTokens::default(),
            stream_usage: history.stream_usage,
            // A model that must think begins each turn with it; the steps after tool results need not.
            must_think: history.must_think && history.open_from == history.turn(),
            gemini_call_ids: self.options.gemini_call_ids,
        }
    }

    /// Whether a call id is one that this server gave to the same model behind scripted reasoning.
    fn gave_reasoning(&self, dialect: Dialect, history: &History, id: &str, index: usize) -> bool {
        let Some(turn) = self.script.turns_for(dialect).nth(index).filter(|turn| turn.reasoning.is_some())
        else {
            return false;
        };
        let parts = self.parts(dialect, history, index, turn);
        (0..turn.calls.len()).any(|call| answer::call_id(&parts, call) == id)
    }

    /// The memory stays of use after a panic elsewhere: nothing is ever half written in it.
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An id that repeats when the request does.
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

/// The refusal of the gravest violation, which names them all.
fn refuse(dialect: Dialect, violations: &[Violation]) -> Option<Reply> {
    let gravest = violations.iter().min_by_key(|violation| violation.kind)?;
    let status = match gravest.kind {
        ViolationKind::NotFound => 404,
        ViolationKind::Method => 405,
        // The Gemini API takes a caller without a key for one without permission.
        ViolationKind::Authentication if dialect == Dialect::Gemini => 403,
        ViolationKind::Authentication => 401,
        ViolationKind::Invalid => 400,
    };
    let others =
        violations.iter().filter(|violation| *violation != gravest).map(|violation| format!("; {violation}"));
    let message: String = std::iter::once(gravest.message.clone()).chain(others).collect();
    Some(error(dialect, status, &message, Some(&gravest.field)))
}

fn scripted_status(dialect: Dialect, status: u16, retry_after: Option<&str>, body: Option<&str>) -> Reply {
    let seconds = retry_after.and_then(|wait| wait.parse().ok()).filter(|_| dialect == Dialect::Gemini);
    let message = format!("scripted failure with status {status}");
    let reply = match body {
        Some(body) => Reply::whole(status, body.as_bytes().to_vec()),
        None => {
            let error = ErrorBody { status, message: &message, field: None, retry_after: seconds };
            Reply::json(status, &error.body(dialect))
        }
    };
    match retry_after {
        // Gemini tells the time to wait in the body, and there only.
        Some(wait) if seconds.is_none() || body.is_some() => {
            reply.with_header("retry-after", wait.to_owned())
        }
        Some(_) | None => reply,
    }
}

/// Ends a stream in the middle with an error event; nothing follows it, and the connection stays sound.
fn break_stream(dialect: Dialect, event: ErrorEvent, failure: &Failure, stream: &mut EventStream) {
    let after = stream.frames.len() / 2;
    stream.frames.truncate(after);
    stream.frames.push(answer::error_frame(dialect, event, after));
    stream.fault = Some(StreamFault { after, stall: failure.stall, cut: false });
}
