//! The router in a server of an application, and sessions that the application configures.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use http_body_util::BodyExt as _;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use pintle_agent::{ProviderProfile, Session, SessionError};
use pintle_env::MemoryEnvironment;
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{Client as Models, ProviderAdapter};
use pintle_store::{MemoryStore, SessionStore, Summary};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::harness::{Answer, Request, scripted, try_send, try_stream};
use crate::{
    AccessToken, AccessTokens, ClientIdentity, ModelSummary, RequestParts, Server, ServerLimits,
    StoreSessionHost, TokenScope,
};

const MODEL: &str = "claude-opus-4-6";

/// Server of the sessions of a store.
fn server(store: &Arc<dyn SessionStore>, adapter: &Arc<FakeAdapter>) -> Server {
    let adapter = Arc::clone(adapter) as Arc<dyn ProviderAdapter>;
    let models = Models::builder().shared_provider(adapter).build().unwrap();
    let host = StoreSessionHost::new(Arc::clone(store), move |_: &Summary| {
        let profile = ProviderProfile::anthropic(MODEL);
        let environment = MemoryEnvironment::new("/project");
        Ok::<_, SessionError>(Session::builder(models.clone(), profile, environment))
    });
    let host =
        host.with_models([ModelSummary::new(MODEL, 200_000), ModelSummary::new("claude-haiku-4-5", 200_000)]);
    Server::new(Arc::new(host), Arc::clone(store), ServerLimits::default())
}

fn stored() -> Arc<dyn SessionStore> {
    Arc::new(MemoryStore::new())
}

/// Serves the router of an application until the tasks are dropped.
async fn serve(router: Router) -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let service = TowerToHyperService::new(router.clone());
            connections.spawn(async move {
                let mut builder = http1::Builder::new();
                let connection =
                    builder.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
                let _ = connection.await;
            });
        }
    });
    (address, serving)
}

async fn ask(address: SocketAddr, request: Request) -> Answer {
    let (parts, body) = try_send(address, request).await.expect("an answer").into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer { status: parts.status.as_u16(), headers: parts.headers, body }
}

/// Authenticates a client by the header `x-user`, in the form `NAME@TENANT`. Users whose names start with `r` only read.
fn by_header(request: &RequestParts) -> Option<ClientIdentity> {
    let (name, tenant) = request.headers.get("x-user")?.to_str().ok()?.split_once('@')?;
    let scopes = if name.starts_with('r') { vec![TokenScope::Read] } else { TokenScope::ALL.to_vec() };
    Some(ClientIdentity::new(name, scopes).with_tenant(tenant))
}

#[tokio::test]
async fn interface_and_console_are_served_under_any_path() {
    type Mount = fn(Router, Router) -> Router;
    let mounts: [(&str, Mount); 3] = [
        ("", |application, mounted| application.fallback_service(mounted)),
        ("/agent", |application, mounted| application.nest_service("/agent", mounted)),
        ("/tools/agent", |application, mounted| application.nest_service("/tools/agent", mounted)),
    ];
    for (path, mount) in mounts {
        let server = server(&stored(), &Arc::new(scripted())).with_authenticator(by_header);
        let application = Router::new().route("/own", get(|| async { "own" }));
        let (address, _serving) = serve(mount(application, server.router())).await;
        let at = |method, rest: &str| Request::new(method, &format!("{path}{rest}"));
        assert_eq!(ask(address, Request::new("GET", "/own")).await.text(), "own");
        if !path.is_empty() {
            let redirected = ask(address, at("GET", "")).await;
            assert_eq!((redirected.status, redirected.header("location")), (307, "./agent/"), "{path}");
            assert_eq!(ask(address, Request::new("GET", "/v1/health")).await.status, 404, "{path}");
        }
        let page = ask(address, at("GET", "/")).await;
        assert_eq!(page.status, 200, "{path}");
        let page = page.text();
        assert!(page.contains(r#"src="console/app.js""#) && !page.contains("=\"/"), "{page}");
        assert_eq!(ask(address, at("GET", "/console/app.js")).await.status, 200, "{path}");
        assert_eq!(ask(address, at("GET", "/v1/health")).await.status, 200, "{path}");
        assert_eq!(ask(address, at("GET", "/v1/none")).await.status, 404, "{path}");
        let create = || at("POST", "/v1/sessions").json(&json!({})).header("x-user", "ann@a");
        let created = ask(address, create().header("host", "agents.example")).await;
        assert_eq!(created.status, 201, "{path}: {created:?}");
        let id = created.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(created.header("location"), format!("sessions/{id}"));
        let foreign = create().header("origin", "https://elsewhere.example");
        assert_eq!(ask(address, foreign).await.status, 403, "{path}");
        server.shut_down().await;
    }
}

/// Absolute paths in the scripts would leave the path under which the server is mounted.
#[test]
fn the_console_requests_relative_addresses_only() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/console");
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for absolute in [
            "\"/console/",
            "fetch(\"/",
            "fetch(`/",
            "fetch(path",
            "EventSource(url)",
            "href: `/",
            "href=\"/",
            "src=\"/",
        ] {
            assert!(!text.contains(absolute), "{} contains {absolute}", path.display());
        }
    }
}

