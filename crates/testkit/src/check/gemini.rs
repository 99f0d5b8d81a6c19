//! The rules of the Gemini API.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::report::Kind::{Any, Count, Flag, List, Number, Object, OneOf, Text};
use super::report::{Field, Report, join, may, must, text};
use super::{media, tools};
use crate::dialect::gemini_target;

const REQUEST: &[Field] = &[
    must("contents", List),
    may("systemInstruction", Object),
    may("tools", List),
    may("toolConfig", Object),
    may("generationConfig", Object),
    may("safetySettings", List),
    may("cachedContent", Text),
    may("labels", Object),
    may("serviceTier", Text),
    may("store", Flag),
];

const CONTENT: &[Field] = &[may("role", OneOf(&["user", "model"])), must("parts", List)];

const SYSTEM: &[Field] = &[may("role", Text), must("parts", List)];

/// Data of a part, which has exactly one of these.
const DATA: &[&str] = &[
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];

const PART: &[Field] = &[
    may("text", Text),
    may("inlineData", Object),
    may("fileData", Object),
    may("functionCall", Object),
    may("functionResponse", Object),
    may("executableCode", Object),
    may("codeExecutionResult", Object),
    may("toolCall", Object),
    may("toolResponse", Object),
    may("thought", Flag),
    may("thoughtSignature", Text),
    may("videoMetadata", Object),
    may("mediaResolution", Object),
    may("partMetadata", Object),
];

const CALL: &[Field] = &[must("name", Text), may("args", Object), may("id", Text)];

const RESPONSE: &[Field] = &[
    must("name", Text),
    must("response", Object),
    may("id", Text),
    may("parts", List),
    may("willContinue", Flag),
    may("scheduling", Text),
];

const GENERATION: &[Field] = &[
    may("temperature", Number),
    may("topP", Number),
    may("topK", Number),
    may("candidateCount", Count),
    may("maxOutputTokens", Count),
    may("stopSequences", List),
    may("presencePenalty", Number),
    may("frequencyPenalty", Number),
    may("seed", Number),
    may("responseMimeType", Text),
    may("responseSchema", Object),
    may("responseJsonSchema", Any),
    may("responseModalities", List),
    may("responseLogprobs", Flag),
    may("logprobs", Count),
    may("thinkingConfig", Object),
    may("mediaResolution", Text),
    may("speechConfig", Object),
    may("imageConfig", Object),
    may("enableEnhancedCivicAnswers", Flag),
];

const THINKING: &[Field] = &[
    may("includeThoughts", Flag),
    may("thinkingBudget", Number),
    may("thinkingLevel", OneOf(&["MINIMAL", "LOW", "MEDIUM", "HIGH", "minimal", "low", "medium", "high"])),
];

const TOOL: &[Field] = &[
    may("functionDeclarations", List),
    may("googleSearch", Object),
    may("googleSearchRetrieval", Object),
    may("googleMaps", Object),
    may("codeExecution", Object),
    may("urlContext", Object),
    may("fileSearch", Object),
    may("computerUse", Object),
    may("mcpServers", List),
];

const DECLARATION: &[Field] = &[
    must("name", Text),
    may("description", Text),
    may("parameters", Object),
    may("parametersJsonSchema", Object),
    may("response", Object),
    may("responseJsonSchema", Object),
    may("behavior", Text),
];

/// Fields of the API's own schema type, a subset of OpenAPI. Full JSON Schema goes into `parametersJsonSchema`.
const SCHEMA: &[Field] = &[
    may("type", Text),
    may("format", Text),
    may("title", Text),
    may("description", Text),
    may("nullable", Flag),
    may("enum", List),
    may("items", Object),
    may("minItems", Any),
    may("maxItems", Any),
    may("properties", Object),
    may("propertyOrdering", List),
    may("required", List),
    may("minProperties", Any),
    may("maxProperties", Any),
    may("minLength", Any),
    may("maxLength", Any),
    may("minimum", Number),
    may("maximum", Number),
    may("pattern", Text),
    may("anyOf", List),
    may("example", Any),
    may("default", Any),
];

/// Maximum length of the name of a called function, in characters.
const MAX_CALL_NAME: usize = 128;

const CALLING_MODES: &[&str] = &["AUTO", "ANY", "NONE", "VALIDATED"];

