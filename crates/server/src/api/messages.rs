//! Messages to a session, and operations that stop it. Posted inputs survive the server and are applied once.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use axum::routing::post;
use pintle_agent::{PostedInput, SessionHandle, SessionId, UserMessage};
use pintle_llm::{Blob, ImageData};
use pintle_store::post_input;
use schemars::JsonSchema;
use serde::Deserialize;

use super::extractors::{IdempotencyKey, Json, Path};
use super::list::FoundSession;
use super::openapi::{MAX_NUMBER, NOT_BLANK, Operation};
use super::{App, Caller, TokenScope, accepted_response};
use crate::problem::{ENDED, INVALID, Problem};

pub(super) fn operations() -> Vec<Operation> {
    let operation = |path, id, summary, handler| {
        Operation::new("post", path, id, TokenScope::Run, summary, handler).with_problems(&[404, 409])
    };
    vec![
        operation(
            "/v1/sessions/{id}/submit",
            "submit",
            "Send the next message; during a run, it waits for the end of the run",
            post(submit),
        )
        .with_body::<MessageBody>(),
        operation(
            "/v1/sessions/{id}/follow-up",
            "followUp",
            "Send a message that waits for the end of the run",
            post(submit),
        )
        .with_body::<MessageBody>(),
        operation(
            "/v1/sessions/{id}/say",
            "say",
            "Send a message into the current run, or start a run with it",
            post(say),
        )
        .with_body::<MessageBody>(),
        operation(
            "/v1/sessions/{id}/steer",
            "steer",
            "Send a message into the current run; without a run, it is sent with the next message",
            post(steer),
        )
        .with_body::<MessageBody>(),
        operation(
            "/v1/sessions/{id}/interrupt",
            "interrupt",
            "Stop the run and keep the session",
            post(interrupt),
        ),
        operation(
            "/v1/sessions/{id}/abort",
            "abort",
            "Stop everything and end the session for good",
            post(abort),
        ),
        operation(
            "/v1/sessions/{id}/compact",
            "compact",
            "Summarise the older part of the conversation",
            post(compact),
        ),
        operation("/v1/sessions/{id}/rewind", "rewind", "Go back in the conversation", post(rewind))
            .with_body::<RewindBody>(),
    ]
}

/// Pattern of bytes in base64, with padding.
const BASE64: &str =
    "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{4}|[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)$";

/// A message.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend(
    "if" = {"properties": {"images": {"maxItems": 0}}},
    "then" = {"required": ["text"], "properties": {"text": {"pattern": NOT_BLANK}}},
))]
pub(super) struct MessageBody {
    /// Text. May be empty if there are images.
    #[serde(default)]
    text: String,
    /// Images.
    #[serde(default)]
    images: Vec<ImageBody>,
}

/// An image, by its bytes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ImageBody {
    /// Bytes, in base64.
    #[schemars(with = "String", extend("pattern" = BASE64))]
    data: Blob,
    /// Media type, such as `image/png`.
    media_type: String,
}

/// Target of a rewind.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RewindBody {
    /// Number of entries of the history that stay.
    #[schemars(extend("maximum" = MAX_NUMBER))]
    turns: usize,
}

impl TryFrom<MessageBody> for UserMessage {
    type Error = Problem;

    fn try_from(body: MessageBody) -> Result<Self, Problem> {
        if body.text.trim().is_empty() && body.images.is_empty() {
            return Err(Problem::new(INVALID, "the message is empty: expected some text or an image"));
        }
        let mut message = Self::from(body.text);
        for image in body.images {
            message = message.with_image(ImageData::data(image.data, image.media_type));
        }
        Ok(message)
    }
}

impl App {
    /// Opens a session and returns its handle.
    async fn open_handle(&self, found: &FoundSession) -> Result<SessionHandle, Problem> {
        let live = self.hub.open(&found.root).await?;
        let id = &found.summary.id;
        live.handle.of_session(id).ok_or_else(|| {
            Problem::new(ENDED, format!("subagent `{id}` has ended, but its session can continue"))
        })
    }

    /// Posts an input to a session, and opens the session unless another process has it open.
    pub(super) async fn post(
        &self,
        id: &SessionId,
        root: &SessionId,
        key: &IdempotencyKey,
        input: PostedInput,
    ) -> Result<(), Problem> {
        post_input(self.hub.store.as_ref(), id, &key.input_id(), input).await?;
        self.hub.open_after_post(id, root).await
    }
}

