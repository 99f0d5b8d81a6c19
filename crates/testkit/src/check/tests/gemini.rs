use serde_json::{Value, json};

use super::{Case, Dialect, assert_cases, check, headers, violations};

fn legal() -> Value {
    json!({
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "generationConfig": {
            "temperature": 1, "maxOutputTokens": 100, "thinkingConfig": {"includeThoughts": true, "thinkingLevel": "HIGH"},
        },
        "tools": [{"functionDeclarations": [
            {"name": "read_file", "description": "reads",
             "parametersJsonSchema": {"type": "object", "properties": {"path": {"type": "string"}}}},
            {"name": "list", "parameters": {"type": "OBJECT", "properties": {"path": {"type": "STRING"}}}},
        ]}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "contents": [
            {"role": "user", "parts": [{"text": "go"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}]},
            {"role": "model", "parts": [
                {"text": "hm", "thought": true},
                {"functionCall": {"name": "read_file", "args": {"path": "a"}}, "thoughtSignature": "b3BhcXVl"},
                {"functionCall": {"name": "list", "args": {}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "read_file", "response": {"output": "text"}}},
                {"functionResponse": {"name": "list", "response": {"error": "text"}}},
            ]},
        ],
    })
}

const CASES: &[Case] = &[
    (|body| drop(body.as_object_mut().unwrap().remove("contents")), "contents", "required"),
    (|body| body["contents"] = json!([]), "contents", "at least one content"),
    (|body| body["messages"] = json!([]), "messages", "unknown field"),
    (|body| body["system_instruction"] = json!({}), "system_instruction", "unknown field"),
    (
        |body| body["contents"][0]["role"] = json!("assistant"),
        "contents[0].role",
        "expected one of user, model",
    ),
    (|body| body["contents"][0]["role"] = json!("model"), "contents[0].role", "begin with \"user\""),
    (|body| body["contents"][0]["parts"] = json!([]), "contents[0].parts", "at least one part"),
    (
        |body| body["contents"][0]["parts"][0] = json!({}),
        "contents[0].parts[0]",
        "found none, expected exactly one",
    ),
    (
        |body| body["contents"][0]["parts"][1]["text"] = json!("x"),
        "contents[0].parts[1]",
        "found text and inlineData",
    ),
    (
        |body| {
            drop(body["contents"][0]["parts"][1]["inlineData"].as_object_mut().unwrap().remove("mimeType"))
        },
        "contents[0].parts[1].inlineData.mimeType",
        "required",
    ),
    (
        |body| body["contents"][2]["role"] = json!("model"),
        "contents[2].parts[0].functionResponse",
        "role \"user\"",
    ),
    (
        |body| body["contents"][1]["parts"][1]["functionCall"]["args"] = json!("{}"),
        "contents[1].parts[1].functionCall.args",
        "found a string, expected an object",
    ),
    (
        |body| drop(body["contents"][1]["parts"][1].as_object_mut().unwrap().remove("thoughtSignature")),
        "contents[1].parts[1]",
        "is missing a thought_signature",
    ),
    (
        |body| body["contents"][1]["parts"][1]["thoughtSignature"] = json!("no base64!"),
        "contents[1].parts[1].thoughtSignature",
        "base64",
    ),
    (
        |body| drop(body["contents"][2]["parts"].as_array_mut().unwrap().pop()),
        "contents[2]",
        "parts (1) must equal",
    ),
    (
        |body| body["contents"][2]["parts"].as_array_mut().unwrap().reverse(),
        "contents[2]: functionResponse 0",
        "name",
    ),
    (
        |body| drop(body["contents"].as_array_mut().unwrap().pop()),
        "contents[1]",
        "without function responses",
    ),
    (
        |body| body["contents"][2]["parts"][0]["functionResponse"]["response"] = json!("text"),
        "contents[2].parts[0].functionResponse.response",
        "an object",
    ),
    (
        |body| body["contents"][1]["parts"][2]["functionCall"]["id"] = json!("id"),
        "contents[2]: functionResponse 1",
        "the id of its call",
    ),
    (|body| body["tools"][0]["name"] = json!("x"), "tools[0].name", "unknown field"),
    (
        |body| body["tools"][0]["functionDeclarations"][0]["name"] = json!("a b"),
        "tools[0].functionDeclarations[0].name",
        "1 to 64",
    ),
    (
        |body| body["tools"][0]["functionDeclarations"][0]["parameters"] = json!({"type": "object"}),
        "tools[0].functionDeclarations[0]",
        "expected one of them",
    ),
    (
        |body| {
            body["tools"][0]["functionDeclarations"][1]["parameters"]["additionalProperties"] = json!(false)
        },
        "tools[0].functionDeclarations[1].parameters.additionalProperties",
        "unknown field",
    ),
    (
        |body| {
            body["tools"][0]["functionDeclarations"][1]["parameters"]["properties"]["path"]["const"] =
                json!(1)
        },
        "tools[0].functionDeclarations[1].parameters.properties.path.const",
        "unknown field",
    ),
    (
        |body| body["tools"][0]["functionDeclarations"][1]["parameters"]["required"] = json!(["x"]),
        "tools[0].functionDeclarations[1].parameters.required[0]",
        "name of a property",
    ),
    (
        |body| {
            body["tools"][0]["functionDeclarations"][1]["parameters"]["properties"]["path"] =
                json!({"anyOf": [{"type": "STRING"}, {"oneOf": []}]})
        },
        "tools[0].functionDeclarations[1].parameters.properties.path.anyOf[1].oneOf",
        "unknown field",
    ),
    (
        |body| body["tools"][0]["functionDeclarations"][1]["parameters"]["properties"]["path"] = json!({}),
        "tools[0].functionDeclarations[1].parameters.properties.path.type",
        "or anyOf",
    ),
    (
        |body| body["toolConfig"]["functionCallingConfig"]["mode"] = json!("auto"),
        "toolConfig.functionCallingConfig.mode",
        "AUTO, ANY, NONE",
    ),
    (
        |body| body["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"] = json!(["list"]),
        "toolConfig.functionCallingConfig.allowedFunctionNames",
        "expected mode ANY",
    ),
    (
        |body| body["generationConfig"]["max_tokens"] = json!(1),
        "generationConfig.max_tokens",
        "unknown field",
    ),
    (
        |body| body["generationConfig"]["responseJsonSchema"] = json!({}),
        "generationConfig.responseMimeType",
        "application/json",
    ),
    (
        |body| body["generationConfig"]["responseSchema"] = json!({"type": "OBJECT", "oneOf": []}),
        "generationConfig.responseSchema.oneOf",
        "unknown field",
    ),
    (
        |body| body["generationConfig"]["thinkingConfig"]["thinkingBudget"] = json!(1),
        "generationConfig.thinkingConfig",
        "expected one of them",
    ),
    (
        |body| body["contents"][1]["parts"][1]["functionCall"]["name"] = json!("read file"),
        "contents[1].parts[1].functionCall.name",
        "legal characters",
    ),
    (
        |body| body["contents"][2]["parts"][0]["functionResponse"]["name"] = json!("-read"),
        "contents[2].parts[0].functionResponse.name",
        "a letter or _",
    ),
    (
        |body| {
            for index in [1, 2] {
                body["contents"][1]["parts"][index]["functionCall"]["id"] = json!("same");
            }
        },
        "contents[1]",
        "\"same\" on two function calls",
    ),
    (
        |body| body["contents"][0]["parts"][1]["inlineData"]["data"] = json!("A"),
        "contents[0].parts[1].inlineData.data",
        "base64",
    ),
    (
        |body| body["contents"][2]["parts"][0]["functionResponse"]["parts"] = json!([{"text": "x"}]),
        "contents[2].parts[0].functionResponse.parts[0].text",
        "unknown field",
    ),
];

#[test]
fn illegal_requests_are_reported() {
    assert_cases(Dialect::Gemini, &legal(), CASES);
}

#[test]
fn gemini_3_needs_signatures_in_the_current_turn_only() {
    let bare = |body: &mut Value| {
        body["contents"][1]["parts"][1].as_object_mut().unwrap().remove("thoughtSignature");
    };
    let mut older = legal();
    bare(&mut older);
    older["generationConfig"] = json!({"thinkingConfig": {"thinkingBudget": 1024}});
    let path = "/v1beta/models/gemini-2.5-pro:generateContent";
    let found = check(Dialect::Gemini, "POST", path, &headers(Dialect::Gemini), older.to_string().as_bytes());
    assert_eq!(found, []);

    let mut past = legal();
    bare(&mut past);
    let contents = past["contents"].as_array_mut().unwrap();
    contents.push(json!({"role": "model", "parts": [{"text": "done"}]}));
    contents.push(json!({"role": "user", "parts": [{"text": "next"}]}));
    assert_eq!(violations(Dialect::Gemini, &past), []);

    let mut skipped = legal();
    skipped["contents"][1]["parts"][1]["thoughtSignature"] = json!("skip_thought_signature_validator");
    assert_eq!(violations(Dialect::Gemini, &skipped), []);
}

#[test]
fn any_of_schemas_need_no_type() {
    let mut body = legal();
    body["tools"][0]["functionDeclarations"][1]["parameters"]["properties"]["path"] =
        json!({"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]});
    assert_eq!(violations(Dialect::Gemini, &body), []);
}

#[test]
fn consecutive_model_contents_are_one_turn() {
    let mut body = legal();
    let contents = body["contents"].as_array_mut().unwrap();
    let call = contents[1]["parts"].as_array_mut().unwrap().pop().unwrap();
    contents.insert(2, json!({"role": "model", "parts": [call]}));
    contents.insert(3, json!({"role": "model", "parts": [{"text": ""}]}));
    assert_eq!(violations(Dialect::Gemini, &body), []);
}

#[test]
fn streams_must_be_requested_as_events() {
    let path = "/v1beta/models/gemini-3-pro:streamGenerateContent";
    let found =
        check(Dialect::Gemini, "POST", path, &headers(Dialect::Gemini), legal().to_string().as_bytes());
    assert_eq!(found[0].field, "path");
}
