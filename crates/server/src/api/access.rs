//! Authentication and authorization: tokens, scopes, and checks of `Host` and `Origin`.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN, RETRY_AFTER, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, post};
use pintle_agent::{Principal, SessionHandle, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::App;
use super::extractors::{IDEMPOTENCY_KEY, OpenJson};
use super::logins::{BrowserLogins, LOGIN_COOKIE, cookie};
use super::openapi::Operation;
use super::rate::RateLimiter;
use crate::audit::{AuditLine, AuditLog};
use crate::authentication::{Authentication, ClientIdentity, RequestParts};
use crate::problem::{FAILED, FORBIDDEN, Problem, RATE, UNAUTHORIZED};
use crate::unauthenticated::UnauthenticatedPeer;

/// Path of logins.
const LOGIN_PATH: &str = "/v1/login";

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Prefix of every token, by which scanners find published tokens.
const TOKEN_PREFIX: &str = "pintle_";

/// Permission of a token. Scopes do not include one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Scope")]
#[non_exhaustive]
pub enum TokenScope {
    /// Lists and reads sessions and tasks.
    Read,
    /// Creates sessions, sends messages, steers and cancels tasks, and stops work.
    Run,
    /// Decides on calls, and on gates of tasks.
    Approve,
    /// Deletes sessions.
    Admin,
}

impl TokenScope {
    /// All scopes.
    pub const ALL: [Self; 4] = [Self::Read, Self::Run, Self::Approve, Self::Admin];

    /// Returns the serialised name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }
}

/// Stored form of a token, with its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AccessToken {
    /// Name of the token's owner. Records contain it with the owner's messages and decisions.
    pub name: String,
    /// BLAKE3 hash of the token, in hexadecimal.
    pub hash: String,
    /// Permissions.
    pub scopes: Vec<TokenScope>,
    /// Time at which the token expires; never if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// Tenant whose sessions the token can access; sessions without a tenant if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// The operating system provides no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no random numbers")]
pub struct TokenError;

impl AccessToken {
    /// Creates a token with these scopes. Returns its stored form and the token itself, which is shown only once.
    ///
    /// # Errors
    ///
    /// [`TokenError`].
    pub fn generate(
        name: impl Into<String>,
        scopes: impl Into<Vec<TokenScope>>,
    ) -> Result<(Self, String), TokenError> {
        let secret = TOKEN_PREFIX.to_owned() + &random_text()?;
        let token = Self {
            name: name.into(),
            hash: hash(&secret),
            scopes: scopes.into(),
            expires: None,
            tenant: None,
        };
        Ok((token, secret))
    }

    /// Sets the time at which the token expires.
    #[must_use]
    pub fn with_expiry(mut self, expires: Timestamp) -> Self {
        self.expires = Some(expires);
        self
    }

    /// Sets the tenant whose sessions the token can access.
    #[must_use]
    pub fn with_tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }
}

/// Returns an unguessable random hexadecimal text.
pub(super) fn random_text() -> Result<String, TokenError> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(|_| TokenError)?;
    Ok(bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

pub(super) fn hash(secret: &str) -> String {
    blake3::hash(secret.as_bytes()).to_hex().to_string()
}

/// Tokens of a server. Cheap to clone; clones share the tokens.
#[derive(Clone, Debug, Default)]
pub struct AccessTokens(Arc<RwLock<Vec<AccessToken>>>);

impl AccessTokens {
    /// Creates a set of tokens.
    #[must_use]
    pub fn new(tokens: impl Into<Vec<AccessToken>>) -> Self {
        Self(Arc::new(RwLock::new(tokens.into())))
    }

    /// Replaces all tokens, from the next request on.
    pub fn set(&self, tokens: impl Into<Vec<AccessToken>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = tokens.into();
    }

    /// Returns the stored form of this token, unless it has expired.
    fn find(&self, secret: &str, now: Timestamp) -> Option<AccessToken> {
        // The time of the comparison leaks nothing useful, because hashes of random tokens are compared.
        self.find_hash(&hash(secret), now)
    }

    /// Returns the token with this hash, unless it has expired.
    fn find_hash(&self, hash: &str, now: Timestamp) -> Option<AccessToken> {
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let found = tokens.iter().find(|token| token.hash == hash)?;
        found.expires.is_none_or(|expires| now < expires).then(|| found.clone())
    }
}

/// Access control of a listener.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) authentication: Authentication,
    /// Host names of the server for pages, without a port; `None` where clients connect without a host name.
    pub(crate) hosts: Option<Vec<String>>,
    /// Whether connections are encrypted.
    pub(crate) is_secure: bool,
    pub(crate) clock: Arc<dyn pintle_agent::Clock>,
    pub(crate) logins: BrowserLogins,
    pub(crate) rates: RateLimiter,
    pub(crate) audit: Option<Arc<dyn AuditLog>>,
}

