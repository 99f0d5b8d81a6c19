//! Operations on sessions: create, list, read, change, delete.

use axum::Extension;
use axum::extract::State;
use axum::http::header::{ETAG, IF_MATCH, IF_NONE_MATCH, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, patch, post};
use pintle_agent::{PostedInput, SessionId, UserMessage};
use pintle_llm::ToolItem;
use pintle_store::post_input;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::extractors::{IdempotencyKey, Json, Path, Query};
use super::list::{FoundSession, ListQuery, SessionList, SessionView, is_visible_to};
use super::messages::MessageBody;
use super::openapi::{CURSOR, MAX_NUMBER, Operation, Parameter};
use super::{App, Caller, TokenScope, json};
use crate::host::{ModelSummary, NewRules, NewSession, SettingsChange};
use crate::hub::{SERVER_OWNED, TENANT};
use crate::problem::{CONFLICT, FAILED, Problem};

const LIST: &[Parameter] = &[
    Parameter::number("limit", 1, 500, "Most sessions of the page, up to 500; default 50"),
    Parameter::matching("cursor", CURSOR, "`next` of the page before"),
    Parameter::text("search", "Text in the title, the id or the directory"),
    Parameter::one_of("state", &["IDLE", "PROCESSING", "AWAITING_INPUT", "CLOSED"], "State of the sessions"),
    Parameter::text("parent", "Subagents of this session"),
];

const KNOWN: &[Parameter] = &[Parameter::text("if-none-match", "The `etag` that you have")];

const EXPECTED: &[Parameter] = &[Parameter::text("if-match", "The `etag` that the session has to have")];

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "get",
            "/v1/sessions",
            "listSessions",
            TokenScope::Read,
            "List sessions, the newest change first",
            get(list),
        )
        .with_query(LIST)
        .answers::<SessionList>(200)
        .with_problems(&[404]),
        Operation::new(
            "post",
            "/v1/sessions",
            "createSession",
            TokenScope::Run,
            "Create a session",
            post(create),
        )
        .with_body::<CreateBody>()
        .answers::<SessionView>(201)
        .also_answers(200, "It was created by the same request before")
        .with_problems(&[409]),
        Operation::new(
            "get",
            "/v1/sessions/{id}",
            "readSession",
            TokenScope::Read,
            "Read a session",
            get(read),
        )
        .with_headers(KNOWN)
        .answers::<SessionView>(200)
        .also_answers(304, "It has not changed")
        .with_problems(&[404]),
        Operation::new(
            "patch",
            "/v1/sessions/{id}",
            "changeSession",
            TokenScope::Run,
            "Change the settings of a session",
            patch(change),
        )
        .with_headers(EXPECTED)
        .with_body::<ChangeBody>()
        .answers::<SessionView>(200)
        .with_problems(&[404, 409, 412]),
        Operation::new(
            "delete",
            "/v1/sessions/{id}",
            "deleteSession",
            TokenScope::Admin,
            "Delete a session with its record",
            delete(remove),
        )
        .answers_nothing(204)
        .with_problems(&[404, 409]),
        Operation::new(
            "post",
            "/v1/sessions/{id}/fork",
            "forkSession",
            TokenScope::Run,
            "Create a session that begins with the history of another",
            post(fork),
        )
        .with_body::<ForkBody>()
        .answers::<SessionView>(201)
        .also_answers(200, "It was created by the same request before")
        .with_problems(&[404, 409]),
        Operation::new(
            "get",
            "/v1/sessions/{id}/tools",
            "listTools",
            TokenScope::Read,
            "List the tools that the model of a session is offered",
            get(tools),
        )
        .answers::<ToolPage>(200)
        .with_problems(&[404, 409]),
        Operation::new(
            "get",
            "/v1/models",
            "listModels",
            TokenScope::Read,
            "List models that sessions can use",
            get(models),
        )
        .answers::<ModelList>(200),
    ]
}

