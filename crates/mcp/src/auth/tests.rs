//! Logins with real authorization servers on this machine.
#![expect(clippy::disallowed_methods, reason = "the servers are processes of this machine")]

use std::io;
use std::sync::Arc;
use std::time::Duration;

use pintle_env::{Command, ExecutionEnvironment, LocalEnvironment, Process, Stdin};
use pintle_llm::ToolCall;
use pintle_tools::pipeline::{Execution, RunOptions, run};
use pintle_tools::{ToolContext, ToolErrorKind, ToolRegistry};
use reqwest::Url;
use serde_json::Value;
use tokio::sync::oneshot;

use super::{LoginError, LoginErrorKind, MemoryTokens, TokenStore, login};
use crate::{
    DismissAll, HttpServer, McpServers, OAuthSettings, ServerErrorKind, ServerName, ServerSpec,
    ServerTransport, ToolListing,
};

/// Deadline for anything that normally happens at once.
const TIMEOUT: Duration = Duration::from_secs(60);

/// An MCP server with its authorization servers.
struct Guarded {
    env: Arc<dyn ExecutionEnvironment>,
    _directory: tempfile::TempDir,
    _process: Box<dyn Process>,
    _input: Box<dyn tokio::io::AsyncWrite + Send + Unpin>,
    /// Those of the MCP server, of its authorization server, and of another one.
    origins: Vec<String>,
    tokens: Arc<MemoryTokens>,
}

impl Guarded {
    async fn start(faults: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("server.py"), include_str!("tests/server.py")).unwrap();
        let env =
            LocalEnvironment::builder(directory.path()).with_host_env(std::env::vars_os()).build().unwrap();
        let env: Arc<dyn ExecutionEnvironment> = Arc::new(env);
        env.initialize().await.unwrap();
        let arguments = [&["server.py"], faults].concat();
        let command = Command::argv("python3", arguments).with_stdin(Stdin::Piped);
        let mut process = env.spawn(command).await.unwrap();
        let (input, mut output) = (process.take_stdin().unwrap(), process.take_output().unwrap());
        let mut line = Vec::new();
        while !line.ends_with(b"\n") {
            line.extend(output.next_chunk().await.unwrap().expect("a line with the origins").bytes);
        }
        let origins = serde_json::from_slice(&line).unwrap();
        let tokens = Arc::default();
        Self { env, _directory: directory, _process: process, _input: input, origins, tokens }
    }

    fn server(&self) -> HttpServer {
        HttpServer::new(&format!("{}/mcp", self.origins[0])).unwrap()
    }

    fn servers(&self) -> McpServers {
        let spec = ServerSpec::new(name(), ServerTransport::Http(self.server()));
        let tokens: Arc<dyn TokenStore> = Arc::clone(&self.tokens) as _;
        McpServers::with_tokens(Arc::clone(&self.env), [spec], Arc::new(DismissAll), tokens)
    }

    /// Logs in with a browser that follows every redirect.
    async fn log_in(&self, timeout: Duration) -> Result<(), LoginError> {
        let (opened, shown) = oneshot::channel();
        let open = |url: &str| opened.send(url.to_owned()).unwrap();
        let browser = async {
            if let Ok(url) = shown.await {
                let back = fetch(&url).await.unwrap_err();
                fetch(&back).await.unwrap_or_default();
            }
        };
        let (server, tokens) = (self.server(), Arc::clone(&self.tokens));
        tokio::join!(login(&server, tokens.as_ref(), timeout, open), browser).0
    }

    /// Changes the state of the servers, and returns the requests that they had.
    async fn control(&self, change: &str) -> Vec<Value> {
        let log = fetch(&format!("{}/control?{change}=1", self.origins[0])).await.unwrap();
        serde_json::from_str(&log).unwrap()
    }

    /// Requires that no token has left the server that it is for, and its own authorization server.
    async fn require_no_leak(&self) {
        for request in self.control("log").await {
            let (origin, path) = (request["origin"].as_str().unwrap(), request["path"].as_str().unwrap());
            let text = request.to_string();
            if text.contains("access-") {
                assert_eq!((origin, path), (self.origins[0].as_str(), "/mcp"), "{text}");
            }
            if text.contains("refresh-") {
                assert_eq!((origin, path), (self.origins[1].as_str(), "/token"), "{text}");
            }
        }
    }
}

