//! Throw-away: reads the recordings.
use pintle_llm::*;
use serde_json::{Value, json};

use crate::dialect::*;
use crate::sse::*;

fn root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/wire")
}

fn stream<D: Dialect>(
    dialect: &D,
    request: &Request,
    reads: &[&[u8]],
) -> (Result<Response, Error>, Vec<StreamEvent>, Response) {
    let mut reader = SseReader::new(MAX_EVENT);
    let mut decoder = dialect.decoder(request, 7);
    let mut acc = StreamAccumulator::new(dialect.provider(), &request.model);
    let mut all = Vec::new();
    for read in reads {
        let mut events = Vec::new();
        let framing = reader.push(read, &mut events);
        for event in events {
            let name = if event.event == "message" { "" } else { &event.event };
            let mut out = Vec::new();
            let r = decoder.feed(SseEvent { name, data: &event.data }, &mut out);
            for e in out {
                acc.process(&e);
                let fin = matches!(e, StreamEvent::Finish { .. });
                all.push(e);
                if fin {
                    let mut r = acc.response();
                    if let (Ok(r), Some(StreamEvent::Finish { response, .. })) = (&mut r, all.last()) && !response.id.is_empty() { r.id.clone_from(&response.id); }
                    return (r, all, acc.partial());
                }
            }
            if let Err(e) = r {
                return (Err(e), all, acc.partial());
            }
        }
        if let Err(e) = framing {
            return (Err(Error::new(ErrorKind::Stream, e.to_string())), all, acc.partial());
        }
    }
    let mut out = Vec::new();
    let r = decoder.end(&mut out);
    for e in out {
        acc.process(&e);
        all.push(e);
    }
    if let Err(e) = r {
        return (Err(e), all, acc.partial());
    }
    (acc.response(), all, acc.partial())
}

