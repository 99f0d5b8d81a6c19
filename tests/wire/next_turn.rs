//! Decoded content is sent back in the next request: nothing that the provider requires may be lost.

use pintle_llm::{
    ContentPart, Message, OpaqueData, Origin, Request, Response, Role, ToolDefinition, ToolList, ToolResult,
};
use pintle_testkit::{Checker, Dialect};
use serde_json::{Value, json};

use crate::judge::{Difference, opaque, signatures};
use crate::manifest::Kind;
use crate::server::Call;

/// Returns the request that continues after this response.
pub(crate) fn request(model: &str, response: &Response) -> Request {
    let mut messages = vec![Message::user("Go on.")];
    messages.extend(earlier_uses(model, response));
    messages.push(response.message.clone());
    let results: Vec<ToolResult> =
        response.tool_calls().map(|call| ToolResult::new(call.id.as_str(), "done", false)).collect();
    let mut names: Vec<&str> = response.tool_calls().map(|call| call.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let schema = json!({"type": "object", "properties": {}});
    let tools: ToolList =
        names.iter().filter_map(|name| ToolDefinition::new(*name, "", schema.clone()).ok()).collect();
    if !results.is_empty() {
        messages.push(Message::tool_results(results));
    }
    messages.push(Message::user("And then?"));
    Request::new(model, messages).with_tools(tools)
}

/// Results of the provider's own tools may belong to uses in an earlier turn, which was recorded separately.
fn earlier_uses(model: &str, response: &Response) -> Option<Message> {
    let field = |part: &ContentPart, name: &str| {
        let data = opaque(part).map(|data| &data.data)?;
        data.get(name).and_then(Value::as_str).map(str::to_owned)
    };
    let content = &response.message.content;
    let here: Vec<String> = content.iter().filter_map(|part| field(part, "id")).collect();
    let answered = content.iter().filter_map(|part| field(part, "tool_use_id"));
    let uses: Vec<ContentPart> = answered
        .filter(|id| !here.contains(id))
        .map(|id| json!({"type": "server_tool_use", "id": id, "name": "a_tool", "input": {}}))
        .map(|data| ContentPart::Opaque(OpaqueData { kind: "server_tool_use".to_owned(), data }))
        .collect();
    let origin = response.message.origin.clone().unwrap_or_else(|| Origin::new("", model));
    (!uses.is_empty()).then(|| Message::new(Role::Assistant, uses).with_origin(origin))
}

/// Checks that the request contains the content of the response, and that the provider would accept it.
pub(crate) fn judge(kind: Kind, response: &Response, call: &Call) -> Vec<Difference> {
    let body = String::from_utf8_lossy(&call.body);
    let mut found = Vec::new();
    let redacted = response.message.content.iter().filter_map(ContentPart::as_thinking);
    let redacted = redacted.filter(|data| data.redacted).filter_map(|data| data.signature.as_deref());
    for kept in signatures(response).chain(redacted) {
        if !body.contains(&json!(kept).to_string()) {
            found.push(Difference::new("the next request", "the signature as it came", kept));
        }
    }
    for data in response.message.content.iter().filter_map(opaque) {
        if !body.contains(&json!(data.kind).to_string()) {
            found.push(Difference::new("the next request", "the provider's own item", &data.kind));
        }
    }
    // Items of remote MCP servers keep their ids, since approvals refer to them.
    let checker = Checker::new().with_item_ids(true);
    let violations = checker.check(dialect(kind), "POST", &call.path, &call.headers, &call.body);
    found.extend(
        violations.iter().map(|violation| Difference::new("the next request", "no violation", violation)),
    );
    found
}

fn dialect(kind: Kind) -> Dialect {
    match kind {
        Kind::OpenaiResponses => Dialect::OpenAiResponses,
        Kind::Anthropic => Dialect::AnthropicMessages,
        Kind::OpenaiChat => Dialect::ChatCompletions,
        Kind::Gemini => Dialect::Gemini,
    }
}
