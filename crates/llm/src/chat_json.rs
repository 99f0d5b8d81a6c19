//! Conversations and tools in the JSON format of OpenAI's Chat Completions API.

#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::content::{AudioData, Blob, ContentPart, DocumentData, ImageData, ToolCall, ToolResult};
use crate::error::{Error, ErrorKind};
use crate::message::{Message, Role};
use crate::tool::{Grammar, ToolChoice, ToolDefinition};

/// Converts a JSON array of Chat Completions messages.
///
/// Roles `system`, `developer`, `user`, `assistant`, `tool` and `function` are accepted; content is a string or an array
/// of `text`, `refusal`, `image_url`, `input_audio` and `file` parts. Consecutive tool messages become one message, as
/// after a round of parallel calls. Unknown fields are ignored, since servers and clients add their own; unknown roles
/// and parts are errors. URLs stay URLs: no conversion ever reads a file.
///
/// ```
/// use pintle_llm::chat_json;
/// use serde_json::json;
///
/// let messages = chat_json::messages(&json!([
///     {"role": "system", "content": "Be brief."},
///     {"role": "user", "content": [{"type": "text", "text": "How is the weather in Oslo?"}]},
///     {"role": "assistant", "tool_calls": [
///         {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Oslo\"}"}},
///     ]},
///     {"role": "tool", "tool_call_id": "c1", "content": "Sunny."},
/// ]))?;
/// assert_eq!(messages[2].tool_calls().next().unwrap().arguments["city"], "Oslo");
/// assert_eq!(messages[3].results().next().unwrap().text(), "Sunny.");
/// # Ok::<(), pintle_llm::Error>(())
/// ```
///
/// # Errors
///
/// [`ErrorKind::InvalidRequest`] naming the index of the message.
pub fn messages(json: &Value) -> Result<Vec<Message>, Error> {
    let list = json.as_array().ok_or_else(|| invalid("expected an array of messages"))?;
    let mut messages: Vec<Message> = Vec::with_capacity(list.len());
    for (index, json) in list.iter().enumerate() {
        let context = |problem: String| invalid(format!("message {index}: {problem}"));
        let message = message(json).map_err(context)?;
        match messages.last_mut() {
            Some(last) if last.role == Role::Tool && message.role == Role::Tool => {
                last.content.extend(message.content);
                last.tool_call_id = None;
            }
            Some(_) | None => messages.push(message),
        }
    }
    Ok(messages)
}

/// Converts a JSON array of Chat Completions tools: functions, custom tools, and function definitions without a wrapper
/// as in the deprecated field `functions`.
///
/// A function without parameters gets an empty object schema. A custom tool takes its text as the property `input`.
///
/// # Errors
///
/// [`ErrorKind::InvalidRequest`] naming the index of the tool.
pub fn tools(json: &Value) -> Result<Vec<ToolDefinition>, Error> {
    let list = json.as_array().ok_or_else(|| invalid("expected an array of tools"))?;
    let convert = |(index, json)| tool(json).map_err(|problem| invalid(format!("tool {index}: {problem}")));
    list.iter().enumerate().map(convert).collect()
}

/// Converts the value of `tool_choice`: `"auto"`, `"none"`, `"required"`, or an object that names a tool.
///
/// # Errors
///
/// [`ErrorKind::InvalidRequest`] for anything else.
pub fn tool_choice(json: &Value) -> Result<ToolChoice, Error> {
    let named = |kind: &str| json.get(kind)?.get("name")?.as_str();
    match json.as_str() {
        Some("auto") => Ok(ToolChoice::Auto),
        Some("none") => Ok(ToolChoice::None),
        Some("required") => Ok(ToolChoice::Required),
        Some(other) => Err(invalid(format!("unknown tool choice `{other}`"))),
        None => named("function")
            .or_else(|| named("custom"))
            .or_else(|| json.get("name")?.as_str())
            .map(|name| ToolChoice::Named(name.to_owned()))
            .ok_or_else(|| invalid("expected a tool choice: a mode or the name of a function")),
    }
}

#[derive(Deserialize)]
struct ChatMessage {
    role: String,
    content: Option<Content>,
    name: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<ChatToolCall>>,
    function_call: Option<Function>,
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Value>),
}

#[derive(Deserialize)]
struct ChatToolCall {
    id: String,
    function: Option<Function>,
    custom: Option<Custom>,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    arguments: Value,
}

#[derive(Deserialize)]
struct Custom {
    name: String,
    input: String,
}

fn message(json: &Value) -> Result<Message, String> {
    let chat = ChatMessage::deserialize(json).map_err(|error| error.to_string())?;
    let role = match chat.role.as_str() {
        "system" => Role::System,
        "developer" => Role::Developer,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" | "function" => return tool_message(chat),
        other => return Err(format!("unknown role `{other}`")),
    };
    let mut content = parts(chat.content)?;
    content.extend(chat.refusal.filter(|text| !text.is_empty()).map(ContentPart::text));
    if role == Role::Assistant {
        for call in chat.tool_calls.into_iter().flatten() {
            content.push(tool_call(call)?.into());
        }
        // Deprecated calls have no id. Their result names the function.
        content.extend(chat.function_call.map(|call| function_call(call.name.clone(), call).into()));
    }
    if content.is_empty() {
        return Err("no content".to_owned());
    }
    let mut message = Message::new(role, content);
    message.name = chat.name;
    Ok(message)
}