/// Authenticated sender of a request.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// `None` if the server authenticates no clients.
    pub(crate) name: Option<String>,
    scopes: Vec<TokenScope>,
    pub(crate) tenant: Option<String>,
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("name", &self.name).finish_non_exhaustive()
    }
}

impl From<ClientIdentity> for Caller {
    fn from(ClientIdentity { name, scopes, tenant }: ClientIdentity) -> Self {
        Self { name: Some(name), scopes, tenant }
    }
}

impl Caller {
    pub(crate) fn principal(&self) -> Option<Principal> {
        self.name.clone().map(Principal::new)
    }

    /// Returns the handle with this caller as the author of its inputs.
    pub(crate) fn bind_handle(&self, handle: SessionHandle) -> SessionHandle {
        match self.principal() {
            Some(principal) => handle.acting_as(principal),
            None => handle,
        }
    }

    /// Returns whether the caller has a scope.
    pub(crate) fn has(&self, scope: TokenScope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Checks that the caller has a scope in addition to the operation's scope.
    ///
    /// # Errors
    ///
    /// A problem if the caller lacks the scope.
    pub(crate) fn require(&self, scope: TokenScope) -> Result<(), Problem> {
        if self.has(scope) {
            return Ok(());
        }
        Err(Problem::new(FORBIDDEN, format!("this token lacks the scope `{}`", scope.as_str())))
    }

    /// Checks that the caller has a scope, which the request needs for this reason.
    ///
    /// # Errors
    ///
    /// A problem with the reason if the caller lacks the scope.
    pub(crate) fn require_for(&self, scope: TokenScope, reason: &str) -> Result<(), Problem> {
        self.require(scope)
            .map_err(|problem| Problem { detail: format!("{}: {reason}", problem.detail), ..problem })
    }

    /// Returns the name under which the caller's requests are counted.
    pub(super) fn rate_key(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Returns the namespace of the caller's keys, which separates them from keys of other callers.
    pub(crate) fn namespace(&self) -> String {
        format!("{}/{}", self.tenant.as_deref().unwrap_or_default(), self.name.as_deref().unwrap_or_default())
    }
}

/// Authenticates the request or rejects it. Mutations are written to the audit log.
pub(super) async fn authorize(State(app): State<App>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let caller = app.access.caller(&head).await;
    let mut request = Request::from_parts(head, body);
    let peer = request.extensions().get::<UnauthenticatedPeer>().cloned();
    if let (Ok(_), Some(peer)) = (&caller, &peer) {
        peer.remove_waiting();
    }
    // Requests of unknown senders are only counted, because their lines could fill the disk.
    let line = (!request.method().is_safe() && caller.is_ok()).then(|| app.access.line(&request, &caller));
    let name = caller.as_ref().map_or("", Caller::rate_key);
    let response = match (app.access.rates.count(name, Instant::now()), caller) {
        (Err(wait), _) => too_many(wait),
        (Ok(()), Ok(caller)) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        (Ok(()), Err(problem)) => problem.into_response(),
    };
    app.hub.counters.count_answer(response.status().as_u16());
    if let (Some(log), Some(line)) = (&app.access.audit, line) {
        log.write(&AuditLine { at: app.access.clock.now(), status: response.status().as_u16(), ..line });
    }
    response
}

fn unknown_to_application() -> Problem {
    Problem::new(UNAUTHORIZED, "the application that serves this path does not know the client: log in there")
}

fn too_many(wait: Duration) -> Response {
    let mut response = Problem::new(RATE, "this token asks too often: try again later").into_response();
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// Refuses a request of a caller without the scope.
pub(super) async fn require(scope: TokenScope, request: Request, next: Next) -> Response {
    let nobody = || Err(Problem::new(FORBIDDEN, "a token is needed"));
    match request.extensions().get::<Caller>().map_or_else(nobody, |caller| caller.require(scope)) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Refuses requests of pages of another origin, and requests with a foreign host name. A page whose name resolves to this
/// server could otherwise pass as a page of this origin (DNS rebinding).
pub(super) async fn check_origin(State(app): State<App>, mut request: Request, next: Next) -> Response {
    set_host(&mut request);
    match app.access.check(request.method(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

impl Access {
    /// Returns the audit line of a request that has no response yet.
    fn line(&self, request: &Request, caller: &Result<Caller, Problem>) -> AuditLine {
        let caller = caller.as_ref().ok();
        let key = request.headers().get(IDEMPOTENCY_KEY).and_then(|key| key.to_str().ok());
        AuditLine {
            at: self.clock.now(),
            name: caller.and_then(|caller| caller.name.clone()),
            tenant: caller.and_then(|caller| caller.tenant.clone()),
            method: request.method().to_string(),
            path: request.uri().path().to_owned(),
            key: key.map(str::to_owned),
            address: request.extensions().get::<UnauthenticatedPeer>().and_then(|peer| peer.address),
            status: 0,
        }
    }

    async fn caller(&self, request: &RequestParts) -> Result<Caller, Problem> {
        let headers = &request.headers;
        let tokens = match &self.authentication {
            Authentication::Open => {
                return Ok(Caller { name: None, scopes: TokenScope::ALL.to_vec(), tenant: None });
            }
            Authentication::Application(application) => {
                let client = application.authenticate(request).await.map(Caller::from);
                return client.ok_or_else(unknown_to_application);
            }
            Authentication::Tokens(tokens) => tokens,
        };
        let now = self.clock.now();
        let found = match (bearer(headers), cookie(headers)) {
            (Some(secret), _) => tokens.find(secret, now),
            (None, Some(cookie)) => {
                let token = self.logins.token_hash(cookie, authority(headers), now);
                // Revoking a token ends its logins.
                token.and_then(|hash| tokens.find_hash(&hash, now))
            }
            (None, None) => {
                return Err(Problem::new(UNAUTHORIZED, "expected a header `authorization: Bearer TOKEN`"));
            }
        };
        let AccessToken { name, scopes, tenant, .. } =
            found.ok_or_else(|| Problem::new(UNAUTHORIZED, "this token is unknown, expired or revoked"))?;
        Ok(Caller { name: Some(name), scopes, tenant })
    }

    fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
        let host = authority(headers);
        if let Some(hosts) = &self.hosts
            && !hosts.iter().any(|known| known.eq_ignore_ascii_case(without_port(host)))
        {
            return Err(Problem::new(FORBIDDEN, "the server has another name than the header `host` says"));
        }
        let is_own = |origin: &HeaderValue| {
            let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
            origin.is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host))
        };
        if !headers.get(ORIGIN).is_none_or(is_own) {
            return Err(Problem::new(FORBIDDEN, "pages of another origin may not ask this server"));
        }
        let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
        let is_foreign = site.is_some_and(|site| !matches!(site, "same-origin" | "none"));
        if is_foreign && method != Method::GET && method != Method::HEAD {
            return Err(Problem::new(FORBIDDEN, "pages of another site may not change anything here"));
        }
        Ok(())
    }
}

/// Sets the header `host` from the request target if the target contains the host, as in HTTP/2. The target has priority.
fn set_host(request: &mut Request) {
    let Some(authority) = request.uri().authority() else { return };
    let host = match authority.port_u16() {
        Some(port) => format!("{}:{port}", authority.host()),
        None => authority.host().to_owned(),
    };
    if let Ok(host) = HeaderValue::from_str(&host) {
        request.headers_mut().insert(HOST, host);
    }
}

/// Returns the host name and port by which a request reached the server.
fn authority(headers: &HeaderMap) -> &str {
    headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::open("post", LOGIN_PATH, "logIn", "Exchange a token for a cookie", post(login))
            .with_body::<Login>()
            .answers_nothing(204)
            .with_problems(&[400, 401, 413, 415, 429, 503]),
        Operation::new(
            "get",
            "/v1/token",
            "readToken",
            TokenScope::Read,
            "Read the name and the scopes of the token of this request",
            get(token),
        )
        .answers::<TokenView>(200),
        Operation::open("delete", LOGIN_PATH, "logOut", "End the login of a cookie", delete(logout))
            .answers_nothing(204),
    ]
}

/// Login of a page.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Login {
    /// The token.
    token: String,
}

/// Token of a request.
#[derive(Debug, Serialize, JsonSchema)]
struct TokenView {
    /// Its name; absent if the server takes requests without tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Its permissions: all if the server takes requests without tokens.
    scopes: Vec<TokenScope>,
    /// Tenant whose sessions it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
}

async fn token(Extension(caller): Extension<Caller>) -> Response {
    let Caller { name, scopes, tenant } = caller;
    super::json(&TokenView { name, scopes, tenant })
}

/// Starts a login and sets its cookie, which scripts cannot read.
async fn login(State(app): State<App>, headers: HeaderMap, OpenJson(login): OpenJson<Login>) -> Response {
    let now = app.access.clock.now();
    let found = match &app.access.authentication {
        Authentication::Open => None,
        Authentication::Application(_) => return unknown_to_application().into_response(),
        Authentication::Tokens(tokens) => Some(tokens.find(&login.token, now)),
    };
    if matches!(found, Some(None)) {
        // Valid logins are not counted, because other callers could otherwise block them.
        if let Err(wait) = app.access.rates.count("", Instant::now()) {
            return too_many(wait);
        }
        app.hub.counters.count_answer(StatusCode::UNAUTHORIZED.as_u16());
        return Problem::new(UNAUTHORIZED, "this token is unknown, expired or revoked").into_response();
    }
    let cookie = match found.flatten() {
        None => Ok(String::new()),
        Some(token) => app.access.logins.start(token.hash, authority(&headers), now),
    };
    match cookie {
        Ok(cookie) => set_cookie(&app, &headers, &cookie, ""),
        Err(error) => Problem::internal(FAILED, "cannot start a login", &error).into_response(),
    }
}

async fn logout(State(app): State<App>, headers: HeaderMap) -> Response {
    if let Some(cookie) = cookie(&headers) {
        app.access.logins.end(cookie);
    }
    set_cookie(&app, &headers, "", "; Max-Age=0")
}

/// Returns a response that sets the cookie. Without a path, browsers send it to all paths below `v1`, wherever
/// an application or a proxy mounts the server.
fn set_cookie(app: &App, headers: &HeaderMap, value: &str, more: &str) -> Response {
    let is_https = |origin: &HeaderValue| origin.as_bytes().starts_with(b"https://");
    let is_secure = app.access.is_secure || headers.get(ORIGIN).is_some_and(is_https);
    let secure = if is_secure { "; Secure" } else { "" };
    let cookie = format!("{LOGIN_COOKIE}={value}; HttpOnly; SameSite=Strict{secure}{more}");
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(hosts: Option<&[&str]>) -> Access {
        Access {
            authentication: Authentication::Open,
            hosts: hosts.map(|hosts| hosts.iter().map(|host| (*host).to_owned()).collect()),
            is_secure: false,
            clock: Arc::new(pintle_agent::SystemClock),
            logins: BrowserLogins::default(),
            rates: RateLimiter::new(1),
            audit: None,
        }
    }

    #[test]
    fn pages_elsewhere_and_other_names_are_refused() {
        type Row<'a> = (&'a Method, &'a [(&'a str, &'a str)], bool);
        let rows: [Row<'_>; 12] = [
            (&Method::GET, &[("host", "127.0.0.1:7468")], true),
            (&Method::GET, &[("host", "LOCALHOST")], true),
            (&Method::GET, &[("host", "[::1]:7468")], true),
            (&Method::GET, &[("host", "evil.example:7468")], false),
            (&Method::GET, &[], false),
            (&Method::POST, &[("host", "localhost:1"), ("origin", "http://localhost:1")], true),
            (&Method::POST, &[("host", "localhost:1"), ("origin", "https://localhost:1")], true),
            (&Method::POST, &[("host", "localhost:1"), ("origin", "http://localhost:2")], false),
            (&Method::GET, &[("host", "localhost:1"), ("origin", "null")], false),
            (&Method::POST, &[("host", "localhost:1"), ("sec-fetch-site", "cross-site")], false),
            (&Method::POST, &[("host", "localhost:1"), ("sec-fetch-site", "same-origin")], true),
            // A followed link.
            (&Method::GET, &[("host", "localhost:1"), ("sec-fetch-site", "cross-site")], true),
        ];
        let access = access(Some(&["localhost", "127.0.0.1", "[::1]"]));
        for (method, pairs, is_allowed) in rows {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, HeaderValue::from_static(value));
            }
            assert_eq!(access.check(method, &headers).is_ok(), is_allowed, "{method} {pairs:?}");
        }
    }

