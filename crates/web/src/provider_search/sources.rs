//! The pages that an answer rests on, in the three dialects.

use pintle_tools::builtin::SearchHit;
use serde_json::Value;

use super::Provider;

/// The pages of an answer as it came, each once, those that the answer cites first.
pub(super) fn hits_of(provider: Provider, answer: &Value) -> Vec<SearchHit> {
    let found = match provider {
        Provider::OpenAi => openai(answer),
        Provider::Anthropic => anthropic(answer),
        Provider::Gemini => gemini(answer),
    };
    let mut hits: Vec<SearchHit> = Vec::new();
    for hit in found {
        match hits.iter_mut().find(|known| known.url == hit.url) {
            // What a page says may stand in a later mention of it.
            Some(known) => {
                if known.title.is_empty() {
                    known.title = hit.title;
                }
                if known.snippet.is_empty() {
                    known.snippet = hit.snippet;
                }
            }
            None if hit.url.is_empty() => {}
            None => hits.push(hit),
        }
    }
    hits
}

/// Citations of the text, then the sources that were asked for with `include`.
fn openai(answer: &Value) -> Vec<SearchHit> {
    let items = || list(answer, "/output").iter();
    let cited = items()
        .flat_map(|item| list(item, "/content"))
        .flat_map(|part| list(part, "/annotations"))
        .filter(|annotation| text(annotation, "/type") == "url_citation")
        .map(|citation| SearchHit::new(text(citation, "/title"), text(citation, "/url"), ""));
    let read = items()
        .filter(|item| text(item, "/type") == "web_search_call")
        .flat_map(|call| list(call, "/action/sources"))
        .map(|source| SearchHit::new(text(source, "/title"), text(source, "/url"), ""));
    cited.chain(read).collect()
}

/// Citations of the text with what they quote, then every result.
fn anthropic(answer: &Value) -> Vec<SearchHit> {
    let blocks = || list(answer, "/content").iter();
    let cited = blocks()
        .flat_map(|block| list(block, "/citations"))
        .map(|cited| SearchHit::new(text(cited, "/title"), text(cited, "/url"), text(cited, "/cited_text")));
    let found = blocks()
        .filter(|block| text(block, "/type") == "web_search_tool_result")
        .flat_map(|block| list(block, "/content"))
        .map(|result| {
            SearchHit::new(text(result, "/title"), text(result, "/url"), text(result, "/page_age"))
        });
    cited.chain(found).collect()
}

/// The chunks on which the answer is grounded, with the passages that rest on each.
fn gemini(answer: &Value) -> Vec<SearchHit> {
    let grounding = |path: &str| list(answer, &format!("/candidates/0/groundingMetadata/{path}"));
    let supports = grounding("groundingSupports");
    let chunks = grounding("groundingChunks").iter().enumerate();
    let hits = chunks.map(|(at, chunk)| {
        let rests_on = |support: &&Value| {
            list(support, "/groundingChunkIndices").iter().any(|index| index.as_u64() == Some(at as u64))
        };
        let passages: Vec<&str> =
            supports.iter().filter(rests_on).map(|support| text(support, "/segment/text")).collect();
        SearchHit::new(text(chunk, "/web/title"), text(chunk, "/web/uri"), passages.join(" "))
    });
    hits.collect()
}

fn list<'v>(value: &'v Value, path: &str) -> &'v [Value] {
    value.pointer(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(provider: Provider, answer: &Value) -> String {
        let hits = hits_of(provider, answer);
        let lines = hits.iter().map(|hit| format!("{} <{}> {}", hit.title, hit.url, hit.snippet));
        lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn sources_come_once_each_in_every_dialect() {
        let openai = json!({"output": [
            {"type": "web_search_call", "action": {"type": "search", "sources": [
                {"type": "url", "url": "https://a/"}, {"type": "url", "url": "https://b/"},
            ]}},
            {"type": "message", "content": [{"type": "output_text", "text": "It is so.", "annotations": [
                {"type": "url_citation", "url": "https://b/", "title": "B"},
                {"type": "file_citation", "url": "https://c/", "title": "C"},
                {"type": "url_citation", "url": "https://b/", "title": "B again"},
            ]}]},
        ]});
        insta::assert_snapshot!(shown(Provider::OpenAi, &openai), @"
        B <https://b/>
        <https://a/>
        ");
        let anthropic = json!({"content": [
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [
                {"type": "web_search_result", "url": "https://a/", "title": "A", "page_age": "May 2, 2025"},
                {"type": "web_search_result", "url": "https://b/", "title": "B", "page_age": null},
            ]},
            {"type": "text", "text": "It is so.", "citations": [
                {"type": "web_search_result_location", "url": "https://b/", "title": "B", "cited_text": "So it is."},
            ]},
        ]});
        insta::assert_snapshot!(shown(Provider::Anthropic, &anthropic), @"
        B <https://b/> So it is.
        A <https://a/> May 2, 2025
        ");
        let gemini = json!({"candidates": [{"groundingMetadata": {
            "groundingChunks": [{"web": {"uri": "https://a/", "title": "a.example"}}, {"web": {"uri": "https://b/"}}],
            "groundingSupports": [
                {"segment": {"text": "It is so."}, "groundingChunkIndices": [0, 1]},
                {"segment": {"text": "It was so."}, "groundingChunkIndices": [0]},
            ],
        }}]});
        insta::assert_snapshot!(shown(Provider::Gemini, &gemini), @"
        a.example <https://a/> It is so. It was so.
        <https://b/> It is so.
        ");
    }

    #[test]
    fn an_answer_without_sources_has_no_hits() {
        let refused = json!({"content": [{"type": "web_search_tool_result", "tool_use_id": "s1",
            "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}}]});
        for provider in [Provider::OpenAi, Provider::Anthropic, Provider::Gemini] {
            for answer in [
                &json!({}),
                &Value::Null,
                &json!({"output": [1], "content": [{}], "candidates": []}),
                &refused,
            ] {
                assert_eq!(hits_of(provider, answer), [], "{provider:?} {answer}");
            }
        }
    }
}