#[tokio::test]
async fn the_application_authenticates_clients() {
    let server = server(&stored(), &Arc::new(scripted())).with_authenticator(by_header);
    let (address, _serving) = serve(Router::new().nest_service("/agent", server.router())).await;
    let request = |method, path: &str| Request::new(method, &format!("/agent/v1{path}"));
    let unknown = ask(address, request("GET", "/sessions")).await;
    assert_eq!(unknown.status, 401, "{unknown:?}");
    let login = ask(address, request("POST", "/login").json(&json!({"token": "x"}))).await;
    assert_eq!(login.status, 401, "{login:?}");
    let create = request("POST", "/sessions").json(&json!({}));
    assert_eq!(ask(address, create.clone().header("x-user", "rob@a")).await.status, 403);
    let created = ask(address, create.header("x-user", "ann@a")).await;
    assert_eq!(created.status, 201, "{created:?}");
    let session = format!("/sessions/{}", created.json()["id"].as_str().unwrap());
    for (user, expected) in [("ann@a", 200), ("rob@a", 200), ("ann@b", 404)] {
        let read = ask(address, request("GET", &session).header("x-user", user)).await;
        assert_eq!(read.status, expected, "{user}: {read:?}");
    }
    let client = ask(address, request("GET", "/token").header("x-user", "rob@a")).await.json();
    assert_eq!(client, json!({"name": "rob", "scopes": ["read"], "tenant": "a"}));
    server.shut_down().await;
}

#[tokio::test]
async fn a_router_without_authentication_refuses_all_clients() {
    let server = server(&stored(), &Arc::new(scripted()));
    let (address, _serving) = serve(server.router()).await;
    assert_eq!(ask(address, Request::new("GET", "/v1/health")).await.status, 200);
    assert_eq!(ask(address, Request::new("GET", "/v1/sessions")).await.status, 401);
    let create = Request::new("POST", "/v1/sessions").json(&json!({}));
    assert_eq!(ask(address, create.header("authorization", "Bearer x")).await.status, 401);
}

#[tokio::test]
async fn the_cookie_of_a_login_belongs_to_the_mounted_path() {
    let (token, secret) = AccessToken::generate("ann", [TokenScope::Read]).unwrap();
    let server = server(&stored(), &Arc::new(scripted())).with_tokens(AccessTokens::new([token]));
    let (address, _serving) = serve(Router::new().nest_service("/agent", server.router())).await;
    let login =
        Request::new("POST", "/agent/v1/login").json(&json!({"token": secret})).header("host", "a.example");
    for (origin, is_secure) in [("http://a.example", false), ("https://a.example", true)] {
        let answer = ask(address, login.clone().header("origin", origin)).await;
        assert_eq!(answer.status, 204, "{answer:?}");
        let cookie = answer.header("set-cookie");
        assert!(!cookie.contains("Path"), "{cookie}");
        assert_eq!(cookie.contains("; Secure"), is_secure, "{cookie}");
        let value = cookie.split(';').next().unwrap();
        let list =
            Request::new("GET", "/agent/v1/sessions").header("host", "a.example").header("cookie", value);
        assert_eq!(ask(address, list).await.status, 200);
    }
}

