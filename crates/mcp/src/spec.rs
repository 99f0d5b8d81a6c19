//! Declarations of servers by users.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use pintle_env::setters;
use pintle_tools::Effect;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};

use crate::filter::ToolFilter;
use crate::oauth::OAuthSettings;
use crate::tool_names;

/// Maximum length of a server's name, in characters.
const MAX_NAME: usize = 32;

/// Name of a server: ASCII letters, digits, `-` and `_`, at most 32 characters, without two underscores in a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(String);

/// Text that is not a valid name of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid server name {0:?}: expected 1 to {MAX_NAME} letters, digits, `-` and single `_`")]
pub struct InvalidServerName(String);

impl ServerName {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether tool names of the two servers can collide, as for `my-server` and `my_server`. Rules for one server would
    /// apply to the other, so a session must not use both.
    #[must_use]
    pub fn shares_tool_names(&self, other: &Self) -> bool {
        let (one, other) = (tool_names::server_prefix(&self.0), tool_names::server_prefix(&other.0));
        one.starts_with(&other) || other.starts_with(&one)
    }
}

impl FromStr for ServerName {
    type Err = InvalidServerName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_accepted = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let fits = (1..=MAX_NAME).contains(&text.len());
        if fits && text.chars().all(is_accepted) && !text.contains("__") {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidServerName(text.chars().take(2 * MAX_NAME).collect()))
        }
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Declaration of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerSpec {
    /// Its name, which is part of the names of its tools.
    pub name: ServerName,
    /// Transport.
    pub transport: ServerTransport,
    /// The tools that are offered. Default: all.
    pub filter: ToolFilter,
    /// The minimum effect of its calls. Default [`Effect::Execute`]: a call may do anything. The server's own hints about
    /// a tool can increase an effect and never decrease it.
    pub effect: Effect,
    /// The minimum effects of single tools, by the names that the server gives them.
    pub effects: BTreeMap<String, Effect>,
    /// Time for a start with the handshake. Default 30 s. A second start with an older handshake gets the same time.
    pub start_timeout: Duration,
    /// Time in which a call must return or report progress; waiting for a user does not count. Default 5 min.
    pub call_timeout: Duration,
}

/// Transport of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerTransport {
    /// A process that reads requests from its standard input.
    Stdio(StdioServer),
    /// A URL that takes requests by POST.
    Http(HttpServer),
}

/// Server that is a process of the execution environment.
///
/// `Debug` shows the names of variables and never their values.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StdioServer {
    /// The program: a path, or a name that is looked up in the environment's `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables in addition to those that every command has. They are not filtered.
    pub env: BTreeMap<OsString, OsString>,
    /// The start directory. Default: the environment's working directory.
    pub working_dir: Option<PathBuf>,
    /// Whether it runs outside of the environment's sandbox, if there is one. Default false.
    pub outside_sandbox: bool,
}

/// Server behind a URL (MCP, streamable HTTP).
///
/// `Debug` shows the names of headers and never their values.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpServer {
    url: Url,
    headers: BTreeMap<String, String>,
    oauth: OAuthSettings,
    login_hint: Option<String>,
}

/// Text that is not a valid URL or header of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidHttpServer {
    /// The URL cannot be used. Its text may contain a secret, and is not shown.
    #[error(
        "invalid URL of a server: expected http:// or https:// with a host, and no user name or password"
    )]
    Url,
    /// The header cannot be sent.
    #[error(
        "invalid header {0:?} for a server: expected a name of ASCII letters, digits and `-`, and a value of one line"
    )]
    Header(String),
}

impl ServerSpec {
    /// Declares a server with the defaults.
    #[must_use]
    pub fn new(name: ServerName, transport: ServerTransport) -> Self {
        Self {
            name,
            transport,
            filter: ToolFilter::default(),
            effect: Effect::Execute,
            effects: BTreeMap::new(),
            start_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(300),
        }
    }

    setters! {
        /// Sets the tools that are offered.
        pub fn with_filter(filter: ToolFilter) => filter = filter;
        /// Sets the minimum effect of its calls.
        pub fn with_effect(effect: Effect) => effect = effect;
        /// Sets the time for a start with the handshake.
        pub fn with_start_timeout(timeout: Duration) => start_timeout = timeout;
        /// Sets the time in which a call must return or report progress.
        pub fn with_call_timeout(timeout: Duration) => call_timeout = timeout;
    }

    /// Sets the minimum effect of the calls of one tool.
    #[must_use]
    pub fn with_effect_of(mut self, tool: impl Into<String>, effect: Effect) -> Self {
        self.effects.insert(tool.into(), effect);
        self
    }
}

impl StdioServer {
    /// Declares a process without further variables, in the working directory and in the sandbox.
    #[must_use]
    pub fn new<A: Into<OsString>>(
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            working_dir: None,
            outside_sandbox: false,
        }
    }

    /// Adds a variable.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    setters! {
        /// Sets the directory in which it starts.
        pub fn with_working_dir(directory: impl Into<PathBuf>) => working_dir = Some(directory.into());
        /// Sets whether it runs outside of the environment's sandbox.
        pub fn with_outside_sandbox(outside: bool) => outside_sandbox = outside;
    }
}