async fn submit(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    key: IdempotencyKey,
    Json(body): Json<MessageBody>,
) -> Result<Response, Problem> {
    let found = app.find_going(&caller, &id).await?;
    let input = PostedInput::Message { message: body.try_into()?, by: caller.principal() };
    app.post(&found.summary.id, &found.root, &key, input).await?;
    Ok(accepted_response())
}

async fn say(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    key: IdempotencyKey,
    Json(body): Json<MessageBody>,
) -> Result<Response, Problem> {
    let found = app.find_going(&caller, &id).await?;
    let input = PostedInput::Say { message: body.try_into()?, by: caller.principal() };
    app.post(&found.summary.id, &found.root, &key, input).await?;
    Ok(accepted_response())
}

async fn steer(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    key: IdempotencyKey,
    Json(body): Json<MessageBody>,
) -> Result<Response, Problem> {
    let found = app.find_going(&caller, &id).await?;
    let input = PostedInput::Steer { message: body.try_into()?, by: caller.principal() };
    app.post(&found.summary.id, &found.root, &key, input).await?;
    Ok(accepted_response())
}

async fn interrupt(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    key: IdempotencyKey,
) -> Result<Response, Problem> {
    let found = app.find(&caller, &id).await?;
    match app.hub.live(&found.root).and_then(|live| live.handle.of_session(&found.summary.id)) {
        Some(handle) => caller.bind_handle(handle).stop_turn()?,
        // A session that no process has open is idle.
        None if app.hub.store.holder(&found.root).await?.is_none() => {}
        None => {
            let input = PostedInput::Interrupt { by: caller.principal() };
            post_input(app.hub.store.as_ref(), &found.summary.id, &key.input_id(), input).await?;
        }
    }
    Ok(accepted_response())
}

async fn abort(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    key: IdempotencyKey,
) -> Result<Response, Problem> {
    let found = app.find(&caller, &id).await?;
    if app.has_ended(&found) {
        return Ok(accepted_response());
    }
    let input = PostedInput::Abort { by: caller.principal() };
    match app.post(&found.summary.id, &found.root, &key, input).await {
        Ok(()) => Ok(accepted_response()),
        // The session has ended meanwhile, perhaps through this abort.
        Err(problem) if problem.is(ENDED) => Ok(accepted_response()),
        Err(problem) => Err(problem),
    }
}

async fn compact(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    key: IdempotencyKey,
) -> Result<Response, Problem> {
    let found = app.find_going(&caller, &id).await?;
    let input = PostedInput::Compact { by: caller.principal() };
    app.post(&found.summary.id, &found.root, &key, input).await?;
    Ok(accepted_response())
}

async fn rewind(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    key: IdempotencyKey,
    Json(body): Json<RewindBody>,
) -> Result<Response, Problem> {
    let found = app.find_going(&caller, &id).await?;
    let is_elsewhere =
        app.hub.live(&found.root).is_none() && app.hub.store.holder(&found.root).await?.is_some();
    if is_elsewhere {
        // An event reports whether the rewind is refused.
        let input = PostedInput::Rewind { turns: body.turns, by: caller.principal() };
        app.post(&found.summary.id, &found.root, &key, input).await?;
    } else {
        caller.bind_handle(app.open_handle(&found).await?).rewind(body.turns).await?;
    }
    Ok(accepted_response())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn images_are_decoded_from_base64() {
        let read = |data: &str| {
            let body = json!({"images": [{"data": data, "media_type": "image/png"}]}).to_string();
            let body: Result<MessageBody, _> = serde_json::from_str(&body);
            body.ok().map(|body| UserMessage::try_from(body).unwrap().images.remove(0))
        };
        assert_eq!(read("AAEC"), Some(ImageData::data(vec![0_u8, 1, 2], "image/png")));
        assert_eq!(read(""), Some(ImageData::data(Vec::<u8>::new(), "image/png")));
        for damaged in ["?", "AAE", "AB=="] {
            assert_eq!(read(damaged), None, "{damaged}");
        }
        let recorded = serde_json::to_value(read("AAEC").unwrap()).unwrap();
        assert_eq!(recorded, json!({"data": "AAEC", "media_type": "image/png"}));
    }
}
