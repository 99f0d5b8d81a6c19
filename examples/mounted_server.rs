//! Mounted server: an application serves sessions to its users, under a path of its axum server.
//!
//! `StoreSessionHost` opens the sessions of a store, which a function configures. The application authenticates each request.
//! The router has the HTTP interface and the console, whose links are relative.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use pintle_agent::{ProviderProfile, Session};
use pintle_env::{EnvError, LocalEnvironment};
use pintle_llm::Client;
use pintle_providers::Anthropic;
use pintle_server::{ClientIdentity, RequestParts, Server, ServerLimits, StoreSessionHost, TokenScope};
use pintle_store::{Filter, MemoryStore, Page, SessionStore, Summary};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use http_requests::ask;

#[path = "support/http_requests.rs"]
mod http_requests;

/// Returns the user of a request. A real application reads its own cookie here.
fn user(request: &RequestParts) -> Option<ClientIdentity> {
    let name = request.headers.get("x-user")?.to_str().ok()?;
    Some(ClientIdentity::new(name, [TokenScope::Read, TokenScope::Run]).with_tenant("acme"))
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let model = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider =
        Anthropic::builder("any-key").with_base_url(model.base_url(Dialect::AnthropicMessages)).build()?;
    let client = Client::builder().provider(provider).build()?;
    let directory = tempfile::tempdir()?;
    let workspace = directory.path().to_owned();

    // For sessions that survive the process: `FileStore::open(directory)`.
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let sessions = StoreSessionHost::new(Arc::clone(&store), move |_: &Summary| {
        let env = LocalEnvironment::with_host_env(&workspace, std::env::vars_os())?;
        let profile = ProviderProfile::anthropic("claude-opus-4-6");
        Ok::<_, EnvError>(Session::builder(client.clone(), profile, env))
    });
    let server =
        Server::new(Arc::new(sessions), Arc::clone(&store), ServerLimits::default()).with_authenticator(user);
    let application = Router::new()
        .route("/", get(|| async { "The application." }))
        .nest_service("/agent", server.router());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(listener, application).await });

    let message = r#"{"message":{"text":"Say hello."}}"#;
    ask(address, "GET / HTTP/1.1", "").await?;
    ask(address, "GET /agent HTTP/1.1", "").await?;
    ask(address, "GET /agent/ HTTP/1.1", "").await?;
    ask(address, "POST /agent/v1/sessions HTTP/1.1", message).await?;
    ask(address, "POST /agent/v1/sessions HTTP/1.1\r\nx-user: ann", message).await?;
    let session = store.list(&Filter::default(), &Page::default()).await?.pop().ok_or("no session")?;
    let events = format!("GET /agent/v1/sessions/{}/events HTTP/1.1\r\nx-user: ann", session.id);
    ask(address, &events, "").await?;
    let session = store.summary(&session.id).await?.ok_or("no session")?;
    let tenant = session.properties.get("tenant").ok_or("no tenant")?;
    println!("{} of {tenant}", session.title);
    server.shut_down().await;
    serving.shutdown().await;
    model.shutdown().await;
    Ok(())
}

const SCRIPT: &str = include_str!("scripts/mounted_server.toml");
