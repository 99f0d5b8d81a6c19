//! The parts of a message (client specification, sections 3.3 to 3.5).

mod data_url;
mod media;

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

pub use self::media::{AudioData, Blob, DocumentData, ImageData, MediaSource};
use crate::arguments::{CallArguments, object_of};

/// One part of a message.
///
/// Serialised as the specification's record: `kind` names the field that is filled.
#[derive(Clone, Debug, PartialEq)]
pub enum ContentPart {
    /// Plain text.
    Text(TextData),
    /// An image.
    Image(ImageData),
    /// Sound.
    Audio(AudioData),
    /// A document, such as a PDF.
    Document(DocumentData),
    /// A call that the model wants made.
    ToolCall(ToolCall),
    /// The answer to a call.
    ToolResult(ToolResult),
    /// Reasoning, readable or redacted.
    Thinking(ThinkingData),
    /// A provider's own block that the unified model has no part for; goes back verbatim to its origin.
    Opaque(OpaqueData),
}

impl ContentPart {
    /// A text part.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextData { text: text.into(), signature: None })
    }

    /// The text, if this is a text part.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(data) = self { Some(&data.text) } else { None }
    }

    /// The reasoning, if this is such a part.
    #[must_use]
    pub fn as_thinking(&self) -> Option<&ThinkingData> {
        if let Self::Thinking(data) = self { Some(data) } else { None }
    }

    /// The discriminator as the specification spells it (section 3.4); an opaque part's own kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Text(_) => "TEXT",
            Self::Image(_) => "IMAGE",
            Self::Audio(_) => "AUDIO",
            Self::Document(_) => "DOCUMENT",
            Self::ToolCall(_) => "TOOL_CALL",
            Self::ToolResult(_) => "TOOL_RESULT",
            Self::Thinking(data) if data.redacted => "REDACTED_THINKING",
            Self::Thinking(_) => "THINKING",
            Self::Opaque(data) => &data.kind,
        }
    }
}

/// Text, with the signature that some providers attach to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextData {
    /// The text.
    pub text: String,
    /// An opaque signature (Gemini); goes back to its origin only.
    pub signature: Option<String>,
}

/// How a tool is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallKind {
    /// With a JSON object that fits a schema.
    #[default]
    Function,
    /// With free text.
    Custom,
}

/// A call that the model wants made (`ToolCall` and `ToolCallData` of the specification in one).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// Links the result to the call; made by the adapter where the provider gives none.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The parsed arguments; a string where they are free text or not a JSON object.
    pub arguments: CallArguments,
    /// The arguments as the model wrote them, where they came as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_arguments: Option<Arc<str>>,
    /// Function or custom.
    #[serde(default, rename = "type")]
    pub kind: ToolCallKind,
    /// An opaque signature (Gemini); goes back to its origin only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

impl ToolCall {
    /// A function call with parsed arguments.
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: Map<String, Value>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments: Value::Object(arguments).into(),
            raw_arguments: None,
            kind: ToolCallKind::Function,
            signature: None,
        }
    }

    /// A function call with arguments as text. No text at all means no arguments.
    #[must_use]
    pub fn from_raw(id: impl Into<String>, name: impl Into<String>, raw: impl Into<String>) -> Self {
        let raw: Arc<str> = raw.into().into();
        let arguments = if raw.trim().is_empty() {
            Value::Object(Map::new())
        } else {
            object_of(&raw).map_or_else(|| Value::String(raw.as_ref().to_owned()), Value::Object)
        };
        Self { arguments: arguments.into(), raw_arguments: Some(raw), ..Self::new(id, name, Map::new()) }
    }

    /// A call of a custom tool with free text.
    #[must_use]
    pub fn custom(id: impl Into<String>, name: impl Into<String>, input: impl Into<String>) -> Self {
        let mut input = input.into();
        // It was streamed into a buffer that grew, and is kept as long as the history.
        input.shrink_to_fit();
        Self {
            raw_arguments: Some(input.as_str().into()),
            arguments: Value::String(input).into(),
            kind: ToolCallKind::Custom,
            ..Self::new(id, name, Map::new())
        }
    }

    /// With an opaque signature.
    #[must_use]
    pub fn with_signature(mut self, signature: Option<String>) -> Self {
        self.signature = signature;
        self
    }

    /// The arguments as one JSON text: as the model wrote them where known.
    #[must_use]
    pub fn arguments_text(&self) -> Cow<'_, str> {
        match &self.raw_arguments {
            Some(raw) if !raw.trim().is_empty() => Cow::Borrowed(raw),
            Some(_) | None => Cow::Owned(self.arguments.to_string()),
        }
    }

    /// The arguments as an object; `None` if they are not one.
    #[must_use]
    pub fn arguments_object(&self) -> Option<&Map<String, Value>> {
        self.arguments.as_object()
    }
}

