//! Cached tools and prompts of servers from earlier sessions, so that a session need not start the servers to list
//! them.

use std::path::{Path, PathBuf};

use pintle_mcp::{ServerSpec, ServerTransport, ToolListing};
use pintle_store::Hash;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::{Failure, OrFailure as _};
use crate::process_env::{self, ProcessEnv};
use crate::prompt_commands::PromptCommand;

/// Directory below the state directory.
const DIRECTORY: &str = "servers";

/// Listings of the servers of an environment.
#[derive(Clone, Debug)]
pub struct ServerListings {
    directory: PathBuf,
    /// Environment and directory in which servers are started.
    location: String,
    process_env: ProcessEnv,
}

impl ServerListings {
    /// Returns the listings of servers that are started in this environment and directory; `None` without a state
    /// directory.
    pub fn open(environment: &str, directory: &str, process_env: &ProcessEnv) -> Option<Self> {
        let state = process_env.state_directory().ok()?;
        Some(Self {
            directory: state.join(DIRECTORY),
            location: format!("{environment}\0{directory}"),
            process_env: process_env.clone(),
        })
    }

    /// Returns the last listing of the server; `None` if it is unknown.
    pub fn read(&self, spec: &ServerSpec) -> Option<ToolListing> {
        self.read_from(&self.path(spec, "json")?)
    }

    /// Returns the prompts that the server last listed; empty if they are unknown.
    pub(crate) fn read_prompts(&self, spec: &ServerSpec) -> Vec<PromptCommand> {
        let read = self.path(spec, "prompts.json").and_then(|path| self.read_from(&path));
        read.unwrap_or_default()
    }

    fn read_from<T: DeserializeOwned>(&self, path: &Path) -> Option<T> {
        let text = process_env::read_text_if_exists("list of a server", path).ok().flatten()?;
        serde_json::from_str(&text).ok()
    }

    /// Stores the listing of the server.
    pub fn write(&self, spec: &ServerSpec, listing: &ToolListing) -> Result<(), Failure> {
        self.write_to(self.path(spec, "json"), listing)
    }

    /// Stores the prompts that the server has listed.
    pub fn write_prompts(&self, spec: &ServerSpec, prompts: &[PromptCommand]) -> Result<(), Failure> {
        self.write_to(self.path(spec, "prompts.json"), prompts)
    }

    fn write_to<T: Serialize + ?Sized>(&self, path: Option<PathBuf>, list: &T) -> Result<(), Failure> {
        let Some(path) = path else { return Ok(()) };
        let text = serde_json::to_string(list).or_failed("cannot store the listings of a server")?;
        self.process_env.write_private(&path, &text)
    }

    /// Another command or URL is another server, as is the same one in another environment or directory.
    fn path(&self, spec: &ServerSpec, ending: &str) -> Option<PathBuf> {
        let reached = match &spec.transport {
            ServerTransport::Stdio(server) => {
                let words = std::iter::once(&server.program).chain(&server.arguments);
                let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
                format!("{}\0{:?}\0{}", self.location, server.working_dir, words.join("\0"))
            }
            ServerTransport::Http(server) => server.url().to_owned(),
            _ => return None,
        };
        let hash = Hash::of(reached.as_bytes()).to_string();
        Some(self.directory.join(format!("{}-{}.{ending}", spec.name, hash.get(..16)?)))
    }
}

#[cfg(test)]
mod tests {
    use pintle_mcp::{HttpServer, StdioServer};

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test damages files")]
    fn listings_are_those_of_the_same_server_in_the_same_place() {
        let state = tempfile::tempdir().unwrap();
        let process_env = ProcessEnv::from_variables([("PINTLE_STATE_DIR", state.path().as_os_str())]);
        let listings = |directory| ServerListings::open("local", directory, &process_env).unwrap();
        let stdio = |program: &str| {
            ServerSpec::new("a".parse().unwrap(), ServerTransport::Stdio(StdioServer::new(program, ["x"])))
        };
        let http = |url: &str| {
            ServerSpec::new("a".parse().unwrap(), ServerTransport::Http(HttpServer::new(url).unwrap()))
        };
        let listing: ToolListing =
            serde_json::from_str(r#"[{"name": "t", "inputSchema": {"type": "object"}}]"#).unwrap();
        listings("/one").write(&stdio("p"), &listing).unwrap();
        listings("/one").write(&http("http://h/mcp"), &listing).unwrap();
        assert_eq!(listings("/one").read(&stdio("p")), Some(listing.clone()));
        assert_eq!(listings("/one").read(&stdio("q")), None);
        assert_eq!(listings("/two").read(&stdio("p")), None);
        assert_eq!(listings("/two").read(&http("http://h/mcp")), Some(listing));
        assert_eq!(listings("/two").read(&http("http://h/other")), None);
        for file in std::fs::read_dir(state.path().join(DIRECTORY)).unwrap() {
            std::fs::write(file.unwrap().path(), "broken").unwrap();
        }
        assert_eq!(listings("/one").read(&stdio("p")), None);
    }
}