    #[test]
    fn the_target_of_a_request_names_the_host_first() {
        let rows = [
            ("/v1/models", Some("evil.example"), Some("evil.example")),
            ("https://localhost:7468/v1/models", None, Some("localhost:7468")),
            ("https://[::1]/v1/models", None, Some("[::1]")),
            ("https://evil.example/v1/models", Some("localhost"), Some("evil.example")),
            ("https://localhost@evil.example/v1/models", Some("localhost"), Some("evil.example")),
            ("/v1/models", None, None),
        ];
        for (target, header, expected) in rows {
            let mut request = Request::new(axum::body::Body::empty());
            *request.uri_mut() = target.parse().unwrap();
            if let Some(header) = header {
                request.headers_mut().insert(HOST, HeaderValue::from_static(header));
            }
            set_host(&mut request);
            let host = request.headers().get(HOST).map(|host| host.to_str().unwrap());
            assert_eq!(host, expected, "{target} {header:?}");
        }
    }

    #[test]
    fn tokens_are_found_until_they_expire_or_are_revoked() {
        let (token, secret) = AccessToken::generate("ann", [TokenScope::Read]).unwrap();
        assert!(!format!("{token:?}").contains(&secret), "only the hash is kept");
        let tokens = AccessTokens::new([token.clone().with_expiry(Timestamp::from_millis(100))]);
        assert!(tokens.find(&secret, Timestamp::from_millis(99)).is_some());
        assert!(tokens.find(&secret, Timestamp::from_millis(100)).is_none(), "it has expired");
        assert!(tokens.find("pintle_00", Timestamp::from_millis(0)).is_none());
        tokens.set([]);
        assert!(tokens.find(&secret, Timestamp::from_millis(0)).is_none(), "it was revoked");
    }

    #[test]
    fn tokens_come_from_the_header_or_the_cookie() {
        let headers = |name: &'static str, value: &'static str| {
            HeaderMap::from_iter([(
                name.parse::<axum::http::HeaderName>().unwrap(),
                HeaderValue::from_static(value),
            )])
        };
        assert_eq!(bearer(&headers("authorization", "bearer  t ")), Some("t"));
        assert_eq!(bearer(&headers("authorization", "Basic t")), None);
        assert_eq!(cookie(&headers("cookie", "a=b; pintle_login=t")), Some("t"));
        assert_eq!(cookie(&headers("cookie", "xpintle_login=t")), None);
    }
}