fn check(
    entry: &Value,
    result: &Result<Response, Error>,
    partial: &Response,
    events: &[StreamEvent],
) -> Vec<String> {
    let x = &entry["expected"];
    let mut bad = Vec::new();
    let kind = entry["kind"].as_str().unwrap();
    let optional = entry.get("optional").is_some();
    if optional && result.is_err() {
        return bad;
    }
    let expect_error = !x["error"].is_null() || x["terminated"] == json!(false);
    if expect_error != result.is_err() {
        bad.push(format!(
            "error: expected {expect_error}, got {:?}",
            result.as_ref().map(|r| &r.finish_reason)
        ));
    }
    let r = result.as_ref().unwrap_or(partial);
    if x["text"].as_str().unwrap_or("") != r.text() {
        bad.push(format!("text {:?} vs {:?}", x["text"], r.text()));
    }
    if result.is_err() {
        return bad;
    }
    if let Some(id) = x["id"].as_str()
        && r.id != id
    {
        bad.push(format!("id {id} vs {}", r.id));
    }
    if let Some(m) = x["model"].as_str()
        && r.model != m
    {
        bad.push(format!("model {m} vs {}", r.model));
    }
    if !x["finish"]["unified"].is_null()
        && json!(r.finish_reason.reason) != x["finish"]["unified"]
        && x.get("notes").is_none()
    {
        bad.push(format!("finish {} vs {:?}", x["finish"], r.finish_reason));
    }
    if !x["finish"]["raw"].is_null() && json!(r.finish_reason.raw) != x["finish"]["raw"] {
        bad.push(format!("finish raw {} vs {:?}", x["finish"], r.finish_reason));
    }
    let u = &x["usage"];
    if u.is_object() {
        let got = json!({"input_tokens": r.usage.input_tokens, "output_tokens": r.usage.output_tokens, "reasoning_tokens": r.usage.reasoning_tokens, "cache_read_tokens": r.usage.cache_read_tokens, "cache_write_tokens": r.usage.cache_write_tokens});
        for k in
            ["input_tokens", "output_tokens", "reasoning_tokens", "cache_read_tokens", "cache_write_tokens"]
        {
            if kind == "anthropic" && k == "reasoning_tokens" {
                continue;
            }
            if u.get(k).is_some() && u[k] != got[k] && !(kind == "gemini" && k == "output_tokens") {
                bad.push(format!("usage {k} {} vs {}", u[k], got[k]));
            }
        }
    }
    let calls: Vec<&ToolCall> = r.tool_calls().collect();
    let want = x["tool_calls"].as_array().cloned().unwrap_or_default();
    if want.len() != calls.len() {
        bad.push(format!("calls {} vs {:?}", want.len(), calls));
    }
    for (w, c) in want.iter().zip(&calls) {
        if w["name"] != json!(c.name) {
            bad.push(format!("name {} {}", w["name"], c.name));
        }
        if kind != "gemini" && !w["id"].is_null() && w["id"] != json!(c.id) {
            bad.push(format!("id {} {}", w["id"], c.id));
        }
        if w["valid_json"] == json!(true) && w["arguments"] != c.arguments {
            bad.push(format!("arguments {} {}", w["arguments"], c.arguments));
        }
        if !w["arguments_raw"].is_null()
            && w["arguments_raw"] != json!(c.raw_arguments)
            && w["valid_json"] == json!(true)
        {
            bad.push(format!("raw {} {:?}", w["arguments_raw"], c.raw_arguments));
        }
    }
    if let Some(t) = x["reasoning"].as_str()
        && r.reasoning().unwrap_or_default() != t
    {
        bad.push(format!("reasoning {:?} vs {:?}", t, r.reasoning()));
    }
    let sigs: Vec<usize> = r
        .message
        .content
        .iter()
        .filter_map(|p| match p {
            ContentPart::Text(t) => t.signature.as_ref().map(String::len),
            ContentPart::Thinking(t) => t.signature.as_ref().map(String::len),
            ContentPart::ToolCall(t) => t.signature.as_ref().map(String::len),
            _ => None,
        })
        .collect();
    let want: Vec<usize> = x["signatures"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|s| s["len"].as_u64().unwrap() as usize)
        .collect();
    if !want.is_empty() && want != sigs {
        bad.push(format!("signatures {want:?} vs {sigs:?}"));
    }
    let other: Vec<String> = r
        .message
        .content
        .iter()
        .filter_map(|p| match p {
            ContentPart::Opaque(o) => Some(o.kind.clone()),
            _ => None,
        })
        .collect();
    let want: Vec<String> =
        x["other_items"].as_array().into_iter().flatten().map(|s| s.as_str().unwrap().to_owned()).collect();
    if kind.starts_with("openai") && want != other {
        bad.push(format!("other {want:?} vs {other:?}"));
    }
    if !events.is_empty() {
        let (mut open, mut finishes, mut starts) =
            (std::collections::BTreeMap::<String, String>::new(), 0, 0);
        for e in events {
            match e {
                StreamEvent::StreamStart { .. } => starts += 1,
                StreamEvent::TextStart { text_id } => {
                    assert!(open.insert(format!("t{text_id}"), String::new()).is_none());
                }
                StreamEvent::TextDelta { text_id, delta } => {
                    open.get_mut(&format!("t{text_id}")).expect("open").push_str(delta)
                }
                StreamEvent::TextEnd { text_id, .. } => {
                    open.remove(&format!("t{text_id}")).expect("open");
                }
                StreamEvent::ReasoningStart { reasoning_id } => {
                    assert!(open.insert(format!("r{reasoning_id}"), String::new()).is_none());
                }
                StreamEvent::ReasoningDelta { reasoning_id, reasoning_delta } => {
                    open.get_mut(&format!("r{reasoning_id}")).expect("open").push_str(reasoning_delta)
                }
                StreamEvent::ReasoningEnd { reasoning_id, thinking } => {
                    assert_eq!(open.remove(&format!("r{reasoning_id}")).expect("open"), thinking.text);
                }
                StreamEvent::ToolCallStart { tool_call } => {
                    assert!(open.insert(format!("c{}", tool_call.id), String::new()).is_none());
                }
                StreamEvent::ToolCallDelta { tool_call, delta } => {
                    open.get_mut(&format!("c{}", tool_call.id)).expect("open").push_str(delta)
                }
                StreamEvent::ToolCallEnd { tool_call } => {
                    let d = open.remove(&format!("c{}", tool_call.id)).expect("open");
                    if let Some(raw) = &tool_call.raw_arguments
                        && *raw != d
                    {
                        bad.push(format!("deltas {d:?} raw {raw:?}"));
                    }
                }
                StreamEvent::Finish { .. } => finishes += 1,
                _ => {}
            }
        }
        if starts != 1 || finishes != 1 || !open.is_empty() {
            bad.push(format!("starts {starts} finishes {finishes} open {open:?}"));
        }
    }
    bad
}

fn mutations(text: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let s = String::from_utf8(text.to_vec()).unwrap().replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<&str> = s.split('\n').collect();
    vec![
        ("lf", s.clone().into_bytes()),
        ("crlf", s.replace('\n', "\r\n").into_bytes()),
        ("cr", s.replace('\n', "\r").into_bytes()),
        ("bom", format!("\u{feff}{s}").into_bytes()),
        ("comments", s.replace("\n\n", "\n\n: ping\n\n: ping\n\n").into_bytes()),
        (
            "noevent",
            lines
                .iter()
                .filter(|l| !l.starts_with("event:"))
                .cloned()
                .collect::<Vec<_>>()
                .join("\n")
                .into_bytes(),
        ),
        (
            "noblank",
            lines
                .iter()
                .map(|l| l.strip_prefix("data: ").map_or((*l).to_owned(), |r| format!("data:{r}")))
                .collect::<Vec<_>>()
                .join("\n")
                .into_bytes(),
        ),
    ]
}

