//! Tokens of servers that the user has logged in to: a file for each server, in the user's private state.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pintle_mcp::{MemoryTokens, ServerTokens, TokenLock, TokenStore};
use pintle_store::Hash;
use serde::{Deserialize, Serialize};

use crate::environment::SERVER_TOKENS;
use crate::failure::Failure;
use crate::process_env::{self, ProcessEnv};

/// Maximum time for which another process may hold the lock. Renewal needs a few requests.
const LOCK_TIME: Duration = Duration::from_secs(120);

/// Directory with the tokens, by the URLs of their servers: another URL is another server, whatever its name.
#[derive(Clone, Debug)]
pub struct FileTokenStore {
    directory: PathBuf,
    process_env: ProcessEnv,
}

/// Content of a file.
#[derive(Serialize, Deserialize)]
struct ServerTokenFile {
    url: String,
    tokens: ServerTokens,
}

impl FileTokenStore {
    /// Returns the tokens of this user.
    pub fn open(process_env: &ProcessEnv) -> Result<Self, Failure> {
        let directory = process_env.state_directory()?.join(SERVER_TOKENS);
        Ok(Self { directory, process_env: process_env.clone() })
    }

    /// Returns the tokens of a server; `None` if none are stored.
    ///
    /// A file that other users can read is a usage failure.
    pub fn read(&self, url: &str) -> Result<Option<ServerTokens>, Failure> {
        let path = self.path(url, "json");
        let Some(text) = process_env::read_private_if_exists("token file", &path)? else {
            return Ok(None);
        };
        Ok(Some(parse(&path, &text)?.tokens))
    }

    /// Removes the tokens of a server, also if their file is damaged. Returns whether any were stored.
    pub async fn remove(&self, url: &str) -> Result<bool, Failure> {
        let _lock = self.locked(url).await?;
        self.process_env.remove_file(&self.path(url, "json"))
    }

    async fn locked(&self, url: &str) -> Result<TokenLock, Failure> {
        let file = self.process_env.lock_private(&self.path(url, "lock"), LOCK_TIME).await?;
        Ok(Box::new(file))
    }

    fn path(&self, url: &str, ending: &str) -> PathBuf {
        self.directory.join(format!("{}.{ending}", Hash::of(url.as_bytes())))
    }
}

#[async_trait]
impl TokenStore for FileTokenStore {
    async fn load(&self, server: &str) -> io::Result<Option<ServerTokens>> {
        self.read(server).map_err(|failure| io_error(&failure))
    }

    async fn save(&self, server: &str, tokens: &ServerTokens) -> io::Result<()> {
        let form = ServerTokenFile { url: server.to_owned(), tokens: tokens.clone() };
        let text = serde_json::to_string(&form)?;
        self.process_env
            .write_private(&self.path(server, "json"), &text)
            .map_err(|failure| io_error(&failure))
    }

    async fn clear(&self, server: &str) -> io::Result<()> {
        self.process_env
            .remove_file(&self.path(server, "json"))
            .map(drop)
            .map_err(|failure| io_error(&failure))
    }

    async fn lock(&self, server: &str) -> io::Result<Option<TokenLock>> {
        self.locked(server).await.map(Some).map_err(|failure| io_error(&failure))
    }
}

fn io_error(failure: &Failure) -> io::Error {
    io::Error::other(failure.message())
}

fn parse(path: &Path, text: &str) -> Result<ServerTokenFile, Failure> {
    // The parser's own message may quote a token.
    serde_json::from_str(text).map_err(|_damaged| {
        Failure::usage(format!("the token file {} is damaged", path.display()))
            .with_hint("`pintle mcp logout NAME` removes it")
    })
}

/// Returns the token store of servers. It stores nothing if the command has no state directory.
pub fn store(process_env: &ProcessEnv) -> Arc<dyn TokenStore> {
    match FileTokenStore::open(process_env) {
        Ok(tokens) => Arc::new(tokens),
        Err(_no_directory) => Arc::new(MemoryTokens::default()),
    }
}

/// Returns the secrets in the tokens of all servers, for redaction. Damaged files contain no secrets.
pub(crate) fn token_secrets(process_env: &ProcessEnv) -> Vec<String> {
    let Ok(tokens) = FileTokenStore::open(process_env) else { return Vec::new() };
    let files = process_env.paths_in(&tokens.directory).into_iter();
    let forms =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "json")).filter_map(|path| {
            let text = process_env::read_text_if_exists("token file", &path).ok()??;
            parse(&path, &text).ok()
        });
    forms.flat_map(|form| form.tokens.secrets().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::*;

    fn tokens(access: &str) -> ServerTokens {
        let tokens = json!({"client_id": "id", "issuer": "https://issuer", "access_token": access});
        serde_json::from_value(tokens).unwrap()
    }

    fn store(directory: &tempfile::TempDir) -> (FileTokenStore, ProcessEnv) {
        let process_env = ProcessEnv::from_variables([("PINTLE_STATE_DIR", directory.path().as_os_str())]);
        (FileTokenStore::open(&process_env).unwrap(), process_env)
    }

    #[tokio::test]
    async fn tokens_are_private_and_of_one_url() {
        let directory = tempfile::tempdir().unwrap();
        let (store, process_env) = store(&directory);
        assert_eq!(store.load("https://a/mcp").await.unwrap(), None);
        assert_eq!(token_secrets(&process_env), Vec::<String>::new());
        store.save("https://a/mcp", &tokens("access-0123")).await.unwrap();
        store.save("https://a/mcp", &tokens("access-4567")).await.unwrap();
        assert_eq!(store.load("https://a/mcp").await.unwrap(), Some(tokens("access-4567")));
        assert_eq!(store.load("https://a/other").await.unwrap(), None);
        let path = store.path("https://a/mcp", "json");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(token_secrets(&process_env), ["access-4567"]);
        assert!(store.remove("https://a/mcp").await.unwrap());
        assert!(!store.remove("https://a/mcp").await.unwrap());
        assert_eq!(store.load("https://a/mcp").await.unwrap(), None);
    }

    #[tokio::test]
    async fn damaged_and_open_files_are_reported_without_their_tokens() {
        let directory = tempfile::tempdir().unwrap();
        let (store, process_env) = store(&directory);
        let path = store.path("https://a/mcp", "json");
        process_env.write_private(&path, r#"{"url": "https://a/mcp", "tokens": "s3cret-0123"}"#).unwrap();
        let message = store.load("https://a/mcp").await.unwrap_err().to_string();
        assert!(message.contains("is damaged") && !message.contains("s3cret"), "{message}");
        assert_eq!(token_secrets(&process_env), Vec::<String>::new());
        store.save("https://a/mcp", &tokens("s3cret-0123")).await.unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let message = store.load("https://a/mcp").await.unwrap_err().to_string();
        assert!(message.contains("mode 0644") && !message.contains("s3cret"), "{message}");
        assert!(store.remove("https://a/mcp").await.unwrap());
    }

    #[tokio::test]
    async fn one_process_at_a_time_changes_tokens() {
        let directory = tempfile::tempdir().unwrap();
        let (store, _process_env) = store(&directory);
        let lock = store.lock("https://a/mcp").await.unwrap();
        store.lock("https://b/mcp").await.unwrap();
        let mut waiting = Box::pin(store.lock("https://a/mcp"));
        tokio::select! {
            _ = &mut waiting => panic!("two have the lock"),
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
        }
        drop(lock);
        waiting.await.unwrap();
    }
}
