//! The page to which a browser returns after a login.

use std::io;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use reqwest::Url;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Path of the page.
const PATH: &str = "/callback";

/// Maximum number of bytes that are read of a request.
const MAX_REQUEST: usize = 16 << 10;

/// Time in which a browser must send its request once it has connected.
const READ_TIME: Duration = Duration::from_secs(10);

/// Maximum number of open connections. Browsers open some that they do not use.
const MAX_CONNECTIONS: usize = 16;

/// Listener for one answer, on a port of this machine that the system chooses. Dropping it closes the port.
pub(super) struct RedirectListener {
    listener: TcpListener,
    redirect: Url,
}

/// Answer of an authorization server through the browser.
pub(super) enum AuthorizationAnswer {
    /// The user has agreed.
    Code { code: String, issuer: Option<String> },
    /// The kind of an error, and its description.
    Refused { error: String, description: Option<String> },
}

impl RedirectListener {
    pub(super) async fn bind() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let redirect = format!("http://127.0.0.1:{}{PATH}", listener.local_addr()?.port());
        Ok(Self { listener, redirect: Url::parse(&redirect).map_err(io::Error::other)? })
    }

    pub(super) fn redirect(&self) -> &str {
        self.redirect.as_str()
    }

    /// Waits for the answer with this state. Other answers are refused and do not end the wait: any page could send them.
    pub(super) async fn answer(self, state: &str) -> io::Result<AuthorizationAnswer> {
        let mut requests = FuturesUnordered::new();
        loop {
            let (mut stream, target) = tokio::select! {
                accepted = self.listener.accept(), if requests.len() < MAX_CONNECTIONS => {
                    requests.push(read_target(accepted?.0));
                    continue;
                }
                Some(request) = requests.next() => match request {
                    Some(request) => request,
                    None => continue,
                },
            };
            match self.parse_target(&target, state) {
                Ok(answer) => {
                    let text = match &answer {
                        AuthorizationAnswer::Code { .. } => {
                            "Pintle has received the answer. You can close this page."
                        }
                        AuthorizationAnswer::Refused { .. } => {
                            "The login was refused. You can close this page."
                        }
                    };
                    respond(&mut stream, "200 OK", text).await;
                    return Ok(answer);
                }
                Err((status, text)) => respond(&mut stream, status, text).await,
            }
        }
    }

    /// Returns the answer in the target of a request, or the status and text of a refusal.
    fn parse_target(
        &self,
        target: &str,
        state: &str,
    ) -> Result<AuthorizationAnswer, (&'static str, &'static str)> {
        let not_found = ("404 Not Found", "There is nothing here.");
        let url = self.redirect.join(target).map_err(|_no_url| not_found)?;
        if url.origin() != self.redirect.origin() || url.path() != PATH {
            return Err(not_found);
        }
        let value =
            |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
        if value("state").as_deref() != Some(state) {
            return Err(("400 Bad Request", "This response belongs to no pending login."));
        }
        match (value("code"), value("error")) {
            (_, Some(error)) => {
                Ok(AuthorizationAnswer::Refused { error, description: value("error_description") })
            }
            (Some(code), None) => Ok(AuthorizationAnswer::Code { code, issuer: value("iss") }),
            (None, None) => Err(("400 Bad Request", "The answer has neither a code nor an error.")),
        }
    }
}

/// Reads the target of a GET request; `None` for anything else.
async fn read_target(mut stream: TcpStream) -> Option<(TcpStream, String)> {
    let mut head = Vec::new();
    let reading = async {
        while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") && head.len() < MAX_REQUEST {
            if stream.read_buf(&mut head).await.ok()? == 0 {
                return None;
            }
        }
        Some(())
    };
    tokio::time::timeout(READ_TIME, reading).await.ok()??;
    let head = String::from_utf8_lossy(&head);
    let target = head.strip_prefix("GET ")?.split(' ').next()?.to_owned();
    Some((stream, target))
}

/// Responds to a browser. A failure is ignored.
async fn respond(stream: &mut TcpStream, status: &str, text: &str) {
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Connection: close\r\n\r\n{text}",
        text.len()
    );
    let sent = async {
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(READ_TIME, sent).await;
}
