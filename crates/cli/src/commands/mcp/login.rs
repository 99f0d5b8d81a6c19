//! `pintle mcp login` and `pintle mcp logout`.

use std::time::Duration;

use pintle_host::failure::Failure;
use pintle_host::mcp::declarations::{Declarations, describe_server};
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::sanitize;
use pintle_host::server_tokens::FileTokenStore;
use pintle_mcp::{HttpServer, LoginError, LoginErrorKind, ServerName, ServerTransport};

use super::browser;

/// Longest time for a login.
const LOGIN_TIME: Duration = Duration::from_secs(600);

/// Logs in to a server.
pub(super) async fn login(
    name: &ServerName,
    declarations: &Declarations,
    process_env: &ProcessEnv,
) -> Result<String, Failure> {
    let server = server(name, declarations)?;
    if server.has_authorization() {
        return Err(Failure::usage(format!(
            "server `{name}` declares an `Authorization` header, which replaces a login"
        )));
    }
    let tokens = FileTokenStore::open(process_env)?;
    let notices = process_env.notices();
    let open = |url: &str| {
        notices.report(format!("log in to server `{name}` at {url}"));
        if browser::open(url, process_env) {
            notices.report("it is opened in the browser that BROWSER names");
        }
        notices.report("waiting for the answer of the browser; Ctrl+C ends the login");
    };
    pintle_mcp::login(server, &tokens, LOGIN_TIME, open).await.map_err(|error| login_failure(&error))?;
    let scopes = tokens.read(server.url())?.map(|tokens| tokens.scopes().collect::<Vec<_>>().join(" "));
    let scopes = match scopes.filter(|scopes| !scopes.is_empty()) {
        Some(scopes) => format!(" with the scopes: {}", sanitize(&scopes)),
        None => String::new(),
    };
    Ok(format!("logged in to server `{name}`{scopes}\n"))
}

/// Removes the tokens of a server.
pub(super) async fn logout(
    name: &ServerName,
    declarations: &Declarations,
    process_env: &ProcessEnv,
) -> Result<String, Failure> {
    let server = server(name, declarations)?;
    Ok(match FileTokenStore::open(process_env)?.remove(server.url()).await? {
        true => {
            format!("removed the tokens of server `{name}`; to invalidate them, revoke them at the server\n")
        }
        false => format!("there are no tokens of server `{name}`\n"),
    })
}

fn server<'a>(name: &ServerName, declarations: &'a Declarations) -> Result<&'a HttpServer, Failure> {
    let declared = declarations.find(name)?;
    match &declared.spec.transport {
        ServerTransport::Http(server) => Ok(server),
        ServerTransport::Stdio(_) | _ => Err(Failure::usage(format!(
            "server `{name}` is the command `{}`: expected a remote server",
            sanitize(&describe_server(&declared.spec))
        ))),
    }
}

fn login_failure(error: &LoginError) -> Failure {
    let failure = Failure::failed(sanitize(&error.to_string()));
    if error.kind() != LoginErrorKind::Registration {
        return failure;
    }
    failure.with_hint("register a client, and set `clientId` in `oauth` of the declaration")
}
