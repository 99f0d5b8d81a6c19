//! Facts from the inputs of a record that its events do not repeat: the response that proposed a call, the starts of the
//! call, and the run that an input started.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pintle_agent::protocol::{CallKey, InputKind, ModelCallId, Preparation, TurnContext};
use pintle_agent::{Principal, Record, RecordEntry, SessionId, Timestamp};
use pintle_tools::Effect;
use serde_json::Value;

use super::session::{InputSource, ModelChange};
use super::spending::ResponseCost;

/// Facts from the inputs of a record, consumed in the order of its events.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// Responses, the oldest first.
    responses: VecDeque<RecordedResponse>,
    /// Inputs of the user and injected messages, the oldest first.
    messages: Vec<RecordedMessage>,
    calls: BTreeMap<CallKey, RecordedCall>,
    /// Calls that spawned subagents, by the id of the subagent's session.
    spawned: BTreeMap<SessionId, String>,
    pub(super) models: Vec<ModelChange>,
    /// Ids of the calls of the session so far.
    call_ids: BTreeSet<String>,
}

/// Response of a model.
#[derive(Debug)]
pub(super) struct RecordedResponse {
    pub(super) provider: String,
    pub(super) cost: ResponseCost,
    pub(super) calls: Vec<ProposedCall>,
    at: Timestamp,
    id: String,
}

/// Call in a response.
#[derive(Debug)]
pub(super) struct ProposedCall {
    /// Id that is unique in the session.
    pub(super) id: String,
    /// Id that the model gave it.
    pub(super) model_id: String,
    pub(super) tool: String,
    pub(super) arguments: Value,
    /// Text of the arguments, if it is not JSON with the same value.
    pub(super) as_written: Option<String>,
    pub(super) recorded: RecordedCall,
    key: CallKey,
}

/// Facts from the inputs about a call.
#[derive(Debug, Default)]
pub(super) struct RecordedCall {
    pub(super) effect: Option<Effect>,
    /// Each start, before its effect.
    pub(super) starts: Vec<Timestamp>,
    pub(super) declared: Vec<String>,
    /// Text for the model, without a note about changed arguments.
    pub(super) result: Option<String>,
}

/// Message to the session.
#[derive(Debug)]
pub(super) struct RecordedMessage {
    pub(super) source: InputSource,
    pub(super) run: Option<u64>,
    pub(super) by: Option<Principal>,
    pub(super) posted_as: Option<String>,
    at: Timestamp,
    text: String,
}

impl Inputs {
    pub(super) fn from_record(record: &Record) -> Self {
        let mut inputs = Self::default();
        let start = &record.header.start;
        for turn in &start.history {
            inputs.call_ids.extend(turn.item.tool_calls().map(|call| call.id.clone()));
        }
        let mut context = start.context.as_deref();
        for entry in &record.entries {
            if let InputKind::ContextLoaded { context: loaded, .. } = &entry.input.kind {
                context = Some(loaded);
                inputs.take_context(entry.input.at, loaded);
            } else {
                inputs.take(entry, context);
            }
        }
        inputs
    }

    /// Removes and returns the response of an event. Skips responses that the session ignored, which have no event.
    pub(super) fn response(&mut self, at: Timestamp, id: Option<&str>) -> Option<RecordedResponse> {
        let is_it = |response: &RecordedResponse| response.at == at && id.is_none_or(|id| response.id == id);
        let index = self.responses.iter().position(is_it)?;
        self.responses.drain(..index);
        let mut response = self.responses.pop_front()?;
        for call in &mut response.calls {
            call.id = self.unique_id(&call.model_id);
            call.recorded = self.calls.remove(&call.key).unwrap_or_default();
        }
        Some(response)
    }

    /// Removes and returns the message of an event. A submitted message is handled immediately or not at all.
    pub(super) fn message(
        &mut self,
        at: Timestamp,
        text: &str,
        is_steering: bool,
    ) -> Option<RecordedMessage> {
        let index = self.messages.iter().position(|message| {
            let fits = match message.source {
                InputSource::Submitted => !is_steering && message.at == at,
                InputSource::FollowUp => !is_steering,
                InputSource::Steering | InputSource::Hook => is_steering,
                InputSource::Unknown => false,
            };
            fits && message.text == text
        })?;
        Some(self.messages.remove(index))
    }

    /// Returns the call that spawned a subagent.
    pub(super) fn spawning_call(&mut self, child: &SessionId) -> Option<String> {
        self.spawned.remove(child)
    }

    fn take_context(&mut self, at: Timestamp, context: &TurnContext) {
        let (provider, model) = (context.provider.clone(), context.model.clone());
        let is_same = |last: &ModelChange| last.provider == provider && last.model == model;
        if !self.models.last().is_some_and(is_same) {
            self.models.push(ModelChange { at, provider, model });
        }
    }

