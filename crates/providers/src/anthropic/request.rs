//! Encoding of requests.

use bytes::Bytes;
use pintle_llm::{Error, Request, ToolChoice, ToolDefinition, Warning};
use serde_json::{Map, Value, json};

use super::cache_points::{self, auto_cache, has_cache_point, mark, mark_value};
use super::conversation::Conversation;
use super::{NAME, format, reasoning, sampling};
use crate::body::{Fields, fragment, joined, merge_options};
use crate::dialect::HttpRequest;
use crate::options::{invalid_option, list_option, options_for};
use crate::quirks;
use crate::secret::Secret;
use crate::tool_names::check_tools;

/// The API requires a limit (client specification, section 7.3).
const DEFAULT_MAX_TOKENS: u64 = 4_096;

const VERSION: &str = "2023-06-01";

/// Options that this adapter applies itself.
const HANDLED: [&str; 4] = ["beta_headers", "auto_cache", "tools", quirks::OPTION];

/// Encodes a request. With `unsigned_thinking`, thinking without a signature is sent back.
pub(super) fn encode(
    request: &Request,
    stream: bool,
    api_key: &Secret,
    unsigned_thinking: bool,
) -> Result<HttpRequest, Error> {
    let none = Map::new();
    check_tools(&request.tools, NAME)?;
    let options = options_for(request, NAME)?.unwrap_or(&none);
    let cache = auto_cache(options)?;
    let conversation = Conversation::new(request, unsigned_thinking)?;
    let newest = conversation.newest()?;

    let mut fields = parameters(request, stream);
    system(&mut fields, request, &conversation, cache);
    // The API reads tools first, so a cache point within the system prompt covers them. It allows four points.
    let cacheable_parts = conversation.cacheable_parts(request);
    let has_manual_points = tools(&mut fields, request, options, cache && cacheable_parts.is_none())?;
    let open_without_thinking = conversation.is_open_without_thinking(&newest);
    set_thinking_and_sampling(&mut fields, request, options, open_without_thinking)?;
    merge_options(&mut fields, NAME, options, &HANDLED, "messages")?;

    let mut betas = beta_headers(options)?;
    let caching = (cache || has_manual_points || has_cache_point(&fields)).then_some(cache_points::BETA);
    for needed in caching.into_iter().chain(reasoning::beta(&fields, &request.model)) {
        if !betas.contains(&needed) {
            betas.push(needed);
        }
    }
    let mut headers =
        vec![("x-api-key", api_key.expose().to_owned()), ("anthropic-version", VERSION.to_owned())];
    if !betas.is_empty() {
        headers.push(("anthropic-beta", betas.join(",")));
    }
    let mut body = fields.into_body("messages");
    conversation.write(&newest, cache, &mut body);
    body.write(b"]}");
    let newly_stable = conversation.newly_stable(&newest);
    conversation.memoise(request, newly_stable);
    Ok(HttpRequest { path: "/v1/messages".into(), headers, body })
}

/// Returns the warnings about parameters that were dropped because the API rejects them.
pub(super) fn warnings(request: &Request, unsigned_thinking: bool) -> Vec<Warning> {
    if request.temperature.is_none() && request.top_p.is_none() {
        return Vec::new();
    }
    let none = Map::new();
    let options = request.options_of(NAME).unwrap_or(&none);
    // The request has been encoded before, so this cannot fail, and its items have their encoding memoised.
    let decided = Conversation::new(request, unsigned_thinking).and_then(|conversation| {
        let newest = conversation.newest()?;
        let open_without_thinking = conversation.is_open_without_thinking(&newest);
        let newly_stable = conversation.newly_stable(&newest);
        conversation.memoise(request, newly_stable);
        set_thinking_and_sampling(&mut Map::new(), request, options, open_without_thinking)
    });
    decided.unwrap_or_default()
}

/// Sets thinking from the options or the effort, and the sampling parameters that are legal with it.
fn set_thinking_and_sampling(
    fields: &mut Map<String, Value>,
    request: &Request,
    options: &Map<String, Value>,
    open_without_thinking: bool,
) -> Result<Vec<Warning>, Error> {
    let max_tokens = request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
    fields.insert("max_tokens".into(), max_tokens.into());
    if !options.contains_key("thinking") {
        reasoning::apply(fields, request, max_tokens, open_without_thinking)?;
    }
    if let Some(format) = format::enforced(request) {
        let config = fields.entry("output_config").or_insert_with(|| json!({}));
        if let Some(config) = config.as_object_mut() {
            config.insert("format".into(), format);
        }
    }
    let thinking = options.get("thinking").or_else(|| fields.get("thinking")).cloned();
    Ok(sampling::apply(fields, request, thinking.as_ref()))
}

