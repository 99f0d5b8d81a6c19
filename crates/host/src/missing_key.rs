//! Advice for a first start without a key, with the local server that answers.

use std::time::Duration;

use futures_util::future::join_all;
use pintle_tools::builtin::{FetchRequest, WebClient as _};
use pintle_web::{AddressRules, FetchLimits, HttpWebClient};
use serde::Deserialize;

use crate::failure::{Failure, FailureKind};

/// Ports of local servers: ollama, llama.cpp and LM Studio.
pub(crate) const PORTS: [u16; 3] = [11434, 8080, 1234];

/// Host of local servers. No other host is queried.
const HOST: &str = "127.0.0.1";

/// How long the servers may take to answer; all are queried concurrently.
const TIME_LIMIT: Duration = Duration::from_millis(300);

/// Largest list of models, in bytes.
const MAX_LIST: usize = 256 << 10;

/// Longest name of a model that is repeated, in bytes.
const MAX_NAME: usize = 200;

/// Server on this machine with a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalServer {
    base_url: String,
    model: String,
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<ListedModel>,
}

#[derive(Deserialize)]
struct ListedModel {
    id: String,
}

/// Returns the failure of a command without a key: how to get a model, in three lines.
pub(crate) fn failure(local: Option<&LocalServer>) -> Failure {
    let server = match local {
        Some(LocalServer { base_url, model }) => {
            format!("or use the local server that answers: {}", command_line(base_url, model))
        }
        None => {
            format!("or name a local server: {}", command_line(&format!("http://{HOST}:8080/v1"), "NAME"))
        }
    };
    Failure::new(FailureKind::Credentials, "no API key found").with_hints_below(&[
        "set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or store a key: pintle login",
        &server,
        "or watch a scripted model, without key and network, with cargo in PATH: pintle demo",
    ])
}

fn command_line(base_url: &str, model: &str) -> String {
    format!("pintle --provider openai-compatible --base-url {base_url} --model {model}")
}

/// Returns the first of the servers at these ports of the loopback interface that lists a model.
pub(crate) async fn find_local_server(ports: &[u16]) -> Option<LocalServer> {
    find_server_within(ports, TIME_LIMIT).await
}

async fn find_server_within(ports: &[u16], limit: Duration) -> Option<LocalServer> {
    let limits = FetchLimits::default().with_time(limit).with_bytes(MAX_LIST).with_redirects(0);
    let client = HttpWebClient::new(limits, AddressRules::public_only().with_host(HOST));
    let found = join_all(ports.iter().map(|port| query_server(&client, *port))).await;
    found.into_iter().flatten().next()
}

async fn query_server(client: &HttpWebClient, port: u16) -> Option<LocalServer> {
    let base_url = format!("http://{HOST}:{port}/v1");
    let page = client.fetch(FetchRequest::new(format!("{base_url}/models"))).await.ok()?;
    let list: ModelList = serde_json::from_str(&page.text).ok().filter(|_| page.status == 200)?;
    let model = list.data.into_iter().map(|model| model.id).find(|name| is_shell_safe(name))?;
    Some(LocalServer { base_url, model })
}

/// Returns whether a name means itself in a command line.
fn is_shell_safe(name: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/@+-".contains(&byte);
    let starts_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    starts_well && name.len() <= MAX_NAME && name.bytes().all(is_safe)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::task::JoinSet;

    use super::*;

    /// Answers each request of a server on a free port with a response, or not at all.
    async fn serve(servers: &mut JoinSet<()>, response: Option<String>) -> u16 {
        let listener = TcpListener::bind((HOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        servers.spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 1024];
                let count = stream.read(&mut request).await.unwrap_or_default();
                assert!(request.get(..count).is_some_and(|head| head.starts_with(b"GET /v1/models ")));
                if let Some(response) = &response {
                    let _ = stream.write_all(response.as_bytes()).await;
                } else {
                    open.push(stream);
                }
            }
        });
        port
    }

    /// Looks for a server without haste.
    async fn found(ports: &[u16]) -> Option<LocalServer> {
        find_server_within(ports, Duration::from_secs(60)).await
    }

    fn json(status: &str, body: &str) -> Option<String> {
        let length = body.len();
        Some(format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        ))
    }

    async fn free_port() -> u16 {
        TcpListener::bind((HOST, 0)).await.unwrap().local_addr().unwrap().port()
    }

    #[tokio::test]
    async fn first_local_server_with_a_model_is_found() {
        let mut servers = JoinSet::new();
        let closed = free_port().await;
        let silent = serve(&mut servers, None).await;
        let empty = serve(&mut servers, json("200 OK", r#"{"data": []}"#)).await;
        let other = serve(&mut servers, json("404 Not Found", r#"{"data": [{"id": "m"}]}"#)).await;
        let two = r#"{"object": "list", "data": [{"id": "qwen3:8b"}, {"id": "b"}]}"#;
        let good = serve(&mut servers, json("200 OK", two)).await;
        let expected =
            LocalServer { base_url: format!("http://127.0.0.1:{good}/v1"), model: "qwen3:8b".to_owned() };
        assert_eq!(found(&[good]).await, Some(expected.clone()));
        assert_eq!(found(&[closed, empty, other, good]).await, Some(expected));
        // Those that do not answer cost the whole time, but not more.
        assert_eq!(
            find_server_within(&[closed, silent, empty, other], Duration::from_millis(50)).await,
            None
        );
        assert_eq!(found(&[]).await, None);
    }

    #[tokio::test]
    async fn redirects_of_local_servers_are_not_followed() {
        let mut servers = JoinSet::new();
        let good = serve(&mut servers, json("200 OK", r#"{"data": [{"id": "m"}]}"#)).await;
        let to = format!(
            "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:{good}/v1/models\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        let redirecting = serve(&mut servers, Some(to)).await;
        assert_eq!(found(&[redirecting]).await, None);
    }

    #[tokio::test]
    async fn hostile_model_names_are_not_repeated() {
        let mut servers = JoinSet::new();
        let names = r#"{"data": [{"id": "a; rm -rf ~"}, {"id": "$(id)"}, {"id": "--help"}, {"id": "\u001b[2J"}, {"id": ""}]}"#;
        let port = serve(&mut servers, json("200 OK", names)).await;
        assert_eq!(found(&[port]).await, None);
    }

    #[test]
    fn advice_has_three_lines() {
        let server =
            LocalServer { base_url: "http://127.0.0.1:1234/v1".to_owned(), model: "qwen3:8b".to_owned() };
        let failure = failure(Some(&server));
        assert_eq!(
            (failure.kind(), failure.message().as_str()),
            (FailureKind::Credentials, "no API key found")
        );
        insta::assert_snapshot!(failure.details(), @r"
          set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or store a key: pintle login
          or use the local server that answers: pintle --provider openai-compatible --base-url http://127.0.0.1:1234/v1 --model qwen3:8b
          or watch a scripted model, without key and network, with cargo in PATH: pintle demo
        ");
        let without = super::failure(None);
        assert_eq!(without.details().lines().count(), 3);
        assert!(without.details().contains("or name a local server: pintle --provider openai-compatible"));
    }
}
