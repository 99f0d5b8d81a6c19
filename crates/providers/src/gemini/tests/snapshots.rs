//! Snapshots of requests and responses of the Gemini API, by feature.

use pintle_llm::{
    AudioData, ContentPart, DocumentData, Grammar, ImageData, MediaSource, Message, ReasoningEffort, Request,
    ResponseFormat, ToolDefinition, ToolResult,
};
use serde_json::{Value, json};

use super::{MODEL, OLDER, chunk, dialect, last};
use crate::tests::snapshot::{decoded, local_file, next, refused, sent, sent_of, streamed};

fn ask(message: Message) -> Request {
    Request::new(MODEL, [message])
}

fn document(value: Value) -> ContentPart {
    let document: DocumentData = serde_json::from_value(value).unwrap();
    ContentPart::Document(document)
}

fn audio(value: Value) -> ContentPart {
    let audio: AudioData = serde_json::from_value(value).unwrap();
    ContentPart::Audio(audio)
}

#[test]
fn images_by_url_bytes_and_local_path() {
    let file = local_file(".heic", b"heic");
    let mut typed = ImageData::url("https://example.com/a.png");
    typed.media_type = Some("image/png".into());
    let request = ask(Message::user("What is this?")
        .with_part(typed.into())
        .with_part(ImageData::data(b"gif".to_vec(), "image/gif").into())
        .with_part(ImageData::path(file.path().to_string_lossy()).into()));
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["contents"]), @r#"contents[] {"parts":[{"text":"What is this?"},{"fileData":{"fileUri":"https://example.com/a.png","mimeType":"image/png"}},{"inlineData":{"data":"Z2lm","mimeType":"image/gif"}},{"inlineData":{"data":"aGVpYw==","mimeType":"image/heic"}}],"role":"user"}"#);
    // A generated image is kept verbatim, with its signature.
    let drawn = json!({"inlineData": {"mimeType": "image/png", "data": "cG5n"}, "thoughtSignature": "U0lH"});
    let (events, response) =
        streamed(&dialect(), &request, &[last(json!([{"text": "A cat."}, drawn]), "STOP")]);
    insta::assert_snapshot!(events, @r#"
    {"id":"r1","model":"gemini-x","type":"STREAM_START"}
    {"text_id":"0","type":"TEXT_START"}
    {"delta":"A cat.","text_id":"0","type":"TEXT_DELTA"}
    {"text_id":"0","type":"TEXT_END"}
    {"part":{"data":{"inlineData":{"data":"cG5n","mimeType":"image/png"},"thoughtSignature":"U0lH"},"kind":"inlineData"},"raw":{"inlineData":{"data":"cG5n","mimeType":"image/png"},"thoughtSignature":"U0lH"},"type":"PROVIDER_EVENT"}
    {"finish_reason":{"raw":"STOP","reason":"stop"},"type":"FINISH","usage":{"cache_read_tokens":8,"input_tokens":10,"output_tokens":10,"reasoning_tokens":6,"total_tokens":20}}
    "#);
    let again = next(&ask(Message::user("Draw.")), &response, vec![]);
    insta::assert_snapshot!(sent_of(&dialect(), &again, &["contents"]), @r#"
    contents[] {"parts":[{"text":"Draw."}],"role":"user"}
    contents[] {"parts":[{"text":"A cat."},{"inlineData":{"data":"cG5n","mimeType":"image/png"},"thoughtSignature":"U0lH"}],"role":"model"}
    contents[] {"parts":[{"text":"Go on."}],"role":"user"}
    "#);
    let large = ImageData::data(vec![0; 75_000_001], "image/png");
    insta::assert_snapshot!(refused(&dialect(), &ask(Message::user("").with_part(large.into()))), @"InvalidRequest: an image of 75000001 bytes is too large; the limit is 75000000");
}

#[test]
fn documents_and_audio() {
    let request = ask(Message::user("Sum up.")
        .with_part(document(json!({"url": "https://example.com/a.pdf"})))
        .with_part(document(json!({"data": "cGRm", "media_type": "application/pdf", "file_name": "b.pdf"})))
        .with_part(audio(json!({"data": "AQID", "media_type": "audio/mp3"})))
        .with_part(audio(json!({"url": "https://example.com/a.wav", "media_type": "audio/wav"}))));
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["contents"]), @r#"contents[] {"parts":[{"text":"Sum up."},{"fileData":{"fileUri":"https://example.com/a.pdf"}},{"inlineData":{"data":"cGRm","mimeType":"application/pdf"}},{"inlineData":{"data":"AQID","mimeType":"audio/mp3"}},{"fileData":{"fileUri":"https://example.com/a.wav","mimeType":"audio/wav"}}],"role":"user"}"#);
    insta::assert_snapshot!(streamed(&dialect(), &request, &[last(json!([{"text": "Short."}]), "STOP")]).0, @r#"
    {"id":"r1","model":"gemini-x","type":"STREAM_START"}
    {"text_id":"0","type":"TEXT_START"}
    {"delta":"Short.","text_id":"0","type":"TEXT_DELTA"}
    {"text_id":"0","type":"TEXT_END"}
    {"finish_reason":{"raw":"STOP","reason":"stop"},"type":"FINISH","usage":{"cache_read_tokens":8,"input_tokens":10,"output_tokens":10,"reasoning_tokens":6,"total_tokens":20}}
    "#);
    let mut large: DocumentData = serde_json::from_value(json!({"data": ""})).unwrap();
    large.source = MediaSource::Data(vec![0; 50 * 1024 * 1024 + 1].into());
    let request = ask(Message::user("").with_part(ContentPart::Document(large)));
    insta::assert_snapshot!(refused(&dialect(), &request), @"InvalidRequest: a document of 52428801 bytes is too large; the limit is 52428800");
}

#[test]
fn thoughts_and_signatures() {
    let request = ask(Message::user("Why?")).with_reasoning_effort(ReasoningEffort::Low);
    insta::assert_snapshot!(sent(&dialect(), &request), @r#"
    contents[] {"parts":[{"text":"Why?"}],"role":"user"}
    generationConfig {"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"}}
    "#);
    let older = Request::new(OLDER, [Message::user("Why?")]).with_reasoning_effort(ReasoningEffort::Low);
    insta::assert_snapshot!(sent_of(&dialect(), &older, &["generationConfig"]), @r#"generationConfig {"thinkingConfig":{"includeThoughts":true,"thinkingBudget":1024}}"#);
    let chunks = [
        chunk(json!([{"text": "Beca", "thought": true}])),
        chunk(json!([{"text": "use.", "thought": true}])),
        chunk(json!([{"text": "So"}])),
        chunk(json!([{"functionCall": {"name": "look", "args": {"at": 1}}, "thoughtSignature": "U0lHMQ=="}])),
        last(json!([{"text": "", "thoughtSignature": "U0lHMg=="}]), "STOP"),
    ];
    let (events, response) = streamed(&dialect(), &request, &chunks);
    insta::assert_snapshot!(events, @r#"
    {"id":"r1","model":"gemini-x","type":"STREAM_START"}
    {"reasoning_id":"0","type":"REASONING_START"}
    {"reasoning_delta":"Beca","reasoning_id":"0","type":"REASONING_DELTA"}
    {"reasoning_delta":"use.","reasoning_id":"0","type":"REASONING_DELTA"}
    {"reasoning_id":"0","thinking":{"redacted":false,"text":"Because."},"type":"REASONING_END"}
    {"text_id":"1","type":"TEXT_START"}
    {"delta":"So","text_id":"1","type":"TEXT_DELTA"}
    {"text_id":"1","type":"TEXT_END"}
    {"tool_call":{"id":"call_9e3779b97f4a7c1c","name":"look"},"type":"TOOL_CALL_START"}
    {"tool_call":{"arguments":{"at":1},"id":"call_9e3779b97f4a7c1c","name":"look","signature":"U0lHMQ==","type":"function"},"type":"TOOL_CALL_END"}
    {"text_id":"2","type":"TEXT_START"}
    {"signature":"U0lHMg==","text_id":"2","type":"TEXT_END"}
    {"finish_reason":{"raw":"STOP","reason":"tool_calls"},"type":"FINISH","usage":{"cache_read_tokens":8,"input_tokens":10,"output_tokens":10,"reasoning_tokens":6,"total_tokens":20}}
    "#);
    let id = response.tool_calls().next().unwrap().id.clone();
    let results = vec![ToolResult::new(id, "seen", false)];
    insta::assert_snapshot!(sent_of(&dialect(), &next(&request, &response, results), &["contents"]), @r#"
    contents[] {"parts":[{"text":"Why?"}],"role":"user"}
    contents[] {"parts":[{"text":"So"},{"functionCall":{"args":{"at":1},"id":"call_9e3779b97f4a7c1c","name":"look"},"thoughtSignature":"U0lHMQ=="},{"text":"","thoughtSignature":"U0lHMg=="}],"role":"model"}
    contents[] {"parts":[{"functionResponse":{"id":"call_9e3779b97f4a7c1c","name":"look","response":{"result":"seen"}}}],"role":"user"}
    contents[] {"parts":[{"text":"Go on."}],"role":"user"}
    "#);
    let complete = json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [
        {"text": "Because.", "thought": true},
        {"text": "So", "thoughtSignature": "U0lH"}]}}]});
    insta::assert_snapshot!(decoded(&dialect(), &request, &complete).0, @r#"
    {"raw":"STOP","reason":"stop"}
    {"kind":"THINKING","thinking":{"redacted":false,"text":"Because."}}
    {"kind":"TEXT","signature":"U0lH","text":"So"}
    "#);
}