fn name() -> ServerName {
    "s".parse().unwrap()
}

/// Returns a page, or the URL to which it redirects.
async fn fetch(url: &str) -> Result<String, String> {
    let url = Url::parse(url).unwrap();
    let client = crate::http_client::client(&url, reqwest::redirect::Policy::none()).unwrap();
    let response = client.get(url).send().await.map_err(|_| String::new())?;
    match response.headers().get("location") {
        Some(location) => Err(location.to_str().unwrap().to_owned()),
        None => Ok(response.text().await.unwrap()),
    }
}

async fn call(guarded: &Guarded, servers: &McpServers, tool: &str) -> String {
    execute(guarded, servers, tool).await.result.text().to_owned()
}

async fn execute(guarded: &Guarded, servers: &McpServers, tool: &str) -> Execution {
    let mut registry = ToolRegistry::new();
    assert!(servers.register(&mut registry, usize::MAX).is_empty());
    let call = ToolCall::from_raw("call", format!("mcp__s__{tool}"), "{}");
    let cx = ToolContext::new(Arc::clone(&guarded.env), "");
    run(&registry, &call, &cx, &RunOptions::new()).await
}

fn count(log: &[Value], path: &str, text: &str) -> usize {
    log.iter().filter(|request| request["path"] == path && request.to_string().contains(text)).count()
}

#[tokio::test]
async fn one_login_lets_sessions_in() {
    for faults in [&[][..], &["secret"]] {
        let guarded = Guarded::start(faults).await;
        let servers = guarded.servers();
        for _ in 0..5 {
            let refused = servers.list(&name()).await.unwrap_err();
            assert_eq!(refused.kind(), ServerErrorKind::LoginRequired);
            assert_eq!(refused.to_string(), "MCP server `s` requires a login");
        }
        guarded.log_in(TIMEOUT).await.unwrap();
        servers.list(&name()).await.unwrap();
        assert_eq!(call(&guarded, &servers, "read").await, "read");
        servers.close().await;
        let log = guarded.control("log").await;
        let client = log.iter().find(|request| request["path"] == "/register").unwrap();
        let client: Value = serde_json::from_str(client["body"].as_str().unwrap()).unwrap();
        let redirect = client["redirect_uris"][0].as_str().unwrap();
        assert!(redirect.starts_with("http://127.0.0.1:"), "{redirect}");
        assert!(fetch(redirect).await.is_err(), "nothing listens after a login");
        guarded.require_no_leak().await;
    }
}

#[tokio::test]
async fn a_token_that_ends_is_renewed() {
    for faults in [&[][..], &["short"], &["secret"]] {
        let guarded = Guarded::start(faults).await;
        guarded.log_in(TIMEOUT).await.unwrap();
        let servers = guarded.servers();
        servers.list(&name()).await.unwrap();
        for _ in 0..2 {
            guarded.control("expire").await;
            // The refresh token is good for one renewal, which both calls share.
            let calls = tokio::join!(call(&guarded, &servers, "read"), call(&guarded, &servers, "read"));
            assert_eq!(calls, ("read".to_owned(), "read".to_owned()), "{faults:?}");
        }
        let log = guarded.control("log").await;
        assert!(count(&log, "/token", "grant_type=refresh_token") >= 2, "{faults:?}");
        guarded.control("revoke").await;
        guarded.control("expire").await;
        let refused = call(&guarded, &servers, "read").await;
        assert_eq!(refused, "Tool error (mcp__s__read): MCP server `s` requires a login");
        servers.close().await;
        guarded.require_no_leak().await;
    }
}