fn parameters(request: &Request, stream: bool) -> Fields {
    let mut fields = Fields::default();
    fields.insert("model".into(), request.model.as_str().into());
    if stream {
        fields.insert("stream".into(), true.into());
    }
    if !request.stop_sequences.is_empty() {
        fields.insert("stop_sequences".into(), request.stop_sequences.clone().into());
    }
    // The API accepts this key only.
    if let Some(user) = request.metadata.get("user_id") {
        fields.insert("metadata".into(), json!({"user_id": user}));
    }
    fields
}

fn system(fields: &mut Fields, request: &Request, conversation: &Conversation, cache: bool) {
    let mut blocks: Vec<Bytes> = conversation.system().cloned().collect();
    if let Some(text) = format::instruction(request) {
        blocks.push(fragment(&json!({"type": "text", "text": text})));
    }
    if cache {
        blocks.last_mut().into_iter().for_each(mark);
        // The blocks start with the blocks of the first system message, without blank parts.
        let cacheable_parts = conversation.cacheable_parts(request);
        if let Some(index) = cacheable_parts.and_then(|count| count.checked_sub(1)) {
            let last = blocks.len().saturating_sub(1);
            blocks.get_mut(index).filter(|_| index < last).into_iter().for_each(mark);
        }
    }
    if !blocks.is_empty() {
        fields.set_serialised("system", joined("[", &blocks, "]"));
    }
}

/// Memoised encoding of one of the request's tools.
struct EncodedTool {
    json: Bytes,
    has_cache_point: bool,
}

fn encoded(tool: &ToolDefinition) -> EncodedTool {
    let schema = tool.parameters_without_choices();
    let value = json!({"name": tool.name, "description": tool.description, "input_schema": schema});
    EncodedTool { json: fragment(&value), has_cache_point: value.as_object().is_some_and(has_cache_point) }
}

/// Sets the tools, with a cache point on the last one if `mark_last`. Returns whether the caller has set a cache point in a
/// tool.
fn tools(
    fields: &mut Fields,
    request: &Request,
    options: &Map<String, Value>,
    mark_last: bool,
) -> Result<bool, Error> {
    // In this dialect, sending no tools is how calls are forbidden (specification, section 5.3).
    if request.tool_choice == Some(ToolChoice::None) {
        return Ok(false);
    }
    let own = request.tools.iter().map(|item| item.encoding(NAME, "", encoded));
    let (mut own, mut manual_points): (Vec<Bytes>, Vec<bool>) =
        own.map(|tool| (tool.json.clone(), tool.has_cache_point)).unzip();
    let mut more = list_option(Some(options), NAME, "tools")?.to_vec();
    manual_points.extend(more.iter().filter_map(Value::as_object).map(has_cache_point));
    if own.is_empty() && more.is_empty() {
        return Ok(false);
    }
    if mark_last {
        match more.last_mut() {
            Some(last) => mark_value(last),
            None => own.last_mut().into_iter().for_each(mark),
        }
    }
    let more: Vec<Bytes> = more.iter().map(fragment).collect();
    fields.set_serialised("tools", joined("[", own.iter().chain(&more), "]"));
    let choice = match &request.tool_choice {
        None | Some(ToolChoice::None) => None,
        Some(ToolChoice::Auto) => Some(json!({"type": "auto"})),
        Some(ToolChoice::Required) => Some(json!({"type": "any"})),
        Some(ToolChoice::Named(name)) => Some(json!({"type": "tool", "name": name})),
    };
    fields.extend(choice.map(|choice| ("tool_choice".to_owned(), choice)));
    Ok(manual_points.contains(&true))
}

fn beta_headers(options: &Map<String, Value>) -> Result<Vec<&str>, Error> {
    const OPTION: &str = "beta_headers";
    let names = list_option(Some(options), NAME, OPTION)?;
    names
        .iter()
        .map(|name| name.as_str().ok_or_else(|| invalid_option(NAME, OPTION, "a list of strings", name)))
        .collect()
}