/// A content, or a run of model contents: the official package sends one per stream chunk.
struct Turn<'a> {
    path: &'a str,
    of_model: bool,
    /// Parts with their paths.
    parts: Vec<(String, &'a Map<String, Value>)>,
}

impl<'a> Turn<'a> {
    /// Returns the objects under a name in the parts.
    fn members(&self, name: &str) -> Vec<&'a Map<String, Value>> {
        self.parts.iter().filter_map(|(_, part)| part.get(name)?.as_object()).collect()
    }
}

pub(super) fn check(path: &str, body: &Map<String, Value>, report: &mut Report) {
    report.fields("", body, REQUEST);
    let (bare, query) = path.split_once('?').unwrap_or((path, ""));
    let (model, stream) = gemini_target(bare).unwrap_or_default();
    if stream && !query.split('&').any(|pair| pair == "alt=sse") {
        report.invalid("path", "found streamGenerateContent without alt=sse, expected alt=sse in the query");
    }
    if let Some(system) = body.get("systemInstruction").and_then(Value::as_object) {
        report.fields("systemInstruction", system, SYSTEM);
        for (path, part) in report.objects("systemInstruction", system, "parts") {
            check_part(&path, part, report);
        }
    }
    check_tools(body, report);
    check_generation(model, body, report);
    let contents = report.objects("", body, "contents");
    if body.get("contents").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        report.invalid("contents", "found an empty list, expected at least one content");
    }
    for (path, content) in &contents {
        check_content(path, content, report);
    }
    let turns = turns(&contents);
    check_turns(&turns, report);
    if model.starts_with("gemini-3") {
        check_signatures(&turns, report);
    }
}

fn check_tools(body: &Map<String, Value>, report: &mut Report) {
    let mut names = Vec::new();
    for (path, tool) in report.objects("", body, "tools") {
        report.fields(&path, tool, TOOL);
        for (path, declaration) in report.objects(&path, tool, "functionDeclarations") {
            check_declaration(&path, declaration, report);
            names.push(text(declaration, "name"));
        }
    }
    tools::unique("tools", names.iter().copied(), report);
    let Some(config) = body.get("toolConfig").and_then(Value::as_object) else {
        return;
    };
    let known = [
        may("functionCallingConfig", Object),
        may("retrievalConfig", Object),
        may("includeServerSideToolInvocations", Flag),
    ];
    report.fields("toolConfig", config, &known);
    let path = "toolConfig.functionCallingConfig";
    let Some(calling) = config.get("functionCallingConfig").and_then(Value::as_object) else {
        return;
    };
    report.fields(path, calling, &[may("mode", OneOf(CALLING_MODES)), may("allowedFunctionNames", List)]);
    for name in calling.get("allowedFunctionNames").and_then(Value::as_array).into_iter().flatten() {
        if !name.as_str().is_some_and(|name| names.contains(&name)) {
            report.invalid(
                join(path, "allowedFunctionNames"),
                format!("found {name}, expected a declared function"),
            );
        }
        if !matches!(text(calling, "mode"), "ANY" | "VALIDATED") {
            report.invalid(join(path, "allowedFunctionNames"), "expected mode ANY or VALIDATED beside it");
        }
    }
}

fn check_declaration(path: &str, declaration: &Map<String, Value>, report: &mut Report) {
    report.fields(path, declaration, DECLARATION);
    tools::name(path, declaration, report);
    if declaration.contains_key("parameters") && declaration.contains_key("parametersJsonSchema") {
        report.invalid(path, "found parameters and parametersJsonSchema, expected one of them");
    }
    tools::schema(path, declaration, "parametersJsonSchema", report);
    tools::schema(path, declaration, "parameters", report);
    if let Some(schema) = declaration.get("parameters").and_then(Value::as_object) {
        check_schema(&join(path, "parameters"), schema, report);
    }
}

/// Checks the schema of a response or of parameters. Full JSON Schema has separate fields.
fn check_schema(path: &str, schema: &Map<String, Value>, report: &mut Report) {
    report.fields(path, schema, SCHEMA);
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = join(&join(path, "properties"), name);
        if let Some(property) = report.object(&path, property) {
            check_schema(&path, property, report);
        }
    }
    if let Some(items) = schema.get("items").and_then(Value::as_object) {
        check_schema(&join(path, "items"), items, report);
    }
    for (path, alternative) in report.objects(path, schema, "anyOf") {
        check_schema(&path, alternative, report);
    }
    if !schema.contains_key("type") && !schema.contains_key("anyOf") {
        report.invalid(join(path, "type"), "field is required, or anyOf in its place");
    }
    tools::required(path, schema, report);
    if schema.get("enum").and_then(Value::as_array).is_some_and(|words| !words.iter().all(Value::is_string)) {
        report.invalid(join(path, "enum"), "expected strings only");
    }
}