/// The answer to a call (`ToolResult` and `ToolResultData` of the specification in one).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// The call that this answers.
    pub tool_call_id: String,
    /// Text, or a JSON object or list.
    pub content: Value,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Images beside the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageData>,
}

impl ToolResult {
    /// A result with text.
    #[must_use]
    pub fn new(tool_call_id: impl Into<String>, content: impl Into<String>, is_error: bool) -> Self {
        Self {
            tool_call_id: tool_call_id.into(),
            content: Value::String(content.into()),
            is_error,
            images: Vec::new(),
        }
    }

    /// With an image.
    #[must_use]
    pub fn with_image(mut self, image: ImageData) -> Self {
        self.images.push(image);
        self
    }

    /// The content as text; structured content as JSON.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.content {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                other.to_string()
            }
        }
    }
}

/// Reasoning (specification section 3.5).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ThinkingData {
    /// The readable reasoning; empty if redacted or withheld.
    pub text: String,
    /// What the provider needs back to trust the text: a signature, redacted data or encrypted content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Whether the content is opaque.
    #[serde(default)]
    pub redacted: bool,
    /// The provider's item as it came, where its shape is richer than text and signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
}

impl ThinkingData {
    /// Readable reasoning.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Opaque reasoning that must go back verbatim.
    #[must_use]
    pub fn redacted(data: impl Into<String>) -> Self {
        Self { signature: Some(data.into()), redacted: true, ..Self::default() }
    }

    /// With a signature.
    #[must_use]
    pub fn with_signature(mut self, signature: Option<String>) -> Self {
        self.signature = signature;
        self
    }

    /// With the provider's own item.
    #[must_use]
    pub fn with_raw(mut self, raw: Value) -> Self {
        self.raw = Some(raw);
        self
    }
}

/// A provider's own block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpaqueData {
    /// The provider's name for the block, such as `server_tool_use`.
    pub kind: String,
    /// The block as it came.
    pub data: Value,
}

/// The specification's record: one optional field per kind.
#[derive(Serialize, Deserialize)]
struct PartRecord<'a> {
    kind: std::borrow::Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<std::borrow::Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<std::borrow::Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    image: Option<Held<'a, ImageData>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    audio: Option<Held<'a, AudioData>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    document: Option<Held<'a, DocumentData>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_call: Option<Held<'a, ToolCall>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_result: Option<Held<'a, ToolResult>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thinking: Option<Held<'a, ThinkingData>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<Held<'a, Value>>,
}

/// Borrowed when written, owned when read.
enum Held<'a, T> {
    Borrowed(&'a T),
    Owned(T),
}

impl<T: Clone> Held<'_, T> {
    fn into_owned(self) -> T {
        match self {
            Self::Borrowed(value) => value.clone(),
            Self::Owned(value) => value,
        }
    }
}

impl<T: Serialize> Serialize for Held<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Borrowed(value) => value.serialize(serializer),
            Self::Owned(value) => value.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Held<'_, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::Owned)
    }
}

impl<'a> From<&'a ContentPart> for PartRecord<'a> {
    fn from(part: &'a ContentPart) -> Self {
        let mut record = PartRecord {
            kind: part.kind().into(),
            text: None,
            signature: None,
            image: None,
            audio: None,
            document: None,
            tool_call: None,
            tool_result: None,
            thinking: None,
            data: None,
        };
        match part {
            ContentPart::Text(data) => {
                record.text = Some(data.text.as_str().into());
                record.signature = data.signature.as_deref().map(Into::into);
            }
            ContentPart::Image(data) => record.image = Some(Held::Borrowed(data)),
            ContentPart::Audio(data) => record.audio = Some(Held::Borrowed(data)),
            ContentPart::Document(data) => record.document = Some(Held::Borrowed(data)),
            ContentPart::ToolCall(data) => record.tool_call = Some(Held::Borrowed(data)),
            ContentPart::ToolResult(data) => record.tool_result = Some(Held::Borrowed(data)),
            ContentPart::Thinking(data) => record.thinking = Some(Held::Borrowed(data)),
            ContentPart::Opaque(data) => record.data = Some(Held::Borrowed(&data.data)),
        }
        record
    }
}

