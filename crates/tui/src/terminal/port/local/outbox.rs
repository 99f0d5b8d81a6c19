//! Sends messages of the user, with the images that they name.

use std::path::Path;
use std::sync::Arc;

use pintle_agent::{SessionError, SessionHandle, UserMessage};
use pintle_env::ExecutionEnvironment;
use pintle_host::sanitize::sanitize;
use pintle_llm::ImageData;
use pintle_tools::builtin::read_image;
use tokio::sync::Mutex;

use crate::terminal::images::{MAX_IMAGES, NamedImage, OutgoingMessage, READ_TIME, SLOW};
use crate::terminal::port::{PortReply, PortResult};

/// Sender of messages to the session. It keeps the order in which they were entered, however long their images take to
/// read.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    handle: SessionHandle,
    /// Environment that contains the images.
    environment: Arc<dyn ExecutionEnvironment>,
    turnstile: Arc<Mutex<()>>,
}

/// Reason why an image is not sent with a message.
enum OmittedImage {
    Unreadable(String),
    TooMany,
    /// The model with this name accepts no images.
    NoVision(String),
}

impl Outbox {
    pub(super) fn new(handle: SessionHandle, environment: Arc<dyn ExecutionEnvironment>) -> Self {
        Self { handle, environment, turnstile: Arc::default() }
    }

    /// Sends a message to a running turn, or starts a turn with it. A `blind` model gets no images.
    pub(super) async fn say(self, said: OutgoingMessage, blind: Option<String>) -> PortResult {
        let _turn = self.turnstile.lock().await;
        let (message, left_out) = self.message(&said, blind).await;
        sent(self.handle.say(message).await, left_out)
    }

    /// Queues a message for the end of the turn. A `blind` model gets no images.
    pub(super) async fn follow_up(self, said: OutgoingMessage, blind: Option<String>) -> PortResult {
        let _turn = self.turnstile.lock().await;
        let (message, left_out) = self.message(&said, blind).await;
        sent(self.handle.follow_up(message).await.map(drop), left_out)
    }

    /// Returns the message, and reports for the user about images that are not in it.
    async fn message(&self, said: &OutgoingMessage, blind: Option<String>) -> (UserMessage, Vec<String>) {
        let (mut message, mut left_out) = (UserMessage::from(said.message_text()), Vec::new());
        for (index, named) in said.images.iter().enumerate() {
            let image = match &blind {
                Some(model) => Err(OmittedImage::NoVision(model.clone())),
                None if index >= MAX_IMAGES => Err(OmittedImage::TooMany),
                None => self.image(named).await,
            };
            match image {
                Ok(image) => message = message.with_image(image),
                Err(reason) => left_out.push(reason.describe(&named.name)),
            }
        }
        (message, left_out)
    }

    async fn image(&self, NamedImage { name, pasted }: &NamedImage) -> Result<ImageData, OmittedImage> {
        if let Some(image) = pasted {
            return Ok(image.clone());
        }
        let read = tokio::time::timeout(READ_TIME, read_image(self.environment.as_ref(), Path::new(name)));
        match read.await {
            Ok(read) => read.map_err(|error| OmittedImage::Unreadable(error.to_string())),
            Err(_elapsed) => Err(OmittedImage::Unreadable(SLOW.to_owned())),
        }
    }
}

fn sent(result: Result<(), SessionError>, left_out: Vec<String>) -> PortResult {
    result.map(|()| PortReply::Sent { left_out }).map_err(|error| error.to_string())
}

impl OmittedImage {
    fn describe(self, name: &str) -> String {
        let why = match self {
            Self::Unreadable(why) => why,
            Self::TooMany => format!("a message has at most {MAX_IMAGES} images"),
            Self::NoVision(model) => format!("{model} takes no images"),
        };
        sanitize(&format!("{name} was not sent as an image: {why}")).into_owned()
    }
}