fn tool_message(chat: ChatMessage) -> Result<Message, String> {
    let id = chat.tool_call_id.or_else(|| chat.name.clone()).ok_or("expected `tool_call_id`")?;
    let mut result = ToolResult::new(id, String::new(), false);
    let mut text = String::new();
    for part in parts(chat.content)? {
        match part {
            ContentPart::Text(data) => text.push_str(&data.text),
            ContentPart::Image(image) => result.images.push(image),
            ContentPart::Audio(_)
            | ContentPart::Document(_)
            | ContentPart::ToolCall(_)
            | ContentPart::ToolResult(_)
            | ContentPart::Thinking(_)
            | ContentPart::Opaque(_) => return Err("a tool message has text and images only".to_owned()),
        }
    }
    result.content = text.into();
    let mut message = Message::tool_results(vec![result]);
    message.name = chat.name;
    Ok(message)
}

fn tool_call(call: ChatToolCall) -> Result<ToolCall, String> {
    match (call.function, call.custom) {
        (Some(function), None) => Ok(function_call(call.id, function)),
        (None, Some(custom)) => Ok(ToolCall::custom(call.id, custom.name, custom.input)),
        (Some(_), Some(_)) | (None, None) => {
            Err(format!("expected `function` or `custom` in tool call `{}`", call.id))
        }
    }
}

/// Arguments are JSON in a string; some servers send an object.
fn function_call(id: String, function: Function) -> ToolCall {
    match function.arguments {
        Value::Object(arguments) => ToolCall::new(id, function.name, arguments),
        Value::String(text) => ToolCall::from_raw(id, function.name, text),
        Value::Null => ToolCall::new(id, function.name, Map::new()),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            ToolCall::from_raw(id, function.name, other.to_string())
        }
    }
}

fn parts(content: Option<Content>) -> Result<Vec<ContentPart>, String> {
    match content {
        None => Ok(Vec::new()),
        Some(Content::Text(text)) if text.is_empty() => Ok(Vec::new()),
        Some(Content::Text(text)) => Ok(vec![ContentPart::text(text)]),
        Some(Content::Parts(parts)) => parts.iter().map(part).collect(),
    }
}

fn part(json: &Value) -> Result<ContentPart, String> {
    let kind = json.get("type").and_then(Value::as_str).ok_or("a content part without `type`")?;
    let text =
        |path: &[&str]| -> Option<&str> { path.iter().try_fold(json, |value, key| value.get(key))?.as_str() };
    let required =
        |path: &[&str]| text(path).ok_or_else(|| format!("expected `{}` in {kind}", path.join(".")));
    Ok(match kind {
        "text" => ContentPart::text(required(&["text"])?),
        "refusal" => ContentPart::text(required(&["refusal"])?),
        "image_url" => {
            // Some clients send the URL itself.
            let url = text(&["image_url"]).map_or_else(|| required(&["image_url", "url"]), Ok)?;
            let mut image = ImageData::url(url);
            image.detail = text(&["image_url", "detail"]).map(str::to_owned);
            image.into()
        }
        "input_audio" => {
            let format = text(&["input_audio", "format"]).unwrap_or("wav");
            let bytes = base64(required(&["input_audio", "data"])?)?;
            ContentPart::Audio(AudioData::data(bytes, format!("audio/{format}")))
        }
        "file" => {
            let mut document = match required(&["file", "file_data"])? {
                url if url.starts_with("data:") => DocumentData::url(url),
                data => DocumentData::data(base64(data)?, "application/pdf"),
            };
            document.file_name = text(&["file", "filename"]).map(str::to_owned);
            ContentPart::Document(document)
        }
        other => return Err(format!("unknown content part `{other}`")),
    })
}

fn base64(text: &str) -> Result<Blob, String> {
    serde_json::from_value(text.into()).map_err(|_| "invalid base64".to_owned())
}

fn tool(json: &Value) -> Result<ToolDefinition, String> {
    if let Some(custom) = json.get("custom") {
        return custom_tool(custom);
    }
    let function = json.get("function").unwrap_or(json);
    let parameters = match function.get("parameters") {
        None | Some(Value::Null) => serde_json::json!({"type": "object", "properties": {}}),
        Some(parameters) => parameters.clone(),
    };
    definition(function, parameters)
}

fn custom_tool(custom: &Value) -> Result<ToolDefinition, String> {
    let parameters = serde_json::json!({
        "type": "object",
        "properties": {"input": {"type": "string"}},
        "required": ["input"],
    });
    let mut definition = definition(custom, parameters)?;
    let grammar = custom.get("format").and_then(|format| format.get("grammar"));
    let text = |key: &str| grammar?.get(key)?.as_str().map(str::to_owned);
    definition.grammar =
        text("syntax").zip(text("definition")).map(|(syntax, definition)| Grammar { syntax, definition });
    Ok(definition)
}

fn definition(json: &Value, parameters: Value) -> Result<ToolDefinition, String> {
    let name = json.get("name").and_then(Value::as_str).ok_or("expected `name`")?;
    let description = json.get("description").and_then(Value::as_str).unwrap_or_default();
    ToolDefinition::new(name, description, parameters).map_err(|error| error.message().to_owned())
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidRequest, message)
}