#[test]
fn grammar_tools_become_ordinary_functions() {
    let schema = json!({"type": "object", "properties": {"input": {"type": "string"}}});
    let grammar = Grammar { syntax: "lark".into(), definition: "start: /.+/".into() };
    let tool = ToolDefinition::new("apply_patch", "Edits.", schema).unwrap().with_grammar(grammar);
    let request = ask(Message::user("Fix it.")).with_tools(vec![tool]);
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["tool"]), @r#"tools[] {"functionDeclarations":[{"description":"Edits.","name":"apply_patch","parametersJsonSchema":{"properties":{"input":{"type":"string"}},"type":"object"}}]}"#);
    let call =
        json!({"functionCall": {"name": "apply_patch", "args": {"input": "*"}}, "thoughtSignature": "U0lH"});
    insta::assert_snapshot!(streamed(&dialect(), &request, &[last(json!([call]), "STOP")]).0, @r#"
    {"id":"r1","model":"gemini-x","type":"STREAM_START"}
    {"tool_call":{"id":"call_9e3779b97f4a7c1c","name":"apply_patch"},"type":"TOOL_CALL_START"}
    {"tool_call":{"arguments":{"input":"*"},"id":"call_9e3779b97f4a7c1c","name":"apply_patch","signature":"U0lH","type":"function"},"type":"TOOL_CALL_END"}
    {"finish_reason":{"raw":"STOP","reason":"tool_calls"},"type":"FINISH","usage":{"cache_read_tokens":8,"input_tokens":10,"output_tokens":10,"reasoning_tokens":6,"total_tokens":20}}
    "#);
}