fn check_generation(model: &str, body: &Map<String, Value>, report: &mut Report) {
    let Some(config) = body.get("generationConfig").and_then(Value::as_object) else {
        return;
    };
    report.fields("generationConfig", config, GENERATION);
    let schemas = ["responseSchema", "responseJsonSchema"].map(|name| config.contains_key(name));
    if schemas == [true, true] {
        report
            .invalid("generationConfig", "found responseSchema and responseJsonSchema, expected one of them");
    }
    if schemas != [false, false]
        && !matches!(text(config, "responseMimeType"), "application/json" | "text/x.enum")
    {
        let message = "expected application/json beside a response schema";
        report.invalid("generationConfig.responseMimeType", message);
    }
    if let Some(schema) = config.get("responseSchema").and_then(Value::as_object) {
        check_schema("generationConfig.responseSchema", schema, report);
    }
    let Some(thinking) = config.get("thinkingConfig").and_then(Value::as_object) else {
        return;
    };
    let path = "generationConfig.thinkingConfig";
    report.fields(path, thinking, THINKING);
    if thinking.contains_key("thinkingBudget") && thinking.contains_key("thinkingLevel") {
        report.invalid(path, "found thinkingBudget and thinkingLevel, expected one of them");
    }
    if thinking.contains_key("thinkingLevel")
        && (model.starts_with("gemini-2") || model.starts_with("gemini-1"))
    {
        report.invalid(
            join(path, "thinkingLevel"),
            "expected thinkingBudget: the model has no thinking levels",
        );
    }
}

fn check_content(path: &str, content: &Map<String, Value>, report: &mut Report) {
    report.fields(path, content, CONTENT);
    if content.get("parts").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        report.invalid(join(path, "parts"), "found an empty list, expected at least one part");
    }
    let of_model = text(content, "role") == "model";
    for (path, part) in report.objects(path, content, "parts") {
        check_part(&path, part, report);
        for (name, belongs) in
            [("functionCall", of_model), ("thought", of_model), ("functionResponse", !of_model)]
        {
            if part.contains_key(name) && !belongs {
                let role = if of_model { "user" } else { "model" };
                report.invalid(
                    join(&path, name),
                    format!("found it in the wrong content, expected role {role:?}"),
                );
            }
        }
    }
}

fn check_part(path: &str, part: &Map<String, Value>, report: &mut Report) {
    report.fields(path, part, PART);
    let held: Vec<&str> = DATA.iter().copied().filter(|name| part.contains_key(*name)).collect();
    if held.len() != 1 {
        let found = if held.is_empty() { "none".to_owned() } else { held.join(" and ") };
        report.invalid(path, format!("found {found}, expected exactly one of {}", DATA.join(", ")));
    }
    if let Some(call) = part.get("functionCall").and_then(Value::as_object) {
        let path = join(path, "functionCall");
        report.fields(&path, call, CALL);
        check_called(&path, call, report);
    }
    if let Some(response) = part.get("functionResponse").and_then(Value::as_object) {
        let path = join(path, "functionResponse");
        report.fields(&path, response, RESPONSE);
        check_called(&path, response, report);
        for (path, part) in report.objects(&path, response, "parts") {
            report.fields(&path, part, &[may("inlineData", Object), may("fileData", Object)]);
            check_media(&path, part, report);
        }
    }
    check_media(path, part, report);
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(&byte);
    if !text(part, "thoughtSignature").bytes().all(base64) {
        report.invalid(join(path, "thoughtSignature"), "expected base64");
    }
}

fn check_called(path: &str, call: &Map<String, Value>, report: &mut Report) {
    let legal = |character: char| tools::letters(character) || character == '.' || character == ':';
    tools::called(path, call, MAX_CALL_NAME, legal, report);
    if text(call, "name").starts_with(|first: char| !first.is_ascii_alphabetic() && first != '_') {
        report.invalid(join(path, "name"), "expected a letter or _ at the beginning");
    }
}

