//! Messages of the user: text, and images with it.

use pintle_llm::{ContentPart, ImageData, MediaSource, Message, ResponseFormat, Role};
use serde::{Deserialize, Serialize};

use super::{ImageSummary, Principal};

/// Input of the user, steering message or follow-up. Text converts into a message without images.
///
/// The model gets the images before the text. Their bytes are part of the session's record.
///
/// ```
/// use pintle_agent::UserMessage;
/// use pintle_llm::ImageData;
///
/// let message = UserMessage::from("Why is the button cut off?")
///     .with_image(ImageData::data(vec![0x89, b'P', b'N', b'G'], "image/png"));
/// assert_eq!(message.images.len(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UserMessage {
    /// Text. May be empty if there are images.
    pub text: String,
    /// Images, by their bytes or a URL. A message with the path of a file is refused: the file could change between
    /// requests, and the sender may have no right to read it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageData>,
    /// Format of the final answer, for a provider that can enforce it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<ResponseFormat>,
    /// Author of the [input](super::Input) with this message, which records the author.
    #[serde(skip)]
    pub(crate) author: Option<Principal>,
    /// See [`Turn::notice`](super::Turn::notice).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) notice: bool,
}

impl UserMessage {
    /// Adds an image.
    #[must_use]
    pub fn with_image(mut self, image: ImageData) -> Self {
        self.images.push(image);
        self
    }

    /// Creates a message that the user did not write.
    pub(crate) fn notice(text: impl Into<String>) -> Self {
        Self { text: text.into(), notice: true, ..Self::default() }
    }

    /// Returns the reason why this cannot be an input, such as `is empty`; `None` if it can.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        if self.text.trim().is_empty() && self.images.is_empty() {
            Some("is empty: expected some text or an image")
        } else if self.images.iter().any(|image| matches!(image.source, MediaSource::Path(_))) {
            Some("has the path of an image: expected the bytes or a URL")
        } else {
            None
        }
    }

    /// Returns the summary of each image.
    pub(crate) fn image_summaries(&self) -> Vec<ImageSummary> {
        self.images.iter().map(ImageSummary::from_image).collect()
    }
}

impl From<String> for UserMessage {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<&str> for UserMessage {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<&String> for UserMessage {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

impl From<UserMessage> for Message {
    fn from(UserMessage { text, images, .. }: UserMessage) -> Self {
        if images.is_empty() {
            return Self::user(text);
        }
        let text = (!text.trim().is_empty()).then(|| ContentPart::text(text));
        Self::new(Role::User, images.into_iter().map(ContentPart::Image).chain(text).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn image() -> ImageData {
        ImageData::data(vec![1, 2, 3], "image/png")
    }

    #[test]
    fn the_model_gets_images_before_the_text() {
        let kinds = |message: UserMessage| {
            let parts = Message::from(message).content.into_iter();
            parts.map(|part| part.as_text().unwrap_or("<image>").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(kinds("look".into()), ["look"]);
        assert_eq!(
            kinds(UserMessage::from("look").with_image(image()).with_image(image())),
            ["<image>", "<image>", "look"]
        );
        assert_eq!(kinds(UserMessage::from(" ").with_image(image())), ["<image>"]);
    }

    #[test]
    fn a_message_needs_text_or_images_that_are_there() {
        let cases = [
            (UserMessage::from("x"), None),
            (UserMessage::from("").with_image(image()), None),
            (UserMessage::from("x").with_image(ImageData::url("https://example.org/a.png")), None),
            (UserMessage::from(" \n"), Some("is empty: expected some text or an image")),
            (
                UserMessage::from("x").with_image(image()).with_image(ImageData::path("/etc/shadow")),
                Some("has the path of an image: expected the bytes or a URL"),
            ),
        ];
        for (message, expected) in cases {
            assert_eq!(message.problem(), expected, "{message:?}");
        }
    }

    #[test]
    fn a_message_without_images_is_written_as_before_there_were_any() {
        assert_eq!(serde_json::to_value(UserMessage::from("x")).unwrap(), json!({"text": "x"}));
        let message = UserMessage::from("x").with_image(image());
        let written = json!({"text": "x", "images": [{"data": "AQID", "media_type": "image/png"}]});
        assert_eq!(serde_json::to_value(&message).unwrap(), written);
        assert_eq!(serde_json::from_value::<UserMessage>(written).unwrap(), message);
    }
}
