//! Addresses of servers.

use std::path::PathBuf;

use reqwest::Url;

use crate::error::ClientError;

/// Prefix of the address of a unix socket.
const UNIX: &str = "unix:";

/// Base of all paths on a unix socket. Its host is never resolved.
const UNIX_BASE: &str = "http://pintle/";

/// Address of a server.
pub(crate) struct ServerAddress {
    /// Base of all paths, without query and fragment.
    pub(crate) base: Url,
    /// Unix socket to connect to, instead of the host.
    pub(crate) socket: Option<PathBuf>,
    /// Token in the fragment.
    pub(crate) token: Option<String>,
}

impl ServerAddress {
    /// Parses `http://…`, `https://…` or `unix:PATH`. The errors do not quote the fragment, which may contain a token.
    pub(crate) fn parse(text: &str) -> Result<Self, ClientError> {
        if let Some(path) = text.strip_prefix(UNIX) {
            return Self::from_socket(path.strip_prefix("//").unwrap_or(path));
        }
        let (shown, fragment) = text.split_once('#').unwrap_or((text, ""));
        let invalid =
            |reason: &str| ClientError::InvalidUrl { url: shown.to_owned(), reason: reason.to_owned() };
        let mut base = Url::parse(shown).map_err(|error| invalid(&error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(invalid("expected http://HOST, https://HOST or unix:PATH"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            let reason = "expected a token, not a name and a password".to_owned();
            let url = base.host_str().unwrap_or_default().to_owned();
            return Err(ClientError::InvalidUrl { url, reason });
        }
        base.set_query(None);
        let token = fragment.split('&').find_map(|pair| pair.strip_prefix("token="));
        let token = token.filter(|token| !token.is_empty()).map(str::to_owned);
        Ok(Self { base, socket: None, token })
    }

    fn from_socket(path: &str) -> Result<Self, ClientError> {
        let invalid = |reason: String| ClientError::InvalidUrl { url: format!("{UNIX}{path}"), reason };
        if path.is_empty() {
            return Err(invalid("expected the path of a socket".to_owned()));
        }
        if !cfg!(unix) {
            return Err(invalid("this system has no unix sockets".to_owned()));
        }
        let base = Url::parse(UNIX_BASE).map_err(|error| invalid(error.to_string()))?;
        Ok(Self { base, socket: Some(PathBuf::from(path)), token: None })
    }

    /// Returns whether the server is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        let host = self.base.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let is_loopback = |address: std::net::IpAddr| address.is_loopback();
        self.socket.is_some() || host == "localhost" || host.parse().is_ok_and(is_loopback)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_server_is_an_address() {
        for (text, base, socket, token) in [
            ("http://127.0.0.1:7468/#token=pintle_ab", "http://127.0.0.1:7468/", None, Some("pintle_ab")),
            ("https://pintle.example/p/?x=1#a=b&token=t", "https://pintle.example/p/", None, Some("t")),
            ("http://[::1]:1", "http://[::1]:1/", None, None),
            ("http://localhost/#token=", "http://localhost/", None, None),
            ("unix:/run/pintle.sock", "http://pintle/", Some("/run/pintle.sock"), None),
            ("unix:///run/a#b", "http://pintle/", Some("/run/a#b"), None),
            ("unix:p.sock", "http://pintle/", Some("p.sock"), None),
        ] {
            let address = ServerAddress::parse(text).unwrap();
            let found = (address.base.as_str(), address.socket.as_deref(), address.token.as_deref());
            assert_eq!(found, (base, socket.map(std::path::Path::new), token), "{text}");
        }
    }

    #[test]
    fn errors_quote_no_secret() {
        for text in ["ftp://host/#token=secret", "host#token=secret", "http://ann:secret@host/", "unix:", ""]
        {
            let error = ServerAddress::parse(text).map(|_| ()).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
        }
    }
}
