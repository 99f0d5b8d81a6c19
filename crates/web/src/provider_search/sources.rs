//! Sources of a search response in the three dialects.

use pintle_tools::builtin::SearchHit;
use serde_json::Value;

use super::SearchDialect;

/// Returns the pages of a raw response without duplicates, cited pages first.
pub(super) fn extract_hits(provider: SearchDialect, response: &Value) -> Vec<SearchHit> {
    let found = match provider {
        SearchDialect::OpenAi => openai(response),
        SearchDialect::Anthropic => anthropic(response),
        SearchDialect::Gemini => gemini(response),
    };
    let mut hits: Vec<SearchHit> = Vec::new();
    for hit in found {
        match hits.iter_mut().find(|known| known.url == hit.url) {
            // A later mention may have the title or the snippet that the first one lacks.
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

/// Returns the citations of the text, then the sources requested with `include`.
fn openai(response: &Value) -> Vec<SearchHit> {
    let items = || list(response, "/output").iter();
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

/// Returns the citations of the text with their quotes, then every result.
fn anthropic(response: &Value) -> Vec<SearchHit> {
    let blocks = || list(response, "/content").iter();
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

/// Returns the grounding chunks, each with the passages that it supports.
fn gemini(response: &Value) -> Vec<SearchHit> {
    let grounding = |path: &str| list(response, &format!("/candidates/0/groundingMetadata/{path}"));
    let supports = grounding("groundingSupports");
    let chunks = grounding("groundingChunks").iter().enumerate();
    let hits = chunks.map(|(at, chunk)| {
        let is_supported = |support: &&Value| {
            list(support, "/groundingChunkIndices").iter().any(|index| index.as_u64() == Some(at as u64))
        };
        let passages: Vec<&str> =
            supports.iter().filter(is_supported).map(|support| text(support, "/segment/text")).collect();
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

    fn rendered(provider: SearchDialect, response: &Value) -> String {
        let hits = extract_hits(provider, response);
        let lines = hits.iter().map(|hit| format!("{} <{}> {}", hit.title, hit.url, hit.snippet));
        lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn sources_are_unique_in_every_dialect() {
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
        insta::assert_snapshot!(rendered(SearchDialect::OpenAi, &openai), @"
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
        insta::assert_snapshot!(rendered(SearchDialect::Anthropic, &anthropic), @"
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
        insta::assert_snapshot!(rendered(SearchDialect::Gemini, &gemini), @"
        a.example <https://a/> It is so. It was so.
        <https://b/> It is so.
        ");
    }

    #[test]
    fn responses_without_sources_have_no_hits() {
        let refused = json!({"content": [{"type": "web_search_tool_result", "tool_use_id": "s1",
            "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}}]});
        for provider in [SearchDialect::OpenAi, SearchDialect::Anthropic, SearchDialect::Gemini] {
            for response in [
                &json!({}),
                &Value::Null,
                &json!({"output": [1], "content": [{}], "candidates": []}),
                &refused,
            ] {
                assert_eq!(extract_hits(provider, response), [], "{provider:?} {response}");
            }
        }
    }
}