#[test]
fn server_tool_parts() {
    let request = ask(Message::user("Compute."))
        .with_provider_options("gemini", json!({"tools": [{"codeExecution": {}}]}));
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["tool"]), @r#"tools[] {"codeExecution":{}}"#);
    let code = json!({"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "U0lH"});
    let result = json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}});
    let mut end = last(json!([{"text": "One."}]), "STOP");
    end["candidates"][0]["groundingMetadata"] = json!({"webSearchQueries": ["x"]});
    let (events, response) = streamed(&dialect(), &request, &[chunk(json!([code, result])), end]);
    insta::assert_snapshot!(events, @r#"
    {"id":"r1","model":"gemini-x","type":"STREAM_START"}
    {"part":{"data":{"executableCode":{"code":"1","language":"PYTHON"},"thoughtSignature":"U0lH"},"kind":"executableCode"},"raw":{"executableCode":{"code":"1","language":"PYTHON"},"thoughtSignature":"U0lH"},"type":"PROVIDER_EVENT"}
    {"part":{"data":{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}},"kind":"codeExecutionResult"},"raw":{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}},"type":"PROVIDER_EVENT"}
    {"text_id":"0","type":"TEXT_START"}
    {"delta":"One.","text_id":"0","type":"TEXT_DELTA"}
    {"raw":{"groundingMetadata":{"webSearchQueries":["x"]}},"type":"PROVIDER_EVENT"}
    {"text_id":"0","type":"TEXT_END"}
    {"finish_reason":{"raw":"STOP","reason":"stop"},"type":"FINISH","usage":{"cache_read_tokens":8,"input_tokens":10,"output_tokens":10,"reasoning_tokens":6,"total_tokens":20}}
    "#);
    insta::assert_snapshot!(sent_of(&dialect(), &next(&request, &response, vec![]), &["contents"]), @r#"
    contents[] {"parts":[{"text":"Compute."}],"role":"user"}
    contents[] {"parts":[{"executableCode":{"code":"1","language":"PYTHON"},"thoughtSignature":"U0lH"},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}},{"text":"One."}],"role":"model"}
    contents[] {"parts":[{"text":"Go on."}],"role":"user"}
    "#);
}