impl TryFrom<PartRecord<'_>> for ContentPart {
    type Error = String;

    fn try_from(record: PartRecord<'_>) -> Result<Self, Self::Error> {
        fn field<T: Clone>(kind: &str, name: &str, held: Option<Held<'_, T>>) -> Result<T, String> {
            held.map(Held::into_owned)
                .ok_or_else(|| format!("a part of kind {kind} needs the field `{name}`"))
        }
        let kind = record.kind.as_ref();
        Ok(match kind {
            "TEXT" => Self::Text(TextData {
                text: record.text.ok_or("a part of kind TEXT needs the field `text`")?.into_owned(),
                signature: record.signature.map(std::borrow::Cow::into_owned),
            }),
            "IMAGE" => Self::Image(field(kind, "image", record.image)?),
            "AUDIO" => Self::Audio(field(kind, "audio", record.audio)?),
            "DOCUMENT" => Self::Document(field(kind, "document", record.document)?),
            "TOOL_CALL" => Self::ToolCall(field(kind, "tool_call", record.tool_call)?),
            "TOOL_RESULT" => Self::ToolResult(field(kind, "tool_result", record.tool_result)?),
            "THINKING" | "REDACTED_THINKING" => Self::Thinking(field(kind, "thinking", record.thinking)?),
            other => {
                Self::Opaque(OpaqueData { kind: other.to_owned(), data: field(kind, "data", record.data)? })
            }
        })
    }
}

impl Serialize for ContentPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        PartRecord::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ContentPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        PartRecord::deserialize(deserializer)?.try_into().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_survives_serialisation() {
        let parts = [
            ContentPart::Text(TextData { text: "t".into(), signature: Some("s".into()) }),
            ContentPart::Image(ImageData::data(vec![1, 2, 255], "image/png")),
            ContentPart::Image(ImageData::url("https://example.com/a.png")),
            ContentPart::Audio(AudioData::url("u")),
            ContentPart::Document(DocumentData::data(vec![0], "application/pdf")),
            ToolCall::custom("c", "apply_patch", "*** Begin Patch").into(),
            ToolResult::new("c", "out", true).with_image(ImageData::path("./a.png")).into(),
            ThinkingData::new("why").with_signature(Some("sig".into())).into(),
            ThinkingData::redacted("opaque").into(),
            ContentPart::Opaque(OpaqueData { kind: "server_tool_use".into(), data: json!({"id": 1}) }),
        ];
        for part in parts {
            let text = serde_json::to_string(&part).unwrap();
            assert_eq!(serde_json::from_str::<ContentPart>(&text).unwrap(), part, "{text}");
        }
    }

    #[test]
    fn a_part_without_its_field_is_refused_by_name() {
        let error = serde_json::from_value::<ContentPart>(json!({"kind": "THINKING"})).unwrap_err();
        assert!(error.to_string().contains("needs the field `thinking`"), "{error}");
    }

    #[test]
    fn raw_arguments_are_parsed_when_they_are_an_object() {
        let rows = [
            (r#"{"a":1}"#, json!({"a": 1})),
            ("", json!({})),
            ("  ", json!({})),
            ("[1]", json!("[1]")),
            (r#"{"a":"#, json!(r#"{"a":"#)),
        ];
        for (raw, parsed) in rows {
            assert_eq!(ToolCall::from_raw("i", "n", raw).arguments, parsed, "{raw:?}");
        }
        assert_eq!(ToolCall::from_raw("i", "n", "").arguments_text(), "{}");
        assert_eq!(ToolCall::from_raw("i", "n", r#"{"a": 1}"#).arguments_text(), r#"{"a": 1}"#);
    }

    #[test]
    fn debug_shows_no_image_bytes() {
        let text = format!("{:?}", ImageData::data(vec![7; 1000], "image/png"));
        assert!(text.contains("Blob(1000 bytes)") && text.len() < 200, "{text}");
    }
}