#[tokio::test]
async fn a_server_that_wants_more_scopes_needs_another_login() {
    let guarded = Guarded::start(&[]).await;
    guarded.log_in(TIMEOUT).await.unwrap();
    let servers = guarded.servers();
    servers.list(&name()).await.unwrap();
    assert_eq!(
        call(&guarded, &servers, "write").await,
        "Tool error (mcp__s__write): MCP server `s` requires a new login with the scope `write`"
    );
    assert_eq!(call(&guarded, &servers, "read").await, "read", "the connection stays");
    guarded.log_in(TIMEOUT).await.unwrap();
    assert_eq!(call(&guarded, &servers, "write").await, "read write");
    servers.close().await;
}

#[tokio::test]
async fn answers_that_are_not_the_right_one_are_refused() {
    for (faults, timeout, kind, message) in [
        (["wrong-state"], Duration::from_millis(300), LoginErrorKind::TimedOut, "no answer within 0.3 s"),
        (["denies"], TIMEOUT, LoginErrorKind::Denied, "it was refused with access_denied: Not today."),
        (["wrong-issuer"], TIMEOUT, LoginErrorKind::Exchange, "issuer mismatch"),
        (["token-redirects"], TIMEOUT, LoginErrorKind::Exchange, "gave no usable answer"),
        (["closed"], TIMEOUT, LoginErrorKind::Registration, "registration not supported"),
        (["open"], TIMEOUT, LoginErrorKind::NotAsked, "asks for no login"),
    ] {
        let guarded = Guarded::start(&faults).await;
        let error = guarded.log_in(timeout).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(message), "{error}");
        assert_eq!(guarded.tokens.load(guarded.server().url()).await.unwrap(), None);
        let log = guarded.control("log").await;
        assert_eq!(count(&log, "/stolen", ""), 0);
    }
}

#[tokio::test]
async fn an_answer_with_a_wrong_state_does_not_end_a_login() {
    let guarded = Guarded::start(&[]).await;
    let (opened, shown) = oneshot::channel();
    let browser = async {
        let url: String = shown.await.unwrap();
        let back = Url::parse(&fetch(&url).await.unwrap_err()).unwrap();
        let mut forged = back.clone();
        forged.set_query(Some("code=forged&state=guessed"));
        let refused = fetch(forged.as_str()).await.unwrap();
        assert_eq!(refused, "This response belongs to no pending login.");
        assert_eq!(
            fetch(back.join("/favicon.ico").unwrap().as_str()).await.unwrap(),
            "There is nothing here."
        );
        // A connection that is opened in advance and not used.
        let _idle = tokio::net::TcpStream::connect(("127.0.0.1", back.port().unwrap())).await.unwrap();
        let accepted = fetch(back.as_str()).await.unwrap();
        assert_eq!(accepted, "Pintle has received the answer. You can close this page.");
    };
    let server = guarded.server();
    let open = |url: &str| opened.send(url.to_owned()).unwrap();
    let (logged_in, ()) = tokio::join!(login(&server, guarded.tokens.as_ref(), TIMEOUT, open), browser);
    logged_in.unwrap();
}

#[tokio::test]
async fn a_login_that_is_dropped_listens_no_more() {
    let guarded = Guarded::start(&[]).await;
    let server = guarded.server();
    let (opened, shown) = oneshot::channel();
    let open = |url: &str| opened.send(url.to_owned()).unwrap();
    let url = tokio::select! {
        ended = login(&server, guarded.tokens.as_ref(), TIMEOUT, open) => panic!("{ended:?}"),
        url = shown => url.unwrap(),
    };
    let back = fetch(&url).await.unwrap_err();
    assert_eq!(fetch(&back).await, Err(String::new()));
    assert_eq!(guarded.tokens.load(server.url()).await.unwrap(), None);
}