fn run<D: Dialect>(dialect: &D, entry: &Value) -> Vec<String> {
    let file = root().join(entry["file"].as_str().unwrap());
    let bytes = std::fs::read(&file).unwrap();
    let mut request = Request::new(entry["request"]["model"].as_str().unwrap_or("m"), [Message::user("x")]);
    request.tools = entry["request"]["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|t| ToolDefinition::new(t.as_str()?, "", json!({"type": "object"})).ok())
        .collect();
    if entry["transport"] == json!("json") {
        let status = entry["http_status"].as_u64().unwrap() as u16;
        if status >= 400 {
            let e = dialect.classify(status, &Headers::default(), &bytes);
            let want = entry["expected"]["http_error"].as_str().unwrap_or("?");
            return vec![format!(
                "  http {want} -> {:?} code {:?} retry {:?}: {}",
                e.kind(),
                e.error_code(),
                e.retry(),
                e.message().chars().take(80).collect::<String>()
            )];
        }
        let result = dialect.decode(&request, &bytes);
        let empty = Response::new("", "", Message::new(Role::Assistant, vec![]));
        return check(entry, &result, &empty, &[]);
    }
    let (result, events, partial) = stream(dialect, &request, &[&bytes]);
    let mut bad = check(entry, &result, &partial, if result.is_ok() { &events } else { &[] });
    if let Err(e) = &result {
        bad.push(format!(
            "  error {:?} code {:?} {:?} {}",
            e.kind(),
            e.error_code(),
            e.status(),
            e.message().chars().take(100).collect::<String>()
        ));
    }
    for (name, m) in mutations(&bytes) {
        let single: Vec<&[u8]> = m.chunks(1).collect();
        let seven: Vec<&[u8]> = m.chunks(7).collect();
        for reads in [vec![&m[..]], seven, single] {
            let (r2, e2, _) = stream(dialect, &request, &reads);
            if e2 != events {
                bad.push(format!("mutation {name}: events differ"));
            }
            if r2.is_ok() != result.is_ok()
                || (r2.is_ok() && r2.as_ref().unwrap() != result.as_ref().unwrap())
            {
                bad.push(format!("mutation {name}: {:?}", r2.err()));
            }
        }
    }
    // cuts
    let mut clean = Vec::new();
    for cut in 0..bytes.len() * usize::from(std::env::var_os("CUTS").is_some()) {
        if std::str::from_utf8(&bytes[..cut]).is_ok() && cut % 3 != 0 {
            continue;
        }
        let (r, _, _) = stream(dialect, &request, &[&bytes[..cut]]);
        if r.is_ok() {
            clean.push(cut);
        }
    }
    if let Some(first) = clean.first() {
        let tail = String::from_utf8_lossy(&bytes[*first.min(&(bytes.len()))..]).into_owned();
        if std::env::var_os("CUTS").is_some() {
            bad.push(format!(
                "  first clean cut {first} of {}: rest {:?}",
                bytes.len(),
                tail.chars().take(150).collect::<String>()
            ));
        }
    }
    bad
}

#[test]
fn wire() {
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(root().join("manifest.json")).unwrap()).unwrap();
    let mut failed = 0;
    for entry in manifest["files"].as_array().unwrap() {
        let bad = match entry["kind"].as_str().unwrap() {
            "openai-responses" => {
                run(&crate::openai::Responses { api_key: crate::secret::Secret::new("k") }, entry)
            }
            "openai-chat" => run(&crate::compatible::Chat { provider: "p".into(), api_key: None }, entry),
            "anthropic" => {
                run(&crate::anthropic::Messages { api_key: crate::secret::Secret::new("k") }, entry)
            }
            "gemini" => {
                run(&crate::gemini::GenerateContent { api_key: crate::secret::Secret::new("k") }, entry)
            }
            other => panic!("{other}"),
        };
        let hard = bad.iter().filter(|b| !b.starts_with("  ")).count();
        if hard > 0 {
            failed += 1;
        }
        if !bad.is_empty() {
            println!("{} {}", if hard > 0 { "FAIL" } else { "note" }, entry["file"]);
            for b in bad {
                println!("     {}", b.chars().take(600).collect::<String>());
            }
        }
    }
    assert_eq!(failed, 0);
}