#[tokio::test]
async fn sessions_of_a_store_outlive_their_server() {
    let store = stored();
    let adapter = Arc::new(scripted().answer("One.").answer("Two."));
    let everyone = |_: &RequestParts| Some(ClientIdentity::new("ann", TokenScope::ALL));
    let start = async || {
        let server = server(&store, &adapter).with_authenticator(everyone);
        let (address, serving) = serve(server.router()).await;
        (server, address, serving)
    };
    let wait = async |address, id: &str, runs: usize| {
        let mut stream = try_stream(address, &format!("/v1/sessions/{id}/events")).await.unwrap();
        for _ in 0..runs {
            stream.until_kind("PROCESSING_END").await;
        }
    };
    let (first, address, _serving) = start().await;
    let create = Request::new("POST", "/v1/sessions").json(&json!({
        "model": "claude-haiku-4-5", "effort": "high", "message": {"text": "First"},
    }));
    let created = ask(address, create).await;
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(created.json()["model"], "claude-haiku-4-5");
    let id = created.json()["id"].as_str().unwrap().to_owned();
    wait(address, &id, 1).await;
    first.shut_down().await;

    let (second, address, _serving) = start().await;
    let path = format!("/v1/sessions/{id}");
    let submit = Request::new("POST", &format!("{path}/submit")).json(&json!({"text": "Second"}));
    let submitted = ask(address, submit).await;
    assert_eq!(submitted.status, 202, "{submitted:?}");
    wait(address, &id, 2).await;
    let requests = adapter.requests();
    assert_eq!(
        requests.iter().map(|request| request.model.as_str()).collect::<Vec<_>>(),
        ["claude-haiku-4-5"; 2]
    );
    assert!(requests[1].messages.len() > requests[0].messages.len(), "the history continues");

    let fork = Request::new("POST", &format!("{path}/fork")).json(&json!({"turns": 1}));
    let forked = ask(address, fork).await;
    assert_eq!(forked.status, 201, "{forked:?}");
    let many = Request::new("POST", &format!("{path}/fork")).json(&json!({"turns": 9}));
    assert_eq!(ask(address, many).await.status, 400);
    assert_eq!(ask(address, Request::new("DELETE", &path)).await.status, 204);
    assert_eq!(ask(address, Request::new("GET", &path)).await.status, 404);
    let fork = forked.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(forked.header("location"), format!("../{fork}"));
    assert_eq!(ask(address, Request::new("GET", &format!("/v1/sessions/{fork}"))).await.status, 200);
    second.shut_down().await;
}

#[tokio::test]
async fn settings_that_the_application_decides_are_refused() {
    let server = server(&stored(), &Arc::new(scripted()))
        .with_authenticator(|_: &RequestParts| Some(ClientIdentity::new("ann", TokenScope::ALL)));
    let (address, _serving) = serve(server.router()).await;
    for (body, expected) in [
        (json!({"directory": "/elsewhere"}), 400),
        (json!({"environment": "docker:c"}), 400),
        (json!({"rules": {"deny": ["shell"]}}), 400),
        (json!({"grant": {}}), 400),
        (json!({"mode": "auto"}), 400),
        (json!({"model": "another"}), 422),
        (json!({"model": MODEL}), 201),
    ] {
        let answer = ask(address, Request::new("POST", "/v1/sessions").json(&body)).await;
        assert_eq!(answer.status, expected, "{body}: {answer:?}");
    }
    let listed = ask(address, Request::new("GET", "/v1/sessions")).await.json();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "refused sessions leave nothing: {listed}");
    server.shut_down().await;
}