/// A session to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateBody {
    /// Working directory in the environment, absolute, in a directory where the server lets sessions work. Default:
    /// the directory of the server.
    #[serde(default)]
    #[schemars(extend("pattern" = "^/"))]
    directory: Option<String>,
    /// Execution environment: `local`, `docker:CONTAINER` or `ssh:[USER@]HOST[:PORT]`. Requires the scope `approve`.
    /// Default: the environment of the server.
    #[serde(default)]
    environment: Option<String>,
    /// Rules for calls, in addition to the rules of the server's user and of the project.
    #[serde(default)]
    rules: NewRules,
    /// Grant that no rule, mode or decision exceeds.
    #[serde(default)]
    grant: Option<serde_json::Map<String, Value>>,
    /// Model name. Default: the model of the server.
    #[serde(default)]
    model: Option<String>,
    /// Treatment of calls that no rule names: `plan`, `ask`, `edit` or `auto`. A mode in which more calls run than by
    /// default requires the scope `approve`.
    #[serde(default)]
    mode: Option<String>,
    /// Reasoning effort: low, medium, high, or a provider-specific value.
    #[serde(default)]
    effort: Option<String>,
    /// First message.
    #[serde(default)]
    message: Option<MessageBody>,
}

/// Settings to change. Those that are absent stay.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChangeBody {
    /// Model, from the next request on.
    #[serde(default)]
    model: Option<String>,
    /// Treatment of calls that no rule names: `plan`, `ask`, `edit` or `auto`. A mode in which more calls run than now
    /// requires the scope `approve`.
    #[serde(default)]
    mode: Option<String>,
    /// Reasoning effort, from the next request on.
    #[serde(default)]
    effort: Option<String>,
}

/// Starting point of a fork.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForkBody {
    /// Number of entries of the history that it takes over.
    #[schemars(extend("maximum" = MAX_NUMBER))]
    turns: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ModelList {
    models: Vec<ModelSummary>,
}

/// Tools of a session.
#[derive(Debug, Serialize, JsonSchema)]
struct ToolPage {
    tools: Vec<ToolView>,
}

/// A tool.
#[derive(Debug, Serialize, JsonSchema)]
struct ToolView {
    /// Name.
    name: String,
    /// Description for the model.
    description: String,
    /// JSON Schema of the arguments.
    parameters: serde_json::Value,
}

async fn tools(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let found = app.find_going(&caller, &id).await?;
    let live = app.hub.open_detached(&found.root).await?;
    let view = |tool: &ToolItem| ToolView {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool.parameters.clone(),
    };
    Ok(json(&ToolPage { tools: live.controls.tools().iter().map(view).collect() }))
}

async fn models(State(app): State<App>) -> Response {
    json(&ModelList { models: app.hub.host.models() })
}

async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<ListQuery>,
) -> Result<Response, Problem> {
    Ok(json(&app.list(&caller, query).await?))
}

async fn create(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    key: IdempotencyKey,
    Json(body): Json<CreateBody>,
) -> Result<Response, Problem> {
    let CreateBody { directory, environment, rules, grant, model, mode, effort, message } = body;
    let settings = SettingsChange { model, mode, effort };
    if !rules.allow.is_empty() || environment.is_some() || app.hub.host.widens(&settings) {
        // These rules and modes allow calls in advance, and other environments have other sandboxes and keys.
        caller.require(TokenScope::Approve)?;
    }
    let message = message.map(UserMessage::try_from).transpose()?;
    let mut request = NewSession {
        directory,
        environment,
        rules,
        grant: grant.map(Value::Object),
        settings,
        can_approve: caller.has(TokenScope::Approve),
        ..NewSession::default()
    };
    request.properties.insert(SERVER_OWNED.to_owned(), "true".to_owned());
    request.properties.extend(caller.tenant.clone().map(|tenant| (TENANT.to_owned(), tenant)));
    let (id, is_new) = app.hub.create(key.session_id(&caller.namespace()), request).await?;
    // The session of an earlier request may have ended since.
    let can_go_on = is_new || !app.has_ended(&app.find(&caller, id.as_str()).await?);
    if let Some(message) = message
        && can_go_on
    {
        let input = PostedInput::Message { message, by: caller.principal() };
        post_input(app.hub.store.as_ref(), &id, &key.input_id(), input).await?;
        app.hub.open_or_wait(&id).await?;
    }
    created_response(&app, &caller, &id, is_new, "sessions").await
}

