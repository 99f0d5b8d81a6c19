//! Describes a server that opens nothing.

use pintle_server::{HostError, NewSession, Scope, ServerLimits, Token, Tokens};

fn main() {
    let limits = ServerLimits::default().with_sessions(1);
    assert_eq!(limits.sessions, 1);
    let (token, secret) = Token::generate("consumer", [Scope::Read]).expect("random numbers");
    assert!(!format!("{:?}", Tokens::new([token])).contains(&secret));
    assert_eq!(NewSession::default().directory, None);
    assert_eq!(HostError::Invalid("no".to_owned()).to_string(), "no");
}
