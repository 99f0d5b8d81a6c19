//! Fixtures that the suite expects word for word.

use rmcp::model::JsonObject;
use serde_json::{Value, json};

/// A red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/// Sound without a sample.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

pub(crate) fn capabilities() -> Value {
    json!({
        "tools": {"listChanged": true}, "prompts": {"listChanged": true}, "resources": {"subscribe": true},
        "logging": {}, "completions": {},
    })
}

/// Returns the result of a tool that is one text.
pub(crate) fn text(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

pub(crate) fn failure(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": true})
}

/// Returns the result of a tool with a constant result.
pub(crate) fn result(tool: &str) -> Option<Value> {
    let content = match tool {
        "test_image_content" => json!([image()]),
        "test_audio_content" => json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]),
        "test_embedded_resource" => {
            json!([embedded(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content."
            )])
        }
        "test_multiple_content_types" => json!([
            {"type": "text", "text": "Multiple content types test:"},
            image(),
            embedded("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ]),
        "test_headers" | "json_schema_2020_12_tool" => json!([{"type": "text", "text": "done"}]),
        _ => return None,
    };
    Some(json!({"resultType": "complete", "content": content}))
}

fn image() -> Value {
    json!({"type": "image", "data": PNG, "mimeType": "image/png"})
}

fn embedded(uri: &str, mime_type: &str, text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": text}})
}

/// Returns the tools that this example answers.
pub(crate) fn tools() -> Value {
    let without_arguments = [
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_tool_with_logging",
        "test_logging_tool",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
        "test_missing_capability",
        "test_streaming_elicitation",
        "test_trigger_tool_change",
        "test_trigger_prompt_change",
        "test_input_required_result_elicitation",
        "test_input_required_result_sampling",
        "test_input_required_result_list_roots",
        "test_input_required_result_request_state",
        "test_input_required_result_multiple_inputs",
        "test_input_required_result_multi_round",
        "test_input_required_result_tampered_state",
        "test_input_required_result_capabilities",
    ];
    let one_text =
        |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let header =
        json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let mut tools: Vec<Value> = without_arguments
        .iter()
        .map(|name| tool(name, &json!({"type": "object", "properties": {}})))
        .collect();
    tools.push(tool("test_sampling", &one_text("prompt")));
    tools.push(tool("test_elicitation", &one_text("message")));
    tools.push(tool("test_headers", &header));
    tools.push(tool("json_schema_2020_12_tool", &newest_schema()));
    Value::Array(tools)
}

fn tool(name: &str, schema: &Value) -> Value {
    json!({"name": name, "description": "A fixture of the suite.", "inputSchema": schema})
}

fn newest_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef", "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"}, "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

/// Returns a question to the client's model.
pub(crate) fn sampling(prompt: &str, max_tokens: u32) -> Value {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    json!({"messages": [message], "maxTokens": max_tokens})
}

/// Returns the properties that a tool asks for.
pub(crate) fn question(tool: &str) -> Value {
    let choice = |value: &str, title: &str| json!({"const": value, "title": title});
    match tool {
        "test_elicitation_sep1034_defaults" => json!({
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": true},
        }),
        "test_elicitation_sep1330_enums" => json!({
            "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
            "titledSingle": {"type": "string", "oneOf": [choice("value1", "First"), choice("value2", "Second")]},
            "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2"]}},
            "titledMulti": {
                "type": "array", "items": {"anyOf": [choice("value1", "First"), choice("value2", "Second")]},
            },
        }),
        _ => json!({"username": {"type": "string"}, "email": {"type": "string"}}),
    }
}

pub(crate) fn resources() -> Value {
    json!([
        {"uri": "test://static-text", "name": "text", "description": "A text.", "mimeType": "text/plain"},
        {"uri": "test://static-binary", "name": "binary", "description": "An image.", "mimeType": "image/png"},
    ])
}

pub(crate) fn resource_templates() -> Value {
    json!([{
        "uriTemplate": "test://template/{id}/data", "name": "data", "description": "Data of an id.",
        "mimeType": "application/json",
    }])
}

/// Returns the contents of a resource.
pub(crate) fn resource(uri: &str) -> Option<Value> {
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    let contents = match (uri, id) {
        ("test://static-text", _) => {
            json!({"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."})
        }
        ("test://static-binary", _) => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        (_, Some(id)) => {
            let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
        }
        _ => return None,
    };
    Some(json!({"resultType": "complete", "contents": [contents], "ttlMs": 0, "cacheScope": "private"}))
}

pub(crate) fn prompts() -> Value {
    let argument = |name: &str| json!({"name": name, "description": "A text.", "required": true});
    json!([
        {"name": "test_simple_prompt", "description": "A text."},
        {
            "name": "test_prompt_with_arguments", "description": "A text with arguments.",
            "arguments": [argument("arg1"), argument("arg2")],
        },
        {
            "name": "test_prompt_with_embedded_resource", "description": "A text with a resource.",
            "arguments": [argument("resourceUri")],
        },
        {"name": "test_prompt_with_image", "description": "A text with an image."},
        {"name": super::rounds::PROMPT, "description": "A text that needs input."},
    ])
}

/// Returns the messages of a prompt.
pub(crate) fn prompt(name: &str, arguments: &JsonObject) -> Option<Value> {
    let argument = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let text = |text: &str| json!({"type": "text", "text": text});
    let contents = match name {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1"), argument("arg2"));
            vec![text(&format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
        }
        "test_prompt_with_embedded_resource" => vec![
            embedded(argument("resourceUri"), "text/plain", "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![image(), text("Please analyze the image above.")],
        super::rounds::PROMPT => vec![text("A prompt with the context that was asked for.")],
        _ => return None,
    };
    let messages: Vec<Value> =
        contents.into_iter().map(|content| json!({"role": "user", "content": content})).collect();
    Some(json!({"resultType": "complete", "messages": messages}))
}