impl HttpServer {
    /// Declares the server behind a URL.
    ///
    /// # Errors
    ///
    /// [`InvalidHttpServer::Url`] for another scheme than `http` and `https`, and for a URL with a user name or password.
    pub fn new(url: &str) -> Result<Self, InvalidHttpServer> {
        let url = Url::parse(url).map_err(|_no_url| InvalidHttpServer::Url)?;
        let has_name = !url.username().is_empty() || url.password().is_some();
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() || has_name {
            return Err(InvalidHttpServer::Url);
        }
        Ok(Self { url, headers: BTreeMap::new(), oauth: OAuthSettings::default(), login_hint: None })
    }

    /// Adds a header to every request.
    ///
    /// # Errors
    ///
    /// [`InvalidHttpServer::Header`] with the name of a header that cannot be sent.
    pub fn with_header(
        mut self,
        name: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<Self, InvalidHttpServer> {
        let (name, value) = (name.into(), value.into());
        if HeaderName::try_from(&name).is_err() || HeaderValue::try_from(&value).is_err() {
            return Err(InvalidHttpServer::Header(name));
        }
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Sets the client of a [login](crate::login()) to the server, and the scopes that the login requests.
    #[must_use]
    pub fn with_oauth(mut self, settings: OAuthSettings) -> Self {
        self.oauth = settings;
        self
    }

    /// Returns the settings of logins.
    #[must_use]
    pub fn oauth(&self) -> &OAuthSettings {
        &self.oauth
    }

    /// Sets a hint that errors add if a login is required, such as the command that logs in. Default: nothing.
    #[must_use]
    pub fn with_login_hint(mut self, hint: impl Into<String>) -> Self {
        self.login_hint = Some(hint.into());
        self
    }

    pub(crate) fn login_hint(&self) -> Option<&str> {
        self.login_hint.as_deref()
    }

    /// Returns whether a declared header authorizes requests. It replaces tokens.
    #[must_use]
    pub fn has_authorization(&self) -> bool {
        self.headers.keys().any(|name| name.eq_ignore_ascii_case(AUTHORIZATION.as_str()))
    }

    /// Returns the URL.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    pub(crate) fn parsed_url(&self) -> &Url {
        &self.url
    }

    pub(crate) fn headers(&self) -> HashMap<HeaderName, HeaderValue> {
        let parsed = self.headers.iter().filter_map(|(name, value)| {
            let mut value = HeaderValue::try_from(value).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::try_from(name).ok()?, value))
        });
        parsed.collect()
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A query may contain a key.
        let host = self.url.host_str().unwrap_or_default();
        let headers: Vec<&String> = self.headers.keys().collect();
        f.debug_struct("HttpServer")
            .field("host", &host)
            .field("headers", &headers)
            .field("oauth", &self.oauth)
            .finish()
    }
}

impl fmt::Debug for StdioServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioServer")
            .field("program", &self.program)
            .field("arguments", &self.arguments.len())
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("working_dir", &self.working_dir)
            .field("outside_sandbox", &self.outside_sandbox)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_be_ambiguous_are_refused() {
        for name in ["git", "a", "my-server_2", &"x".repeat(32)] {
            assert_eq!(name.parse::<ServerName>().unwrap().as_str(), name);
        }
        for name in ["", "a__b", "a b", "é", "a/b", &"x".repeat(33)] {
            let error = name.parse::<ServerName>().unwrap_err().to_string();
            assert!(error.contains("expected 1 to 32 letters"), "{error}");
        }
    }

    #[test]
    fn urls_and_headers_are_checked_and_their_secrets_not_shown() {
        for url in ["", "localhost:80", "file:///etc/passwd", "https://me:s3cret@host/", "ftp://host/"] {
            let error = HttpServer::new(url).unwrap_err().to_string();
            assert!(error.contains("expected http://") && !error.contains("s3cret"), "{error}");
        }
        let server = HttpServer::new("https://host/mcp?key=s3cret").unwrap();
        let server = server.with_header("Authorization", "Bearer s3cret").unwrap();
        let shown = format!("{server:?}");
        assert!(shown.contains("Authorization") && !shown.contains("s3cret"), "{shown}");
        for (name, value) in [("a b", "c"), ("a", "b\nc")] {
            let error = server.clone().with_header(name, value).unwrap_err();
            assert_eq!(error, InvalidHttpServer::Header(name.to_owned()));
        }
    }

    #[test]
    fn values_of_variables_are_not_shown() {
        let server = StdioServer::new("server", ["--token", "t0ps3cret"]).with_env("KEY", "s3cret");
        let shown = format!("{server:?}");
        assert!(shown.contains("KEY") && !shown.contains("s3cret"), "{shown}");
    }
}
