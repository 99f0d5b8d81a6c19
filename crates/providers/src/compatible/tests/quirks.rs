//! Rules of servers and models that the dialect does not have.

use pintle_llm::{Message, Origin, Request, Response, Role, ThinkingData, ToolCall, ToolResult};
use serde_json::{Value, json};

use super::{chunk, dialect};
use crate::compatible::{Chat, OpenAiCompatible};
use crate::dialect::Dialect as _;
use crate::tests::snapshot::{decoded, next, streamed};

fn on_host(host: &str) -> Chat {
    Chat { host: host.to_owned(), ..dialect() }
}

#[test]
fn the_host_is_that_of_the_parsed_base_url() {
    let adapter = OpenAiCompatible::builder("https://user:password@API.mistral.ai:443/v1").build().unwrap();
    assert_eq!(adapter.http.dialect().host, "api.mistral.ai");
    OpenAiCompatible::builder("nonsense").build().unwrap_err();
}

fn body(dialect: &Chat, request: &Request) -> Value {
    serde_json::from_slice(&dialect.encode(request, true).unwrap().body.to_vec()).unwrap()
}

fn messages(dialect: &Chat, request: &Request) -> Vec<Value> {
    body(dialect, request)["messages"].as_array().unwrap().clone()
}

/// Decodes a streamed response with these deltas.
fn response(dialect: &Chat, request: &Request, deltas: &[Value]) -> Response {
    let end = chunk(&json!({}), Some("stop"));
    let chunks = deltas.iter().map(|delta| chunk(delta, None)).chain([end]);
    let chunks: Vec<Value> = chunks.map(|text| serde_json::from_str(&text).unwrap()).collect();
    streamed(dialect, request, &chunks).1
}

fn call(id: &str) -> Value {
    json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": "look", "arguments": "{}"}}]})
}

fn result(id: &str) -> Vec<ToolResult> {
    vec![ToolResult::new(id, "seen", false)]
}

/// Returns the `reasoning_content` of each assistant message.
fn reasoning_contents(messages: &[Value]) -> Vec<Option<&str>> {
    let assistant = messages.iter().filter(|message| message["role"] == "assistant");
    assistant.map(|message| message.get("reasoning_content").map(|text| text.as_str().unwrap())).collect()
}

#[test]
fn reasoning_content_is_on_each_message_from_the_first_one_with_it() {
    let dialect = dialect();
    let start = Request::new("m", [Message::user("Look.")]);
    let plain = response(&dialect, &start, &[call("c0")]);
    let second = next(&start, &plain, result("c0"));
    let reasoned = response(&dialect, &second, &[json!({"reasoning_content": "Hm."}), call("c1")]);
    let third = next(&second, &reasoned, result("c1"));
    assert_eq!(reasoning_contents(&messages(&dialect, &third)), [None, Some("Hm.")]);
    let unreasoned = response(&dialect, &third, &[json!({"reasoning_content": ""}), call("c2")]);
    let fourth = next(&third, &unreasoned, result("c2"));
    let answer = [json!({"reasoning_content": "So"}), json!({"content": "It is."})];
    let mut fifth = next(&fourth, &response(&dialect, &fourth, &answer), Vec::new());
    let foreign = Message::assistant("Else.").with_origin(Origin::new("openai", "gpt"));
    fifth.messages.push(foreign.into());
    fifth.messages.push(Message::user("And now?").into());
    let expected = [None, Some("Hm."), Some(""), Some("So"), Some("")];
    assert_eq!(reasoning_contents(&messages(&dialect, &fifth)), expected);
    // The same without the encodings of earlier requests.
    let texts: Vec<Message> = fifth.messages.iter().map(|item| item.message().clone()).collect();
    assert_eq!(messages(&dialect, &Request::new("m", texts)), messages(&dialect, &fifth));
    // Another model has other rules.
    let mut other = fifth;
    other.model = "other".into();
    assert_eq!(reasoning_contents(&messages(&dialect, &other)), [None; 5]);
}