    fn take(&mut self, entry: &RecordEntry, context: Option<&TurnContext>) {
        let at = entry.input.at;
        let posted_as = || entry.posted.clone();
        let by = || entry.input.author.clone();
        match &entry.input.kind {
            InputKind::Submit { run, message } => {
                let (source, run, text) = (InputSource::Submitted, Some(run.0), message.text.clone());
                self.messages.push(RecordedMessage {
                    source,
                    run,
                    by: by(),
                    posted_as: posted_as(),
                    at,
                    text,
                });
            }
            InputKind::FollowUp { message } => {
                let (source, text) = (InputSource::FollowUp, message.text.clone());
                self.messages.push(RecordedMessage {
                    source,
                    run: None,
                    by: by(),
                    posted_as: posted_as(),
                    at,
                    text,
                });
            }
            InputKind::Steer { message } => {
                let (source, text) = (InputSource::Steering, message.text.clone());
                self.messages.push(RecordedMessage {
                    source,
                    run: None,
                    by: by(),
                    posted_as: posted_as(),
                    at,
                    text,
                });
            }
            InputKind::SentOn { text, .. } => {
                let (source, text) = (InputSource::Hook, text.clone());
                self.messages.push(RecordedMessage {
                    source,
                    run: None,
                    by: None,
                    posted_as: None,
                    at,
                    text,
                });
            }
            InputKind::ModelReplied { model_call, response } => {
                let pricing = context.and_then(|context| context.pricing.as_deref());
                let usage = &response.usage;
                let cost = ResponseCost {
                    input_tokens: usage.input_tokens,
                    output_tokens: usage.output_tokens,
                    cache_read_tokens: usage.cache_read_tokens.unwrap_or(0),
                    cache_write_tokens: usage.cache_write_tokens.unwrap_or(0),
                    cost: pricing.and_then(|model| model.cost(usage)),
                };
                let calls = (0..).zip(response.tool_calls()).map(|(index, call)| ProposedCall {
                    id: String::new(),
                    model_id: call.id.clone(),
                    tool: call.name.clone(),
                    arguments: (*call.arguments).clone(),
                    as_written: unparsed(call.raw_arguments.as_deref(), &call.arguments),
                    recorded: RecordedCall::default(),
                    key: key(*model_call, index),
                });
                self.responses.push_back(RecordedResponse {
                    provider: context.map(|context| context.provider.clone()).unwrap_or_default(),
                    cost,
                    calls: calls.collect(),
                    at,
                    id: response.id.clone(),
                });
            }
            InputKind::ChildSpawned { session, call_id: Some(call_id), .. } => {
                self.spawned.insert(session.clone(), call_id.clone());
            }
            InputKind::Opened { .. } | _ => self.take_call(entry),
        }
    }

    /// Handles an input about one call.
    fn take_call(&mut self, entry: &RecordEntry) {
        match &entry.input.kind {
            InputKind::CallPrepared {
                call,
                preparation: Preparation::Ready(plan) | Preparation::Ask { plan, .. },
                ..
            } => self.call(*call).effect = Some(plan.effect),
            InputKind::ToolStarted { call } => self.call(*call).starts.push(entry.input.at),
            InputKind::ChangesDeclared { call, files } => {
                let files = files.iter().map(|file| file.path.display().to_string());
                self.call(*call).declared.extend(files);
            }
            InputKind::ToolFinished { call, finished } => {
                self.call(*call).result = Some(finished.result.text());
            }
            InputKind::Opened { .. } | _ => {}
        }
    }

    fn call(&mut self, key: CallKey) -> &mut RecordedCall {
        self.calls.entry(key).or_default()
    }

    /// Returns the id that the session assigns to a call. A model may omit an id or use it twice.
    fn unique_id(&mut self, model_id: &str) -> String {
        if !model_id.is_empty() && self.call_ids.insert(model_id.to_owned()) {
            return model_id.to_owned();
        }
        let base = if model_id.is_empty() { "call" } else { model_id };
        let first = self.call_ids.len() + 1;
        let fresh = (first..).map(|n| format!("{base}_{n}")).find(|id| self.call_ids.insert(id.clone()));
        fresh.unwrap_or_default()
    }
}

fn key(model_call: ModelCallId, index: usize) -> CallKey {
    CallKey { model_call, index }
}

/// Returns the text of arguments if it does not parse to their value.
fn unparsed(text: Option<&str>, value: &Value) -> Option<String> {
    let text = text.filter(|text| !text.trim().is_empty())?;
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    (parsed.as_ref() != Some(value) && value.as_str() != Some(text)).then(|| text.to_owned())
}