#[tokio::test]
async fn a_request_is_repeated_at_another_path_of_its_origin() {
    for (faults, text) in [(["open", "moves-307"], "read"), (["open", "moves-308"], "read")] {
        let guarded = Guarded::start(&faults).await;
        let servers = guarded.servers();
        servers.list(&name()).await.unwrap();
        assert_eq!(call(&guarded, &servers, "read").await, text, "{faults:?}");
        servers.close().await;
        let log = guarded.control("log").await;
        assert_eq!(count(&log, "/mcp", "tools/call"), 1, "{faults:?}: {log:?}");
        assert_eq!(count(&log, "/mcp/", "tools/call"), 1, "{faults:?}: {log:?}");
    }
    for (fault, reason) in [
        ("moves-302", "it redirects with status 302, which does not keep the request"),
        ("moves-away", "it redirects to another origin, http://127.0.0.1:"),
        ("moves-forever", "it redirects more than 5 times"),
    ] {
        let guarded = Guarded::start(&["open", fault]).await;
        let error = guarded.servers().list(&name()).await.unwrap_err();
        assert_eq!(error.kind(), ServerErrorKind::Start, "{fault}: {error}");
        assert!(error.to_string().contains(reason), "{fault}: {error}");
        let refused = guarded.log_in(TIMEOUT).await.unwrap_err();
        assert_eq!(refused.kind(), LoginErrorKind::Discovery, "{fault}: {refused}");
        assert!(refused.to_string().contains(reason), "{fault}: {refused}");
        let log = guarded.control("log").await;
        assert_eq!(count(&log, "/stolen", ""), 0, "{fault}: {log:?}");
    }
}

#[tokio::test]
async fn a_null_beside_a_result_or_an_error_is_absent_in_json_and_events() {
    const FAILED: &str = "Tool error (mcp__s__read): MCP server `s` answered with error -32602: no such file";
    for (faults, text) in [
        (&["nulls"][..], "read"),
        (&["nulls", "events"], "read"),
        (&["nulls", "fails"], FAILED),
        (&["nulls", "fails", "events"], FAILED),
        (&["nulls", "fails", "status-400"], FAILED),
        (&["nulls", "fails", "status-500"], FAILED),
        (&["fails", "status-400"], FAILED),
    ] {
        let guarded = Guarded::start(&[&["open"], faults].concat()).await;
        let servers = guarded.servers();
        servers.list(&name()).await.unwrap();
        assert_eq!(call(&guarded, &servers, "read").await, text, "{faults:?}");
        servers.close().await;
        let log = guarded.control("log").await;
        assert_eq!(count(&log, "/mcp", "tools/call"), 1, "{faults:?}: no call is repeated");
    }
}

#[tokio::test]
async fn a_response_above_the_limit_is_refused() {
    const TOO_LARGE: &str = "HTTP response body exceeded the maximum size of 67108864 bytes";
    // A stream that fails ends the connection.
    for (faults, cause) in
        [(&["open", "large"][..], TOO_LARGE), (&["open", "large", "events"], "Transport closed")]
    {
        let guarded = Guarded::start(faults).await;
        let servers = guarded.servers();
        servers.list(&name()).await.unwrap();
        let refused = execute(&guarded, &servers, "read").await;
        assert_eq!(refused.error, Some(ToolErrorKind::Failed), "{faults:?}");
        let text = refused.result.text();
        assert!(
            text.starts_with("Tool error (mcp__s__read): MCP server `s` is gone: "),
            "{faults:?}: {text}"
        );
        assert!(text.ends_with(cause), "{faults:?}: {text}");
        assert!(text.len() < 1000, "{faults:?}");
        servers.close().await;
    }
}

