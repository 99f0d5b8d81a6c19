//! Classification of connection failures by the messages of the ssh client.

use std::{error::Error, fmt};

/// Maximum number of characters of the client's message kept in an error.
const MAX_MESSAGE: usize = 1000;

/// Cause of a failed connection to a remote host: the source of
/// [`EnvError::Unreachable`](crate::EnvError::Unreachable) and
/// [`EnvError::EnvironmentLost`](crate::EnvError::EnvironmentLost).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SshError {
    /// The kind of failure.
    pub kind: SshErrorKind,
    /// The last messages of the ssh client, truncated; empty if there was none.
    pub message: String,
}

/// Kind of a failed ssh connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SshErrorKind {
    /// ssh rejects its configuration, the host name, or an option.
    Configuration,
    /// The host name cannot be resolved.
    UnknownHost,
    /// The connection was refused by the host or a firewall.
    Refused,
    /// There is no route to the host.
    NoRoute,
    /// The host did not answer within the connect time-out.
    TimedOut,
    /// The host key is unknown, and confirmation is never requested.
    HostKeyUnknown,
    /// The host key differs from the known one: it may be another machine.
    HostKeyChanged,
    /// The host accepts none of the user's keys.
    AuthenticationFailed,
    /// The server allows fewer sessions per connection than the environment uses.
    SessionRefused,
    /// The connection was lost.
    ConnectionLost,
    /// Not connected: before [`initialize`](crate::ExecutionEnvironment::initialize) or after
    /// [`cleanup`](crate::ExecutionEnvironment::cleanup).
    NotConnected,
    /// Any other failure; see the message.
    Other,
}

impl SshError {
    pub(super) fn new(kind: SshErrorKind) -> Self {
        Self { kind, message: String::new() }
    }

    /// Classifies the client's message after a failed attempt to connect.
    pub(super) fn of_connecting(message: &[u8]) -> Self {
        Self::classify(message, SshErrorKind::Other)
    }

    /// Classifies the client's message after an established connection ended.
    pub(super) fn of_connection(message: &[u8]) -> Self {
        Self::classify(message, SshErrorKind::ConnectionLost)
    }

    fn classify(message: &[u8], otherwise: SshErrorKind) -> Self {
        let message = String::from_utf8_lossy(message);
        // The client runs in the locale `C`, so messages of the system match too.
        let known =
            MESSAGES.iter().find(|(_, patterns)| patterns.iter().any(|pattern| message.contains(pattern)));
        Self { kind: known.map_or(otherwise, |(kind, _)| *kind), message: printable(&message) }
    }
}

/// Known messages by kind, more specific ones first: a changed key also fails verification.
const MESSAGES: [(SshErrorKind, &[&str]); 9] = [
    (SshErrorKind::Configuration, &["onfiguration option", "user config file", "hostname contains invalid"]),
    (SshErrorKind::HostKeyChanged, &["HOST IDENTIFICATION HAS CHANGED", "REVOKED HOST KEY"]),
    (SshErrorKind::HostKeyUnknown, &["Host key verification failed", "host key is known"]),
    (SshErrorKind::AuthenticationFailed, &["Permission denied (", "Too many authentication failures"]),
    (SshErrorKind::SessionRefused, &["ession open refused", "ession request failed"]),
    (SshErrorKind::UnknownHost, &["Could not resolve hostname"]),
    (SshErrorKind::Refused, &["Connection refused"]),
    (SshErrorKind::NoRoute, &["No route to host", "Network is unreachable"]),
    (SshErrorKind::TimedOut, &["Connection timed out", "Operation timed out"]),
];

impl SshErrorKind {
    fn text(self) -> &'static str {
        match self {
            Self::Configuration => "ssh rejected the host name or its configuration",
            Self::UnknownHost => "cannot resolve the host name",
            Self::Refused => "the host refused the connection",
            Self::NoRoute => "no route to the host",
            Self::TimedOut => "the host did not answer in time",
            Self::HostKeyUnknown => "the host key is unknown",
            Self::HostKeyChanged => "the host key has changed",
            Self::AuthenticationFailed => "the host accepted none of the keys",
            Self::SessionRefused => "the host refused a further session on the connection",
            Self::ConnectionLost => "the ssh connection was lost",
            Self::NotConnected => "no ssh connection",
            Self::Other => "the ssh client failed",
        }
    }
}

impl fmt::Display for SshError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.text())?;
        match self.message.as_str() {
            "" => Ok(()),
            message => write!(f, " ({message})"),
        }
    }
}

impl Error for SshError {}

/// Returns the end of a message in one line, without control characters.
fn printable(message: &str) -> String {
    let message: String = message
        .chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .filter(|character| *character != '@')
        .collect();
    let words: Vec<_> = message.split_whitespace().collect();
    let message = words.join(" ");
    let excess = message.chars().count().saturating_sub(MAX_MESSAGE);
    message.chars().skip(excess).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_messages_are_classified() {
        for (message, kind) in [
            ("ssh: Could not resolve hostname x: Name or service not known", SshErrorKind::UnknownHost),
            ("ssh: connect to host 127.0.0.1 port 1: Connection refused", SshErrorKind::Refused),
            ("ssh: connect to host x port 22: Network is unreachable", SshErrorKind::NoRoute),
            ("ssh: connect to host x port 22: Connection timed out", SshErrorKind::TimedOut),
            (
                "No ED25519 host key is known for x and you have requested strict checking.\n\
                 Host key verification failed.",
                SshErrorKind::HostKeyUnknown,
            ),
            (
                "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
                SshErrorKind::HostKeyChanged,
            ),
            ("x@y: Permission denied (publickey).", SshErrorKind::AuthenticationFailed),
            ("/c: line 1: Bad configuration option: nosuch", SshErrorKind::Configuration),
            ("Can't open user config file /c: No such file", SshErrorKind::Configuration),
            (
                "mux_client_request_session: session request failed: Session open refused by peer",
                SshErrorKind::SessionRefused,
            ),
            ("something new", SshErrorKind::Other),
        ] {
            assert_eq!(SshError::of_connecting(message.as_bytes()).kind, kind, "{message}");
        }
        assert_eq!(
            SshError::of_connection(b"Timeout, server x not responding.").kind,
            SshErrorKind::ConnectionLost
        );
    }

    #[test]
    fn messages_are_one_printable_line() {
        let error = SshError::of_connecting(b"\x1b[2Ja\r\nb\0 \xff");
        assert_eq!(error.to_string(), "the ssh client failed ([2Ja b \u{fffd})");
        assert_eq!(SshError::new(SshErrorKind::NotConnected).to_string(), "no ssh connection");
        let long = "ä".repeat(5000);
        assert_eq!(SshError::of_connecting(long.as_bytes()).message.chars().count(), MAX_MESSAGE);
    }
}