async fn fork(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(origin): Path<String>,
    key: IdempotencyKey,
    Json(body): Json<ForkBody>,
) -> Result<Response, Problem> {
    let FoundSession { summary, root } = app.find(&caller, &origin).await?;
    let origin = summary.id;
    let live = app.hub.live(&origin);
    // Serializes check and fork: the fork inherits the mode, which a concurrent change could widen.
    let _changing = match &live {
        Some(live) => Some(live.changing.lock().await),
        None => None,
    };
    if let Some(reason) = app.hub.host.fork_widening(&origin).await? {
        caller.require_for(TokenScope::Approve, &reason)?;
    }
    let fork = key.session_id(&format!("{}/{origin}", caller.namespace()));
    let (id, is_new) = app.hub.fork(&origin, &root, body.turns, fork).await?;
    created_response(&app, &caller, &id, is_new, "..").await
}

/// Returns the response of a request that created a session. `parent` is the path of the sessions relative to the request.
async fn created_response(
    app: &App,
    caller: &Caller,
    id: &SessionId,
    is_new: bool,
    parent: &str,
) -> Result<Response, Problem> {
    let summary = app.hub.store.summary(id).await?;
    // The id is derived from the caller's name, so it cannot be the id of another caller's session.
    let summary = summary
        .filter(|summary| is_visible_to(summary, caller))
        .ok_or_else(|| Problem::new(FAILED, "the session was deleted meanwhile"))?;
    let view = app.view_now(&summary).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let location = HeaderValue::from_str(&format!("{parent}/{id}"));
    let mut response = (status, json(&view)).into_response();
    if let Ok(location) = location {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

async fn read(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let found = app.find(&caller, &id).await?;
    let view = app.view_now(&found.summary).await?;
    let tag = tag_of(&view);
    if headers.get(IF_NONE_MATCH).is_some_and(|known| names(known, &tag)) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response());
    }
    Ok(([(ETAG, tag)], json(&view)).into_response())
}

async fn change(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(body): Json<ChangeBody>,
) -> Result<Response, Problem> {
    let found = app.find_going(&caller, &id).await?;
    if let Some(expected) = headers.get(IF_MATCH)
        && !names(expected, &tag_of(&app.view_now(&found.summary).await?))
    {
        let mut problem = Problem::new(CONFLICT, "the session has changed since you read it");
        problem.status = StatusCode::PRECONDITION_FAILED.as_u16();
        return Err(problem);
    }
    let live = app.hub.open(&found.root).await?;
    // Serializes check and change: a concurrent change could make this change a widening.
    let _changing = live.changing.lock().await;
    let ChangeBody { model, mode, effort } = body;
    let change = SettingsChange { model, mode, effort };
    if live.controls.widens(&change) {
        caller.require(TokenScope::Approve)?;
    }
    live.controls.set(&change, caller.principal().as_ref()).await?;
    app.hub.report_change(&found.root);
    let view = app.view_now(&found.summary).await?;
    Ok(([(ETAG, tag_of(&view))], json(&view)).into_response())
}

async fn remove(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let found = app.find(&caller, &id).await?;
    let id = &found.summary.id;
    let keep_cost = || app.keep_cost(id, caller.tenant.as_deref());
    app.hub.delete(id, &found.root, caller.tenant.clone(), keep_cost).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Returns the entity tag of a session, which changes with the client view.
fn tag_of(view: &SessionView) -> HeaderValue {
    let hash = blake3::hash(&serde_json::to_vec(view).unwrap_or_default()).to_hex();
    HeaderValue::from_str(&format!("\"{}\"", hash.get(..16).unwrap_or_default()))
        .unwrap_or(HeaderValue::from_static("\"\""))
}

/// Returns whether the value of `If-Match` or `If-None-Match` contains the tag.
fn names(value: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(value), Ok(tag)) = (value.to_str(), tag.to_str()) else { return false };
    value.split(',').map(str::trim).any(|known| known == "*" || known.trim_start_matches("W/") == tag)
}