#[tokio::test]
async fn a_token_does_not_follow_a_redirect() {
    let guarded = Guarded::start(&["redirects"]).await;
    guarded.log_in(TIMEOUT).await.unwrap();
    let servers = guarded.servers();
    let error = servers.list(&name()).await.unwrap_err();
    assert_eq!(error.kind(), ServerErrorKind::Start, "{error}");
    let log = guarded.control("log").await;
    assert_eq!(count(&log, "/stolen", ""), 0);
    guarded.require_no_leak().await;
}

#[tokio::test]
async fn tokens_of_one_authorization_server_are_not_shown_to_another() {
    let guarded = Guarded::start(&[]).await;
    guarded.log_in(TIMEOUT).await.unwrap();
    guarded.control("move").await;
    guarded.control("expire").await;
    let servers = guarded.servers();
    let refused = servers.list(&name()).await.unwrap_err();
    assert_eq!(refused.kind(), ServerErrorKind::LoginRequired);
    assert_eq!(guarded.tokens.load(guarded.server().url()).await.unwrap(), None);
    guarded.require_no_leak().await;
}

#[tokio::test]
async fn a_declared_header_takes_the_place_of_tokens() {
    let guarded = Guarded::start(&[]).await;
    guarded.log_in(TIMEOUT).await.unwrap();
    let server = guarded.server().with_header("authorization", "Bearer s3cret").unwrap();
    let spec = ServerSpec::new(name(), ServerTransport::Http(server));
    let tokens: Arc<dyn TokenStore> = Arc::clone(&guarded.tokens) as _;
    let servers = McpServers::with_tokens(Arc::clone(&guarded.env), [spec], Arc::new(DismissAll), tokens);
    let error = servers.list(&name()).await.unwrap_err();
    assert_eq!(error.to_string(), "MCP server `s` refuses its declared `Authorization` header");
    assert_eq!(error.kind(), ServerErrorKind::Start);
}

/// Fails whatever it is asked for.
struct Broken;

#[async_trait::async_trait]
impl TokenStore for Broken {
    async fn load(&self, _server: &str) -> io::Result<Option<super::ServerTokens>> {
        Err(io::Error::other("the keychain is locked"))
    }

    async fn save(&self, _server: &str, _tokens: &super::ServerTokens) -> io::Result<()> {
        Err(io::Error::other("the keychain is locked"))
    }

    async fn clear(&self, _server: &str) -> io::Result<()> {
        Err(io::Error::other("the keychain is locked"))
    }
}

#[tokio::test]
async fn a_store_that_fails_is_named() {
    let guarded = Guarded::start(&[]).await;
    let error = login(&guarded.server(), &Broken, TIMEOUT, |_url| {}).await.unwrap_err();
    assert_eq!(error.kind(), LoginErrorKind::Store);
    assert!(
        error.to_string().ends_with("failed: the tokens cannot be kept: the keychain is locked"),
        "{error}"
    );
    let spec = ServerSpec::new(name(), ServerTransport::Http(guarded.server()));
    let servers =
        McpServers::with_tokens(Arc::clone(&guarded.env), [spec], Arc::new(DismissAll), Arc::new(Broken));
    let error: Result<ToolListing, _> = servers.list(&name()).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("the keychain is locked"), "{error}");
}

#[tokio::test]
async fn a_registered_client_is_declared() {
    let guarded = Guarded::start(&["closed"]).await;
    let settings = OAuthSettings::new().with_client_id("mine").with_scopes(vec!["write".into()]);
    let server = guarded.server().with_oauth(settings);
    let (opened, shown) = oneshot::channel();
    let open = |url: &str| opened.send(url.to_owned()).unwrap();
    tokio::select! {
        ended = login(&server, guarded.tokens.as_ref(), TIMEOUT, open) => panic!("{ended:?}"),
        url = shown => {
            let url = Url::parse(&url.unwrap()).unwrap();
            let value = |name: &str| url.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned();
            assert_eq!((value("client_id").as_str(), value("scope").as_str()), ("mine", "write"));
            assert_eq!(value("resource"), server.url());
        }
    }
}