#[test]
fn refusals_and_incomplete_responses() {
    let request = ask(Message::user("Do harm."));
    let ratings = json!([{"category": "HARM_CATEGORY_HARASSMENT", "probability": "HIGH"}]);
    let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT", "safetyRatings": ratings},
        "usageMetadata": {"promptTokenCount": 9}});
    insta::assert_snapshot!(streamed(&dialect(), &request, &[blocked]).0, @r#"
    {"type":"STREAM_START"}
    {"raw":{"safetyRatings":[{"category":"HARM_CATEGORY_HARASSMENT","probability":"HIGH"}]},"type":"PROVIDER_EVENT"}
    {"finish_reason":{"raw":"PROHIBITED_CONTENT","reason":"content_filter"},"type":"FINISH","usage":{"input_tokens":9,"output_tokens":0,"total_tokens":9}}
    "#);
    let mut stopped = last(json!([{"text": "No"}]), "SAFETY");
    stopped["candidates"][0]["safetyRatings"] = ratings;
    insta::assert_snapshot!(streamed(&dialect(), &request, &[stopped]).0, @r#"
    {"id":"r1","model":"gemini-x","type":"STREAM_START"}
    {"text_id":"0","type":"TEXT_START"}
    {"delta":"No","text_id":"0","type":"TEXT_DELTA"}
    {"raw":{"safetyRatings":[{"category":"HARM_CATEGORY_HARASSMENT","probability":"HIGH"}]},"type":"PROVIDER_EVENT"}
    {"text_id":"0","type":"TEXT_END"}
    {"finish_reason":{"raw":"SAFETY","reason":"content_filter"},"type":"FINISH","usage":{"cache_read_tokens":8,"input_tokens":10,"output_tokens":10,"reasoning_tokens":6,"total_tokens":20}}
    "#);
    insta::assert_snapshot!(streamed(&dialect(), &request, &[last(json!([{"text": "Half"}]), "MAX_TOKENS")]).0, @r#"
    {"id":"r1","model":"gemini-x","type":"STREAM_START"}
    {"text_id":"0","type":"TEXT_START"}
    {"delta":"Half","text_id":"0","type":"TEXT_DELTA"}
    {"text_id":"0","type":"TEXT_END"}
    {"finish_reason":{"raw":"MAX_TOKENS","reason":"length"},"type":"FINISH","usage":{"cache_read_tokens":8,"input_tokens":10,"output_tokens":10,"reasoning_tokens":6,"total_tokens":20}}
    "#);
    let mut malformed = last(json!([]), "MALFORMED_FUNCTION_CALL");
    malformed["candidates"][0]["finishMessage"] = "print(look(".into();
    insta::assert_snapshot!(streamed(&dialect(), &request, &[malformed]).0, @r#"
    {"id":"r1","model":"gemini-x","type":"STREAM_START"}
    {"raw":{"finishMessage":"print(look("},"type":"PROVIDER_EVENT"}
    {"finish_reason":{"raw":"MALFORMED_FUNCTION_CALL","reason":"error"},"type":"FINISH","usage":{"cache_read_tokens":8,"input_tokens":10,"output_tokens":10,"reasoning_tokens":6,"total_tokens":20}}
    "#);
}

#[test]
fn parallel_streamed_calls_and_results_with_images() {
    let request = ask(Message::user("Look.")).with_provider_options(
        "gemini",
        json!({"toolConfig": {"functionCallingConfig": {"streamFunctionCallArguments": true}}}),
    );
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["tool"]), @r#"toolConfig {"functionCallingConfig":{"streamFunctionCallArguments":true}}"#);
    let begin = json!({"functionCall": {"id": "c1", "name": "look", "willContinue": true}, "thoughtSignature": "U0lH"});
    let piece = |path: &str, text: &str| {
        json!({"functionCall": {"willContinue": true, "partialArgs": [
            {"jsonPath": path, "stringValue": text, "willContinue": true}]}})
    };
    let number = json!({"functionCall": {"willContinue": true, "partialArgs": [{"jsonPath": "$.lines[0]", "numberValue": 7}]}});
    let second = json!({"functionCall": {"id": "c2", "name": "look", "args": {"at": "there"}}});
    let chunks = [
        chunk(json!([begin])),
        chunk(json!([piece("$.at", "he")])),
        chunk(json!([piece("$.at", "re")])),
        chunk(json!([number, {"functionCall": {}}])),
        last(json!([second]), "STOP"),
    ];
    let (events, response) = streamed(&dialect(), &request, &chunks);
    insta::assert_snapshot!(events, @r#"
    {"id":"r1","model":"gemini-x","type":"STREAM_START"}
    {"tool_call":{"id":"c1","name":"look"},"type":"TOOL_CALL_START"}
    {"tool_call":{"arguments":{"at":"here","lines":[7]},"id":"c1","name":"look","signature":"U0lH","type":"function"},"type":"TOOL_CALL_END"}
    {"tool_call":{"id":"c2","name":"look"},"type":"TOOL_CALL_START"}
    {"tool_call":{"arguments":{"at":"there"},"id":"c2","name":"look","type":"function"},"type":"TOOL_CALL_END"}
    {"finish_reason":{"raw":"STOP","reason":"tool_calls"},"type":"FINISH","usage":{"cache_read_tokens":8,"input_tokens":10,"output_tokens":10,"reasoning_tokens":6,"total_tokens":20}}
    "#);
    let results = || {
        let seen =
            ToolResult::new("c1", "seen", false).with_image(ImageData::data(b"png".to_vec(), "image/png"));
        vec![seen, ToolResult::new("c2", "no such place", true)]
    };
    insta::assert_snapshot!(sent_of(&dialect(), &next(&request, &response, results()), &["contents"]), @r#"
    contents[] {"parts":[{"text":"Look."}],"role":"user"}
    contents[] {"parts":[{"functionCall":{"args":{"at":"here","lines":[7]},"id":"c1","name":"look"},"thoughtSignature":"U0lH"},{"functionCall":{"args":{"at":"there"},"id":"c2","name":"look"}}],"role":"model"}
    contents[] {"parts":[{"functionResponse":{"id":"c1","name":"look","parts":[{"inlineData":{"data":"cG5n","mimeType":"image/png"}}],"response":{"result":"seen"}}},{"functionResponse":{"id":"c2","name":"look","response":{"error":"no such place"}}}],"role":"user"}
    contents[] {"parts":[{"text":"Go on."}],"role":"user"}
    "#);
    // Earlier models accept images only beside results.
    let older = Request::new(OLDER, [Message::user("Look.")]);
    insta::assert_snapshot!(sent_of(&dialect(), &next(&older, &response, results()), &["contents"]), @r#"
    contents[] {"parts":[{"text":"Look."}],"role":"user"}
    contents[] {"parts":[{"functionCall":{"args":{"at":"here","lines":[7]},"id":"c1","name":"look"}},{"functionCall":{"args":{"at":"there"},"id":"c2","name":"look"}}],"role":"model"}
    contents[] {"parts":[{"functionResponse":{"id":"c1","name":"look","response":{"result":"seen"}}},{"functionResponse":{"id":"c2","name":"look","response":{"error":"no such place"}}},{"inlineData":{"data":"cG5n","mimeType":"image/png"}}],"role":"user"}
    contents[] {"parts":[{"text":"Go on."}],"role":"user"}
    "#);
}

#[test]
fn structured_output() {
    let mut request = ask(Message::user("Who?"));
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    request.response_format = Some(ResponseFormat::JsonSchema { json_schema: schema, strict: true });
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["generationConfig"]), @r#"generationConfig {"responseJsonSchema":{"properties":{"name":{"type":"string"}},"type":"object"},"responseMimeType":"application/json"}"#);
    insta::assert_snapshot!(streamed(&dialect(), &request, &[last(json!([{"text": "{\"name\": \"Ada\"}"}]), "STOP")]).0, @r#"
    {"id":"r1","model":"gemini-x","type":"STREAM_START"}
    {"text_id":"0","type":"TEXT_START"}
    {"delta":"{\"name\": \"Ada\"}","text_id":"0","type":"TEXT_DELTA"}
    {"text_id":"0","type":"TEXT_END"}
    {"finish_reason":{"raw":"STOP","reason":"stop"},"type":"FINISH","usage":{"cache_read_tokens":8,"input_tokens":10,"output_tokens":10,"reasoning_tokens":6,"total_tokens":20}}
    "#);
}

#[test]
fn options_safety_settings_and_cached_content() {
    let safety = json!([{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]);
    let request = ask(Message::user("Hi"))
        .with_provider_options("gemini", json!({"safetySettings": safety, "generationConfig": {"topK": 3}}));
    insta::assert_snapshot!(sent(&dialect(), &request), @r#"
    contents[] {"parts":[{"text":"Hi"}],"role":"user"}
    generationConfig {"topK":3}
    safetySettings[] {"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}
    "#);
    let rated = json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [{"text": "Hi."}]},
        "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "LOW"}]}]});
    insta::assert_snapshot!(streamed(&dialect(), &request, &[rated]).0, @r#"
    {"type":"STREAM_START"}
    {"text_id":"0","type":"TEXT_START"}
    {"delta":"Hi.","text_id":"0","type":"TEXT_DELTA"}
    {"text_id":"0","type":"TEXT_END"}
    {"finish_reason":{"raw":"STOP","reason":"stop"},"type":"FINISH","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}
    "#);

    let tool = ToolDefinition::new("look", "Looks.", json!({"type": "object", "properties": {}})).unwrap();
    let request = Request::new(MODEL, [Message::system("In the cache."), Message::user("Hi")])
        .with_tools(vec![tool])
        .with_provider_options("gemini", json!({"cachedContent": "cachedContents/1"}));
    insta::assert_snapshot!(sent(&dialect(), &request), @r#"
    cachedContent "cachedContents/1"
    contents[] {"parts":[{"text":"Hi"}],"role":"user"}
    "#);
    let counted = json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [{"text": "Hi."}]}}],
        "usageMetadata": {"promptTokenCount": 900, "cachedContentTokenCount": 890, "candidatesTokenCount": 2, "totalTokenCount": 902}});
    insta::assert_snapshot!(streamed(&dialect(), &request, &[counted]).0, @r#"
    {"type":"STREAM_START"}
    {"text_id":"0","type":"TEXT_START"}
    {"delta":"Hi.","text_id":"0","type":"TEXT_DELTA"}
    {"text_id":"0","type":"TEXT_END"}
    {"finish_reason":{"raw":"STOP","reason":"stop"},"type":"FINISH","usage":{"cache_read_tokens":890,"input_tokens":900,"output_tokens":2,"total_tokens":902}}
    "#);
    let odd = ask(Message::user("Hi")).with_provider_options("gemini", json!(true));
    assert_eq!(
        refused(&dialect(), &odd),
        "Configuration: provider_options.gemini must be an object; found true"
    );
}

#[test]
fn invalid_tools_are_refused_before_sending() {
    let tool = ToolDefinition::new("look", "Looks.", json!({"type": "object"})).unwrap();
    let request = ask(Message::user("Hi")).with_tools(vec![tool.clone(), tool]);
    assert_eq!(refused(&dialect(), &request), "InvalidRequest: two tools are named `look`");
}