#[test]
fn servers_require_or_refuse_reasoning_content() {
    let thinking = ThinkingData::new("Hm.").with_raw(json!({"field": "reasoning_content"}));
    let history = |model: &str| {
        let origin = Origin::new("local", model);
        let reasoned =
            Message::new(Role::Assistant, vec![thinking.clone().into(), pintle_llm::ContentPart::text("b")]);
        [
            Message::user("a"),
            Message::assistant("x"),
            Message::user("c"),
            reasoned.with_origin(origin),
            Message::user("d"),
        ]
    };
    for (host, model, expected) in [
        ("api.deepseek.com", "deepseek-chat", [Some(""), Some("Hm.")]),
        ("api.moonshot.cn", "kimi-k2-thinking", [Some(""), Some("Hm.")]),
        ("gateway.example", "deepseek/deepseek-v4-pro", [Some(""), Some("Hm.")]),
        ("gateway.example", "llama", [None, Some("Hm.")]),
        ("api.groq.com", "openai/gpt-oss-120b", [None, None]),
        ("api.groq.com", "moonshotai/kimi-k2-thinking", [None, None]),
        ("api.mistral.ai", "magistral-medium", [None, None]),
    ] {
        let request = Request::new(model, history(model));
        let sent = messages(&on_host(host), &request);
        assert_eq!(reasoning_contents(&sent), expected, "{model} on {host}");
    }
    // The option decides over host and model.
    for (policy, expected) in [("always", [Some(""), Some("Hm.")]), ("never", [None, None])] {
        let options = json!({"quirks": {"reasoning_content": policy}});
        let request = Request::new("m", history("m")).with_provider_options("local", options);
        let sent = body(&dialect(), &request);
        assert_eq!(reasoning_contents(sent["messages"].as_array().unwrap()), expected, "{policy}");
        assert_eq!(sent.get("quirks"), None);
    }
}

#[test]
fn extra_content_of_a_call_returns_with_it() {
    let extra = json!({"google": {"thought_signature": "c2lnbmF0dXJl"}});
    let skip = json!({"google": {"thought_signature": "skip_thought_signature_validator"}});
    let mut first = call("c1");
    first["tool_calls"][0]["extra_content"] = extra.clone();
    let second = json!({"tool_calls": [{"index": 1, "id": "c2", "extra_content": null, "function": {"name": "look", "arguments": "{}"}}]});
    let google = "generativelanguage.googleapis.com";
    let extras = |dialect: &Chat, request: &Request| -> Vec<Value> {
        let sent = messages(dialect, request);
        let calls = sent.iter().filter_map(|message| message["tool_calls"].as_array()).flatten();
        calls.map(|call| call.get("extra_content").cloned().unwrap_or_default()).collect()
    };
    for host in ["gateway.example", google] {
        let dialect = on_host(host);
        let request = Request::new("gemini-3-flash-preview", [Message::user("Look.")]);
        let streamed = response(&dialect, &request, &[first.clone(), second.clone()]);
        let calls = [first["tool_calls"][0].clone(), second["tool_calls"][0].clone()];
        let complete =
            json!({"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls": calls}}]});
        let (_, complete) = decoded(&dialect, &request, &complete);
        for reply in [streamed, complete] {
            let results = [result("c1"), result("c2")].concat();
            let following = next(&request, &reply, results);
            assert_eq!(extras(&dialect, &following), [extra.clone(), Value::Null], "{host}");
            // Another model must not get the signature. Google's endpoint requires one for Gemini 3.
            let mut switched = following;
            switched.model = "gemini-3-pro".into();
            let expected = if host == google { skip.clone() } else { Value::Null };
            assert_eq!(extras(&dialect, &switched), [expected, Value::Null], "{host}");
        }
    }
}

#[test]
fn the_output_limit_has_one_name() {
    let (limit, completion) = ("max_tokens", "max_completion_tokens");
    for (host, model, options, expected) in [
        ("", "llama", json!({}), json!({limit: 9})),
        ("", "gpt-5.2", json!({}), json!({completion: 9})),
        ("", "openai/o3-mini", json!({}), json!({completion: 9})),
        ("me.openai.azure.com", "deployment", json!({}), json!({completion: 9})),
        ("api.groq.com", "llama", json!({}), json!({completion: 9})),
        ("openrouter.ai", "openai/gpt-5.2", json!({}), json!({limit: 9})),
        ("", "deployment", json!({completion: 5}), json!({completion: 5})),
        ("", "gpt-5.2", json!({limit: 5}), json!({limit: 5})),
        ("", "gpt-5.2", json!({completion: 5}), json!({completion: 5})),
        ("", "deployment", json!({"quirks": {"output_limit": completion}}), json!({completion: 9})),
    ] {
        let request = Request::new(model, [Message::user("x")])
            .with_max_tokens(9)
            .with_provider_options("local", options.clone());
        let mut sent = body(&on_host(host), &request);
        sent.as_object_mut().unwrap().retain(|name, _| [limit, completion].contains(&name.as_str()));
        assert_eq!(sent, expected, "{model} on {host:?} with {options}");
    }
}

