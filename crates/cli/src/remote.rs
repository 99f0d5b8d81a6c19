//! Client of a session server.

use pintle_agent::SessionId;
use pintle_client::{Client, NewSession, SessionInfo, SessionQuery};
use pintle_host::failure::Failure;
use pintle_host::process_env::ProcessEnv;
use pintle_tui::client_failure::explain;

/// Variable with the token of a server.
const TOKEN_VARIABLE: &str = "PINTLE_TOKEN";

/// Sessions of a page of a list.
const PAGE: usize = 200;

/// A server.
#[derive(Clone, Debug)]
pub(crate) struct RemoteServer {
    pub(crate) client: Client,
}

impl RemoteServer {
    /// Creates a client of the server at an address. A token in the address takes precedence over the variable, which
    /// may belong to another server.
    pub(crate) fn new(url: &str, process_env: &ProcessEnv) -> Result<Self, Failure> {
        let variable = process_env.variable(TOKEN_VARIABLE).filter(|token| !token.is_empty());
        let token = variable.filter(|_| !url.contains("token="));
        let client = Client::new(url, token.as_deref()).map_err(|error| explain(&error))?;
        Ok(Self { client })
    }

    /// Returns at most `limit` of the newest sessions.
    pub(crate) async fn newest(&self, limit: usize) -> Result<Vec<SessionInfo>, Failure> {
        let mut found: Vec<SessionInfo> = Vec::new();
        let mut list = SessionQuery::default();
        while found.len() < limit {
            list.limit = Some((limit - found.len()).min(PAGE));
            let page = self.client.list_sessions(&list).await.map_err(|error| explain(&error))?;
            found.extend(page.sessions);
            list.cursor = page.next;
            if list.cursor.is_none() {
                break;
            }
        }
        Ok(found)
    }

    /// Returns the session whose id starts with `prefix`.
    pub(crate) async fn find(&self, prefix: &str) -> Result<SessionInfo, Failure> {
        match self.client.session(&SessionId::new(prefix)).await {
            Ok(session) => return Ok(session),
            Err(error) if error.code() == Some("not_found") => {}
            Err(error) => return Err(explain(&error)),
        }
        let all = self.newest(usize::MAX).await?;
        let mut found = all.into_iter().filter(|session| session.id.as_str().starts_with(prefix));
        match (found.next(), found.next()) {
            (Some(session), None) => Ok(session),
            (None, _) => Err(Failure::usage(format!("the server has no session `{prefix}`"))
                .with_hint("`pintle sessions list --server URL` lists them")),
            (Some(one), Some(other)) => Err(Failure::usage(format!(
                "`{prefix}` is a prefix of several sessions, such as {} and {}",
                one.id, other.id
            ))),
        }
    }

    /// Creates a session in a directory of the server.
    pub(crate) async fn create(&self, directory: Option<String>) -> Result<SessionInfo, Failure> {
        let new = NewSession { directory, ..NewSession::default() };
        self.client.create_session(new).await.map_err(|error| explain(&error))
    }
}
