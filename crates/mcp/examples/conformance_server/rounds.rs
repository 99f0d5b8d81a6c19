//! Tools that need input before they answer, from version 2026-07-28 on: the client calls again with it.

use std::hash::{BuildHasher as _, RandomState};

use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value, json};

use super::{ConformanceServer, fixtures, typed};

/// Prompt that needs input.
pub(crate) const PROMPT: &str = "test_input_required_result_prompt";

/// Prefix of the tools.
const PREFIX: &str = "test_input_required_result_";

/// Seals the state that clients carry from round to round, with a random key of the process.
#[derive(Default)]
pub(crate) struct Rounds(RandomState);

impl Rounds {
    /// Answers a call of one of the tools; `None` for others.
    pub(crate) fn answer(
        &self,
        params: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<CallToolResponse, ErrorData>> {
        match params.name.as_ref() {
            "test_missing_capability" => Some(sampling_capability(context)),
            "test_streaming_elicitation" => Some(required(&ask_name("user_name"), None)),
            name => self.round(name.strip_prefix(PREFIX)?, params, context),
        }
    }

    fn round(
        &self,
        tool: &str,
        params: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<CallToolResponse, ErrorData>> {
        let answers = serde_json::to_value(&params.input_responses).unwrap_or_default();
        let answers = answers.as_object().cloned().unwrap_or_default();
        let is_sealed = params.request_state.as_ref().map(|state| self.opened(state));
        if is_sealed == Some(None) {
            return Some(Err(ErrorData::invalid_params("the state of the request was changed", None)));
        }
        let step = is_sealed.flatten();
        Some(match tool {
            "elicitation" => match answer(&answers, "user_name", "/content/name") {
                Some(name) => done(&format!("Hello, {name}!")),
                None => required(&ask_name("user_name"), None),
            },
            "sampling" => match answer(&answers, "capital_question", "/content/text") {
                Some(text) => done(&text),
                None => required(
                    &json!({"capital_question": sampling("What is the capital of France?", 100)}),
                    None,
                ),
            },
            "list_roots" => match answers.get("client_roots") {
                Some(roots) => done(&roots.to_string()),
                None => required(&json!({"client_roots": {"method": "roots/list", "params": {}}}), None),
            },
            "request_state" | "tampered_state" => match step.filter(|_| !answers.is_empty()) {
                Some(_sealed) => done("state-ok"),
                None => required(&json!({"confirm": confirmation()}), Some(self.sealed("1"))),
            },
            "multiple_inputs" => {
                let keys = ["user_name", "greeting", "client_roots"];
                match keys.iter().all(|key| answers.contains_key(*key)) && step.is_some() {
                    true => done("all answered"),
                    false => required(&three_questions(), Some(self.sealed("1"))),
                }
            }
            "multi_round" => match (step.as_deref(), answers.contains_key("step2")) {
                (Some("2"), true) => done("both answered"),
                (Some("1"), _) => required(&json!({"step2": color()}), Some(self.sealed("2"))),
                _ => required(&ask_name("step1"), Some(self.sealed("1"))),
            },
            "capabilities" => by_capabilities(&answers, context),
            _ => return None,
        })
    }

    fn sealed(&self, step: &str) -> String {
        format!("{step}.{:x}", self.0.hash_one(step))
    }

    /// Returns the step of a state; `None` if this process did not seal it.
    fn opened(&self, state: &str) -> Option<String> {
        let (step, _seal) = state.split_once('.')?;
        (self.sealed(step) == state).then(|| step.to_owned())
    }
}

/// Returns what the prompt asks.
pub(crate) fn prompt_question() -> Value {
    let question = form("What context should the prompt use?", &json!({"context": {"type": "string"}}));
    json!({"resultType": "input_required", "inputRequests": {"user_context": question}})
}

fn required(requests: &Value, state: Option<String>) -> Result<CallToolResponse, ErrorData> {
    let mut result = json!({"resultType": "input_required", "inputRequests": requests});
    if let (Some(result), Some(state)) = (result.as_object_mut(), state) {
        result.insert("requestState".to_owned(), Value::from(state));
    }
    Ok(CallToolResponse::InputRequired(typed(result)?))
}

fn done(text: &str) -> Result<CallToolResponse, ErrorData> {
    ConformanceServer::complete(fixtures::text(text))
}

/// Returns the text of an answer.
fn answer(answers: &Map<String, Value>, key: &str, pointer: &str) -> Option<String> {
    answers.get(key)?.pointer(pointer)?.as_str().map(str::to_owned)
}

fn form(message: &str, properties: &Value) -> Value {
    let schema = json!({"type": "object", "properties": properties});
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}

fn ask_name(key: &str) -> Value {
    json!({key: form("What is your name?", &json!({"name": {"type": "string"}}))})
}

fn color() -> Value {
    form("What is your favorite color?", &json!({"color": {"type": "string"}}))
}

fn confirmation() -> Value {
    form("Please confirm", &json!({"ok": {"type": "boolean"}}))
}

fn sampling(prompt: &str, max_tokens: u32) -> Value {
    json!({"method": "sampling/createMessage", "params": fixtures::sampling(prompt, max_tokens)})
}

fn three_questions() -> Value {
    let mut questions = ask_name("user_name");
    if let Some(questions) = questions.as_object_mut() {
        questions.insert("greeting".to_owned(), sampling("Generate a greeting", 50));
        questions.insert("client_roots".to_owned(), json!({"method": "roots/list", "params": {}}));
    }
    questions
}

/// Asks only questions that the client supports.
fn by_capabilities(
    answers: &Map<String, Value>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if !answers.is_empty() {
        return done("answered");
    }
    let capabilities = context.client_capabilities().unwrap_or_default();
    let mut questions = Map::new();
    if capabilities.elicitation.is_some() {
        questions.insert("confirm".to_owned(), confirmation());
    }
    if capabilities.sampling.is_some() {
        questions.insert("greeting".to_owned(), sampling("Generate a greeting", 50));
    }
    required(&Value::Object(questions), None)
}

/// Requires that the client has a model.
fn sampling_capability(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    if context.client_capabilities().is_some_and(|capabilities| capabilities.sampling.is_some()) {
        return done("the client has a model");
    }
    Err(ErrorData::missing_required_client_capability(typed(json!({"sampling": {}}))?))
}