#[test]
fn mistral_gets_its_ids_and_its_order_of_roles() {
    let image = pintle_llm::ImageData::data(b"png".to_vec(), "image/png");
    let reply = |id: &str| Message::new(Role::Assistant, vec![ToolCall::from_raw(id, "look", "{}").into()]);
    let history = [
        Message::user("a"),
        reply("call_1"),
        Message::tool_result("call_1", "x", false),
        Message::user("Steered."),
        reply("abcDEF123"),
        Message::tool_results(vec![ToolResult::new("abcDEF123", "y", false).with_image(image)]),
        Message::assistant("Seen."),
        Message::user("b"),
        reply("call_2"),
        Message::tool_result("call_2", "z", false),
    ];
    for (host, model) in [("api.mistral.ai", "mistral-large-latest"), ("", "mistralai/Devstral-Small")] {
        let dialect = on_host(host);
        // A growing conversation has the same bytes as a new one.
        let mut grown = Request::new(model, Vec::<Message>::new());
        for message in &history {
            grown.messages.push(message.clone().into());
            let new: Vec<Message> = grown.messages.iter().map(|item| item.message().clone()).collect();
            assert_eq!(messages(&dialect, &grown), messages(&dialect, &Request::new(model, new)), "{model}");
        }
        let sent = messages(&dialect, &grown);
        let roles: Vec<&str> = sent.iter().map(|message| message["role"].as_str().unwrap()).collect();
        let expected =
            "user assistant tool assistant user assistant tool assistant user assistant user assistant tool";
        assert_eq!(roles.join(" "), expected, "{model}");
        for pair in sent.windows(2) {
            assert!(pair[0]["role"] != "tool" || pair[1]["role"] != "user", "{pair:?}");
        }
        let called = sent.iter().filter_map(|message| message["tool_calls"][0]["id"].as_str());
        let answered = sent.iter().filter_map(|message| message["tool_call_id"].as_str());
        let (called, answered): (Vec<&str>, Vec<&str>) = (called.collect(), answered.collect());
        assert_eq!((called.len(), &called), (3, &answered), "{model}");
        assert_eq!(called[1], "abcDEF123");
        assert!(called.iter().all(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())));
        let has_stream_options = body(&dialect, &grown).get("stream_options").is_some();
        assert_eq!(has_stream_options, host.is_empty(), "{model}");
    }
    // Results at the end of a conversation are followed by their image only.
    let request = Request::new("mistral-small", history[..6].to_vec());
    let sent = messages(&on_host("api.mistral.ai"), &request);
    let last: Vec<&str> =
        sent.iter().rev().take(3).map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(last, ["user", "assistant", "tool"]);
}

#[test]
fn reasoning_in_the_content_is_neither_answer_nor_sent_back() {
    let cases: [(&str, &[&str], Option<&str>, &str); 6] = [
        ("m", &["<think>Hm.</think>", "So."], Some("Hm."), "So."),
        ("m", &["<th", "ink>\nH", "m.</t", "hink>\n\nSo", "."], Some("Hm."), "So."),
        (
            "m",
            &["The tag <think>", " opens it, </think> closes it."],
            None,
            "The tag <think> opens it, </think> closes it.",
        ),
        ("m", &["Hm.\n</think>\n\nSo."], None, "Hm.\n</think>\n\nSo."),
        ("deepseek-r1:8b", &["Hm.", "</thi", "nk>\n\nSo."], Some("Hm."), "So."),
        ("deepseek-r1:8b", &["No ", "tag."], None, "No tag."),
    ];
    let dialect = dialect();
    for (model, pieces, reasoning, answer) in cases {
        let request = Request::new(model, [Message::user("Why?")]);
        let deltas: Vec<Value> = pieces.iter().map(|piece| json!({"content": piece})).collect();
        let streamed = response(&dialect, &request, &deltas);
        let message = json!({"content": pieces.concat()});
        let complete = json!({"choices": [{"finish_reason": "stop", "message": message}]});
        let (_, complete) = decoded(&dialect, &request, &complete);
        for reply in [streamed, complete] {
            assert_eq!(
                (reply.reasoning().as_deref(), reply.text().as_str()),
                (reasoning, answer),
                "{pieces:?}"
            );
            let sent = messages(&dialect, &next(&request, &reply, Vec::new()));
            assert_eq!(sent[1], json!({"role": "assistant", "content": answer}), "{pieces:?}");
        }
    }
    // The option declares a template with the opening tag.
    let options = json!({"quirks": {"opened_thinking": true}});
    let request = Request::new("m", [Message::user("Why?")]).with_provider_options("local", options);
    let reply = response(&dialect, &request, &[json!({"content": "Hm.</think>So."})]);
    assert_eq!((reply.reasoning().as_deref(), reply.text().as_str()), (Some("Hm."), "So."));
    // Reasoning in a separate field leaves the content unchanged.
    let deltas = [json!({"reasoning_content": "Hm."}), json!({"content": "<think>x</think>"})];
    let reply = response(&dialect, &Request::new("deepseek-r1", [Message::user("Why?")]), &deltas);
    assert_eq!((reply.reasoning().as_deref(), reply.text().as_str()), (Some("Hm."), "<think>x</think>"));
    // A call ends it.
    let reply = response(
        &dialect,
        &Request::new("m", [Message::user("Look.")]),
        &[json!({"content": "<think>Hm."}), call("c1")],
    );
    assert_eq!((reply.reasoning().as_deref(), reply.tool_calls().count()), (Some("Hm."), 1));
}