fn check_media(path: &str, part: &Map<String, Value>, report: &mut Report) {
    if let Some(data) = part.get("inlineData").and_then(Value::as_object) {
        let path = join(path, "inlineData");
        report.fields(&path, data, &[must("mimeType", Text), must("data", Text)]);
        media::base64(&join(&path, "data"), text(data, "data"), report);
    }
    if let Some(file) = part.get("fileData").and_then(Value::as_object) {
        report.fields(&join(path, "fileData"), file, &[may("mimeType", Text), must("fileUri", Text)]);
    }
}

fn turns<'a>(contents: &'a [(String, &'a Map<String, Value>)]) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for (path, content) in contents {
        let of_model = text(content, "role") == "model";
        let parts = content.get("parts").and_then(Value::as_array).into_iter().flatten().enumerate();
        let parts =
            parts.filter_map(|(index, part)| Some((format!("{path}.parts[{index}]"), part.as_object()?)));
        match turns.last_mut().filter(|last| of_model && last.of_model) {
            Some(last) => last.parts.extend(parts),
            None => turns.push(Turn { path, of_model, parts: parts.collect() }),
        }
    }
    turns
}

/// Checks that the conversation starts with the user, and that the content after calls answers exactly these calls.
fn check_turns(turns: &[Turn<'_>], report: &mut Report) {
    if turns.first().is_some_and(|turn| turn.of_model) {
        report
            .invalid("contents[0].role", "found \"model\", expected the conversation to begin with \"user\"");
    }
    for (index, turn) in turns.iter().enumerate() {
        check_ids(turn, report);
        let answered = turns.get(index + 1).is_some_and(|next| !next.members("functionResponse").is_empty());
        if !turn.members("functionCall").is_empty() && !answered {
            report.invalid(turn.path, "found function calls without function responses in the next content");
        }
        let responses = turn.members("functionResponse");
        if !responses.is_empty() {
            let before = index.checked_sub(1).and_then(|before| turns.get(before));
            let calls = before.map(|before| before.members("functionCall")).unwrap_or_default();
            check_responses(turn.path, &calls, &responses, report);
        }
    }
}

/// Checks that calls of one turn have distinct ids, because responses could not be matched otherwise.
fn check_ids(turn: &Turn<'_>, report: &mut Report) {
    let mut seen = HashSet::new();
    for call in turn.members("functionCall") {
        let id = text(call, "id");
        if !id.is_empty() && !seen.insert(id) {
            report.invalid(
                turn.path,
                format!("found the id {id:?} on two function calls, expected unique ids"),
            );
        }
    }
}

fn check_responses(
    path: &str,
    calls: &[&Map<String, Value>],
    responses: &[&Map<String, Value>],
    report: &mut Report,
) {
    if calls.len() != responses.len() {
        let message = format!(
            "number of function response parts ({}) must equal the number of function call parts of the turn before ({})",
            responses.len(),
            calls.len()
        );
        report.invalid(path, message);
        return;
    }
    for (position, response) in responses.iter().enumerate() {
        let id = text(response, "id");
        let by_id = calls.iter().find(|call| !id.is_empty() && text(call, "id") == id);
        let Some(call) = by_id.or_else(|| calls.get(position)) else {
            continue;
        };
        let field = format!("{path}: functionResponse {position}");
        if text(call, "name") != text(response, "name") {
            let message =
                format!("found name {:?}, expected {:?}", text(response, "name"), text(call, "name"));
            report.invalid(&field, message);
        }
        // In this API an empty id equals a missing one.
        if !text(call, "id").is_empty() && by_id.is_none() {
            report.invalid(
                &field,
                format!("found id {id:?}, expected the id of its call, {:?}", text(call, "id")),
            );
        }
    }
}

/// Checks that the first call of each step of the current turn has its signature.
fn check_signatures(turns: &[Turn<'_>], report: &mut Report) {
    let is_prompt = |turn: &Turn<'_>| !turn.of_model && turn.members("functionResponse").is_empty();
    let current = turns.iter().rposition(is_prompt).unwrap_or(0);
    for turn in turns.iter().skip(current) {
        let first = turn.parts.iter().find(|(_, part)| part.contains_key("functionCall"));
        if let Some((path, part)) = first.filter(|(_, part)| text(part, "thoughtSignature").is_empty()) {
            let name =
                part.get("functionCall").and_then(Value::as_object).map_or("", |call| text(call, "name"));
            let message =
                format!("function call {name:?} is missing a thought_signature in functionCall parts");
            report.invalid(path, message);
        }
    }
}
