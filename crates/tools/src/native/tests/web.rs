use async_trait::async_trait;

use super::*;
use crate::builtin::{
    FetchRequest, SearchHit, SearchQuery, SearchResults, WebClient, WebError, WebErrorKind, WebPage,
    WebSearchClient,
};

/// A client with a page at every URL without `none`, and with hits for every query but `nothing`.
#[derive(Debug)]
pub(super) struct FakeWeb;

#[async_trait]
impl WebClient for FakeWeb {
    async fn fetch(&self, request: FetchRequest) -> Result<WebPage, WebError> {
        if request.url.contains("none") {
            return Err(WebError::new(WebErrorKind::Failed, "no such host"));
        }
        let status = if request.url.contains("gone") { 404 } else { 200 };
        let text = if request.url.contains("long") { "x".repeat(90_000) } else { "# Page".to_owned() };
        Ok(WebPage::new(request.url, status, "text/html", text))
    }
}

#[async_trait]
impl WebSearchClient for FakeWeb {
    async fn search(&self, query: SearchQuery) -> Result<SearchResults, WebError> {
        if query.query == "nothing" {
            return Ok(SearchResults::default());
        }
        let hit = |host: &str| SearchHit::new(format!("On {host}"), format!("https://{host}/"), "A line.");
        Ok(SearchResults::new(vec![hit("a.example"), hit("docs.b.example")]).with_answer("It is so [1]."))
    }
}

#[tokio::test]
async fn a_page_is_fetched_completely() {
    let harness = Harness::new();
    let fetch = async |url: &str| {
        let arguments = json!({"url": url, "prompt": "Sum it up."}).to_string();
        harness.call(anthropic::WebFetch::new(Arc::new(FakeWeb)), &arguments).await
    };
    assert_eq!(fetch("https://a/").await, "ok: https://a/ (status 200, text/html)\n\n# Page");
    assert_eq!(fetch("https://gone/").await, "error: https://gone/ (status 404, text/html)\n\n# Page");
    assert_eq!(fetch("https://none/").await, "error: Tool error (WebFetch): no such host");
}

#[tokio::test]
async fn every_page_in_a_prompt_is_fetched() {
    let harness = Harness::new();
    let fetch = async |prompt: &str| {
        let arguments = json!({"prompt": prompt}).to_string();
        harness.call(gemini::WebFetch::new(Arc::new(FakeWeb)), &arguments).await
    };
    insta::assert_snapshot!(fetch("Compare https://a/ with https://none/ and https://gone/.").await, @"
    ok: https://a/ (status 200, text/html)

    # Page

    ---

    https://none/ was not fetched: no such host

    ---

    https://gone/ (status 404, text/html)

    # Page
    ");
    assert_eq!(fetch("https://none/").await, "error: Tool error (web_fetch): no such host");
    assert!(fetch("https://gone/ https://none/").await.starts_with("error: https://gone/ (status 404"));
    assert_eq!(
        fetch("Compare them.").await,
        "error: Tool error (web_fetch): `prompt`: expected 1 to 20 addresses that begin with https:// or http://, found 0"
    );
    let two = fetch("https://long/1 https://long/2").await;
    assert_eq!(two.matches('x').count() / 1000, 99, "each page has half of the limit");
    assert_eq!(two.matches("characters omitted").count(), 2);
}

#[tokio::test]
async fn hits_have_the_form_of_the_agent() {
    let harness = Harness::new();
    let claude = async |arguments: Value| {
        harness.call(anthropic::WebSearch::new(Arc::new(FakeWeb)), &arguments.to_string()).await
    };
    insta::assert_snapshot!(claude(json!({"query": "is it so"})).await, @r#"
    ok: Web search results for query: "is it so"

    It is so [1].

    1. On a.example
       https://a.example/
       A line.

    2. On docs.b.example
       https://docs.b.example/
       A line.
    "#);
    insta::assert_snapshot!(claude(json!({"query": "is it so", "allowed_domains": ["b.example"]})).await, @r#"
    ok: Web search results for query: "is it so"

    It is so [1].

    1. On docs.b.example
       https://docs.b.example/
       A line.
    "#);
    insta::assert_snapshot!(claude(json!({"query": "x y", "allowed_domains": ["a"], "blocked_domains": ["b"]})).await, @"error: Tool error (WebSearch): give either `allowed_domains` or `blocked_domains`, not both");
    insta::assert_snapshot!(claude(json!({"query": "nothing"})).await, @r#"
    ok: Web search results for query: "nothing"

    No results found.
    "#);
    let gemini = async |query: &str| {
        let arguments = json!({"query": query}).to_string();
        harness.call(gemini::GoogleWebSearch::new(Arc::new(FakeWeb)), &arguments).await
    };
    insta::assert_snapshot!(gemini("is it so").await, @r#"
    ok: Web search results for "is it so":

    It is so [1].

    1. On a.example
       https://a.example/
       A line.

    2. On docs.b.example
       https://docs.b.example/
       A line.
    "#);
    insta::assert_snapshot!(gemini("nothing").await, @r#"ok: No search results or information found for query: "nothing""#);
    assert!(gemini(" ").await.ends_with("query is empty; give the words to search for"));
}
