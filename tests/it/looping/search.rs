//! Search by the provider: a separate request with the provider's search tool and no tools of the model.

use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions, Turn};
use pintle_tools::builtin::{SearchQuery, SearchResults, WebSearchClient as _};
use pintle_web::ProviderSearch;
use serde_json::json;

use crate::harness::{KEY, client, profile};

#[tokio::test]
async fn a_search_uses_the_providers_dialect() {
    let rows = [
        (
            Dialect::OpenAiResponses,
            json!([{"type": "web_search", "filters": {"allowed_domains": ["a.example"]}}]),
        ),
        (
            Dialect::AnthropicMessages,
            json!([{"type": "web_search_20250305", "name": "web_search", "max_uses": 3, "allowed_domains": ["a.example"]}]),
        ),
        (Dialect::Gemini, json!([{"googleSearch": {}}])),
    ];
    for (dialect, tools) in rows {
        let script = Script::new("search").with_turn(Turn::text("A pin."));
        let server = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap();
        let client = client(&server, dialect, KEY);
        let search = ProviderSearch::new(client, dialect.name(), profile(dialect).model).unwrap();
        let query =
            SearchQuery::new("What is a pintle?", 5).with_domains(vec!["a.example".into()], Vec::new());
        assert_eq!(search.search(query).await.unwrap(), SearchResults::default().with_answer("A pin."));
        let requests = server.requests();
        let [request] = requests.as_slice() else { panic!("{dialect:?}: {requests:?}") };
        assert_eq!(request.violations, [], "{dialect:?}: {}", request.body);
        let mut sent = request.body["tools"].clone();
        // Some dialects have a cache point at the last tool.
        sent[0].as_object_mut().unwrap().remove("cache_control");
        assert_eq!(sent, tools, "{dialect:?}");
        let text = request.body.to_string();
        assert!(text.contains("What is a pintle?") && text.contains("a.example"), "{dialect:?}: {text}");
    }
}
