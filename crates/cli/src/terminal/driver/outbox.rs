//! Sends messages of the user, with the images that they name.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pintle_agent::{SessionHandle, UserMessage};
use pintle_env::ExecutionEnvironment;
use pintle_llm::ImageData;
use pintle_tools::builtin::{ImageError, read_image};
use tokio::sync::Mutex;

use super::{Done, Driver};
use crate::process_env::ProcessEnv;
use crate::render::sanitize;
use crate::terminal::clipboard;
use crate::terminal::images::{MAX_IMAGES, NamedImage, Said};

/// Time limit for reading an image.
const READ_TIME: Duration = Duration::from_secs(10);

/// Reason why an image that takes longer is not sent.
const SLOW: &str = "reading it took too long";

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
enum LeftOut {
    Unreadable(String),
    TooMany,
    /// The model with this name accepts no images.
    Blind(String),
}

impl Outbox {
    pub(super) fn new(handle: SessionHandle, environment: Arc<dyn ExecutionEnvironment>) -> Self {
        Self { handle, environment, turnstile: Arc::default() }
    }

    /// Sends a message to a running turn, or starts a turn with it. A `blind` model gets no images.
    pub(super) async fn say(self, said: Said, blind: Option<String>) -> Done {
        let _turn = self.turnstile.lock().await;
        let (message, left_out) = self.message(&said, blind).await;
        let result = self.handle.say(message).await;
        Done::Sent { text: said.text, result, left_out }
    }

    /// Queues a message for the end of the turn. A `blind` model gets no images.
    pub(super) async fn follow_up(self, said: Said, blind: Option<String>) -> Done {
        let _turn = self.turnstile.lock().await;
        let (message, left_out) = self.message(&said, blind).await;
        let result = self.handle.follow_up(message).await;
        Done::Sent { text: said.text, result, left_out }
    }

    /// Returns the message, and reports for the user about images that are not in it.
    async fn message(&self, said: &Said, blind: Option<String>) -> (UserMessage, Vec<String>) {
        let text = match said.instruction {
            Some(instruction) => format!("{}\n\n{instruction}", said.text),
            None => said.text.clone(),
        };
        let (mut message, mut left_out) = (UserMessage::from(text), Vec::new());
        for (index, named) in said.images.iter().enumerate() {
            let image = match &blind {
                Some(model) => Err(LeftOut::Blind(model.clone())),
                None if index >= MAX_IMAGES => Err(LeftOut::TooMany),
                None => self.image(named).await,
            };
            match image {
                Ok(image) => message = message.with_image(image),
                Err(reason) => left_out.push(reason.tell(&named.name)),
            }
        }
        (message, left_out)
    }

    async fn image(&self, NamedImage { name, pasted }: &NamedImage) -> Result<ImageData, LeftOut> {
        if let Some(image) = pasted {
            return Ok(image.clone());
        }
        let read = tokio::time::timeout(READ_TIME, read_image(self.environment.as_ref(), Path::new(name)));
        match read.await {
            Ok(read) => read.map_err(|error| LeftOut::Unreadable(error.to_string())),
            Err(_elapsed) => Err(LeftOut::Unreadable(SLOW.to_owned())),
        }
    }
}

impl LeftOut {
    fn tell(self, name: &str) -> String {
        let why = match self {
            Self::Unreadable(why) => why,
            Self::TooMany => format!("at most {MAX_IMAGES} images go with one message"),
            Self::Blind(model) => format!("{model} takes no images"),
        };
        sanitize(&format!("{name} was not sent as an image: {why}")).into_owned()
    }
}

impl Driver<'_> {
    /// Sends a message to a running turn, or starts a turn with it.
    pub(super) fn say(&mut self, said: Said) {
        let sending = self.outbox.clone().say(said, self.blind_model());
        self.doing.push(Box::pin(sending));
    }

    /// Queues a message for the end of the turn.
    pub(super) fn follow_up(&mut self, said: Said) {
        let sending = self.outbox.clone().follow_up(said, self.blind_model());
        self.doing.push(Box::pin(sending));
    }

    /// Attaches the image on the clipboard.
    pub(super) fn take_clipboard(&mut self) {
        let process_env = self.surroundings.process_env;
        self.doing.push(Box::pin(async { Done::Pasted(clipboard::image(process_env).await) }));
    }

    /// Returns the model, if it is known to accept no images.
    pub(super) fn blind_model(&self) -> Option<String> {
        let model = &self.display.conversation.status.model;
        let known = self.surroundings.model.find(model)?;
        (!known.supports_vision).then(|| model.clone())
    }

    /// Attaches files that were dropped on the terminal as images, or inserts the paste as text.
    pub(super) async fn take_dropped(&mut self, paths: &[String], paste: &str) {
        let mut images = Vec::new();
        for path in paths {
            match dropped_image(path, self.surroundings.process_env).await {
                Ok(image) => images.push((path, image)),
                Err(problem) => {
                    if let Some(problem) = problem {
                        self.display.hint(format!("no image was taken: {problem}"));
                    }
                    return self.display.conversation.paste(paste);
                }
            }
        }
        for (path, image) in images {
            self.display.conversation.attach(Some(path), image);
        }
    }
}

/// Reads an image of this machine that was dropped on the terminal.
///
/// The error is `None` if no file has this path, otherwise the reason why it cannot be sent.
async fn dropped_image(path: &str, process_env: &ProcessEnv) -> Result<ImageData, Option<String>> {
    let path = match path.strip_prefix("~/") {
        Some(rest) => process_env.home().ok_or(None)?.join(rest),
        None => PathBuf::from(path),
    };
    let machine = process_env.local_environment(Path::new("/")).map_err(|_| None)?;
    match tokio::time::timeout(READ_TIME, read_image(&machine, &path)).await {
        Ok(Err(ImageError::Read(_))) => Err(None),
        Ok(read) => read.map_err(|error| Some(error.to_string())),
        Err(_elapsed) => Err(Some(SLOW.to_owned())),
    }
}
