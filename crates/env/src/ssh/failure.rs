//! Why a host cannot be used: what the ssh client says, sorted once, here.

use std::{error::Error, fmt};

/// The most characters of the client's own words that an error carries.
const WORDS: usize = 1000;

/// Why there is no connection to a host: the cause below [`EnvError::Unreachable`](crate::EnvError::Unreachable)
/// and [`EnvError::EnvironmentLost`](crate::EnvError::EnvironmentLost).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SshError {
    /// The kind of failure.
    pub kind: SshErrorKind,
    /// The last words of the ssh client, cut to some lines; empty if it said nothing.
    pub words: String,
}

/// The kinds of failure of an ssh connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SshErrorKind {
    /// The name of the host or an option cannot be passed to ssh, or ssh refuses its configuration.
    Configuration,
    /// The name has no address.
    UnknownHost,
    /// Nobody listens there, or a firewall says no.
    Refused,
    /// There is no way to the host.
    NoRoute,
    /// The host did not answer within the limit for connecting.
    TimedOut,
    /// The host's key is not among the known ones, and nobody is asked.
    HostKeyUnknown,
    /// The host has another key than the one that is known: it may be another machine.
    HostKeyChanged,
    /// The host accepts none of our keys.
    AuthenticationFailed,
    /// The host allows fewer sessions on a connection than the environment uses.
    SessionRefused,
    /// The connection is gone.
    ConnectionLost,
    /// Before [`initialize`](crate::ExecutionEnvironment::initialize), or after
    /// [`cleanup`](crate::ExecutionEnvironment::cleanup).
    NotConnected,
    /// Anything else; the words tell.
    Other,
}

impl SshError {
    pub(super) fn new(kind: SshErrorKind) -> Self {
        Self { kind, words: String::new() }
    }

    /// Sorts what the client said when it did not get through.
    pub(super) fn of_connecting(words: &[u8]) -> Self {
        Self::sorted(words, SshErrorKind::Other)
    }

    /// Sorts what the client said when a connection ended that had been there.
    pub(super) fn of_connection(words: &[u8]) -> Self {
        Self::sorted(words, SshErrorKind::ConnectionLost)
    }

    fn sorted(words: &[u8], otherwise: SshErrorKind) -> Self {
        let words = String::from_utf8_lossy(words);
        // The client is started with the locale `C`, so that the system's words are these, too.
        let known = KINDS.iter().find(|(_, signs)| signs.iter().any(|sign| words.contains(sign)));
        Self { kind: known.map_or(otherwise, |(kind, _)| *kind), words: printable(&words) }
    }
}

/// What ssh says in which case, the more telling first: a changed key also fails the verification.
const KINDS: [(SshErrorKind, &[&str]); 9] = [
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
            Self::Configuration => "ssh does not accept the host's name or its configuration",
            Self::UnknownHost => "the name of the host has no address",
            Self::Refused => "the host refuses the connection",
            Self::NoRoute => "there is no way to the host",
            Self::TimedOut => "the host does not answer",
            Self::HostKeyUnknown => "the key of the host is not known",
            Self::HostKeyChanged => "the key of the host is not the known one",
            Self::AuthenticationFailed => "the host accepts none of our keys",
            Self::SessionRefused => "the host allows no further session on the connection",
            Self::ConnectionLost => "the ssh connection has ended",
            Self::NotConnected => "there is no ssh connection",
            Self::Other => "the ssh client failed",
        }
    }
}

impl fmt::Display for SshError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.text())?;
        match self.words.as_str() {
            "" => Ok(()),
            words => write!(f, " ({words})"),
        }
    }
}

impl Error for SshError {}

/// The last of the words in one line, without anything that a terminal would obey.
fn printable(words: &str) -> String {
    let words: String = words
        .chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .filter(|character| *character != '@')
        .collect();
    let words: Vec<_> = words.split_whitespace().collect();
    let words = words.join(" ");
    let excess = words.chars().count().saturating_sub(WORDS);
    words.chars().skip(excess).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_says_is_sorted() {
        for (words, kind) in [
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
            assert_eq!(SshError::of_connecting(words.as_bytes()).kind, kind, "{words}");
        }
        assert_eq!(
            SshError::of_connection(b"Timeout, server x not responding.").kind,
            SshErrorKind::ConnectionLost
        );
    }

    #[test]
    fn words_are_one_line_that_obeys_nobody() {
        let error = SshError::of_connecting(b"\x1b[2Ja\r\nb\0 \xff");
        assert_eq!(error.to_string(), "the ssh client failed ([2Ja b \u{fffd})");
        assert_eq!(SshError::new(SshErrorKind::NotConnected).to_string(), "there is no ssh connection");
        let long = "ä".repeat(5000);
        assert_eq!(SshError::of_connecting(long.as_bytes()).words.chars().count(), WORDS);
    }
}
