use std::sync::{Arc, Mutex};

use pintle_llm::{Error, ErrorKind, EventStream, Finish, FinishReason, ProviderAdapter};

use super::*;

/// Answers from a list and keeps what it was asked.
#[derive(Debug)]
struct Asked {
    name: &'static str,
    answers: Mutex<Vec<Result<Response, Error>>>,
    requests: Arc<Mutex<Vec<Request>>>,
}

#[async_trait]
impl ProviderAdapter for Asked {
    fn name(&self) -> &str {
        self.name
    }

    async fn complete(&self, request: &Request) -> Result<Response, Error> {
        self.requests.lock().unwrap().push(request.clone());
        self.answers.lock().unwrap().remove(0)
    }

    async fn stream(&self, _request: &Request) -> Result<EventStream, Error> {
        unreachable!("a search wants whole answers")
    }
}

fn answer(text: &str, raw: Value) -> Response {
    let mut response = Response::new("p", "m", Message::assistant(text));
    response.raw = Some(raw);
    response
}

/// The results of a search that is answered in this way, and the requests that were made.
async fn search(
    name: &'static str,
    query: SearchQuery,
    answers: Vec<Result<Response, Error>>,
) -> (Result<SearchResults, WebError>, Vec<Request>) {
    let requests = Arc::default();
    let adapter = Asked { name, answers: Mutex::new(answers), requests: Arc::clone(&requests) };
    let client = Client::builder().provider(adapter).build().unwrap();
    let results = ProviderSearch::new(client, name, "m").unwrap().search(query).await;
    let requests = requests.lock().unwrap().clone();
    (results, requests)
}

#[tokio::test]
async fn each_provider_is_asked_with_its_own_tool() {
    let owned = |domain: &str| vec![domain.to_owned()];
    let rows = [
        ("openai", owned("a.example"), vec![]),
        ("anthropic", vec![], owned("b.example")),
        ("gemini", vec![], vec![]),
    ];
    let mut sent = Vec::new();
    for (name, allowed, blocked) in rows {
        let query = SearchQuery::new("pintles", 5).with_domains(allowed, blocked);
        let (results, requests) = search(name, query, vec![Ok(answer(" It is so. ", json!({})))]).await;
        assert_eq!(results.unwrap(), SearchResults::default().with_answer(" It is so. "));
        let request = requests.first().unwrap();
        sent.push(format!("{name}: {}", Value::Object(request.options_of(name).unwrap().clone())));
        assert!(request.tools.is_empty() && request.messages.len() == 1);
    }
    insta::assert_snapshot!(sent.join("\n"), @r#"
    openai: {"include":["web_search_call.action.sources"],"tools":[{"filters":{"allowed_domains":["a.example"]},"type":"web_search"}]}
    anthropic: {"tools":[{"blocked_domains":["b.example"],"max_uses":3,"name":"web_search","type":"web_search_20250305"}]}
    gemini: {"tools":[{"googleSearch":{}}]}
    "#);
}

#[tokio::test]
async fn a_paused_answer_is_taken_up_again() {
    let result =
        |url: &str| json!({"content": [{"type": "web_search_tool_result", "content": [{"url": url}]}]});
    let paused = answer("One. ", result("https://a/"))
        .with_finish_reason(FinishReason::new(Finish::Other).with_raw("pause_turn"));
    let rest = answer("Two.", result("https://b/"));
    let (results, requests) =
        search("anthropic", SearchQuery::new("x", 5), vec![Ok(paused.clone()), Ok(rest)]).await;
    let results = results.unwrap();
    assert_eq!(results.answer.as_deref(), Some("One. Two."));
    assert_eq!(
        results.hits.iter().map(|hit| hit.url.as_str()).collect::<Vec<_>>(),
        ["https://a/", "https://b/"]
    );
    assert_eq!(requests.iter().map(|request| request.messages.len()).collect::<Vec<_>>(), [1, 2]);
    // It is not taken up for ever.
    let endless = (0..9).map(|_| Ok(paused.clone())).collect();
    let (results, requests) = search("anthropic", SearchQuery::new("x", 5), endless).await;
    assert_eq!((results.unwrap().hits.len(), requests.len()), (1, 4));
}

#[tokio::test]
async fn a_failure_is_one_of_the_search() {
    let refused = Error::new(ErrorKind::InvalidRequest, "this model has no web_search");
    let (results, _) = search("openai", SearchQuery::new("x", 5), vec![Err(refused)]).await;
    let error = results.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (WebErrorKind::Failed, "the search failed: invalid request: this model has no web_search")
    );
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn who_has_no_search_is_not_asked() {
    let requests = Arc::default();
    let adapter = Asked { name: "openai-compatible", answers: Mutex::default(), requests };
    let client = Client::builder().provider(adapter).build().unwrap();
    assert!(ProviderSearch::new(client, "openai-compatible", "m").is_none());
}
