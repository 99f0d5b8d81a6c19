//! Messages of the user.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pintle_agent::UserMessage;
use pintle_llm::ImageData;
use serde_json::Value;

use super::fields::ObjectFields;
use super::lines::LineError;

/// A message of the user.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct UserLine {
    /// Text and images.
    pub message: UserMessage,
    /// The original message, for [`Formatter::replay`](super::Formatter::replay).
    pub content: Value,
    /// Id that the sender chose.
    pub uuid: Option<String>,
    /// Session of the message, as far as the sender knows it; otherwise empty.
    pub session_id: String,
    /// Whether it starts or continues a run. Default: yes. Otherwise it is only added to the conversation.
    pub asks_model: bool,
}

impl UserLine {
    pub(super) fn read(line: ObjectFields<'_>) -> Result<Self, LineError> {
        let content = line.required("message", "an object")?;
        let message = ObjectFields::new("message", content)?;
        if message.text("role")? != "user" {
            return Err(message.wrong("role", "`user`"));
        }
        let should_query = line.optional("shouldQuery", "true or false", Value::as_bool)?;
        Ok(Self {
            message: read_content(message.required("content", "text or blocks")?)?,
            content: content.clone(),
            uuid: line.optional_text("uuid")?,
            session_id: line.optional_text("session_id")?.unwrap_or_default(),
            asks_model: should_query.unwrap_or(true),
        })
    }
}

fn read_content(content: &Value) -> Result<UserMessage, LineError> {
    if let Some(text) = content.as_str() {
        return Ok(text.into());
    }
    let wrong = || LineError::field("message.content", "text or blocks");
    let blocks = content.as_array().ok_or_else(wrong)?;
    let mut texts = Vec::new();
    let mut images = Vec::new();
    for block in blocks {
        let block = ObjectFields::new("message.content[]", block)?;
        match block.text("type")? {
            "text" => texts.push(block.text("text")?),
            "image" => {
                images.push(image(ObjectFields::new("source", block.required("source", "an object")?)?)?)
            }
            _ => return Err(block.wrong("type", "`text` or `image`")),
        }
    }
    let message = UserMessage::from(texts.join("\n\n"));
    Ok(images.into_iter().fold(message, UserMessage::with_image))
}

fn image(source: ObjectFields<'_>) -> Result<ImageData, LineError> {
    match source.text("type")? {
        "base64" => {
            let bytes = BASE64.decode(source.text("data")?).map_err(|_| source.wrong("data", "base64"))?;
            Ok(ImageData::data(bytes, source.text("media_type")?))
        }
        "url" => Ok(ImageData::url(source.text("url")?)),
        _ => Err(source.wrong("type", "`base64` or `url`")),
    }
}
