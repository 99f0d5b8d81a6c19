//! Describes a server that opens nothing.

use pintle_server::{HostError, NewSession, TokenScope, ServerLimits, AccessToken, AccessTokens};

fn main() {
    let limits = ServerLimits::default().with_sessions(1);
    assert_eq!(limits.sessions, 1);
    let (token, secret) = AccessToken::generate("consumer", [TokenScope::Read]).expect("random numbers");
    assert!(!format!("{:?}", AccessTokens::new([token])).contains(&secret));
    assert_eq!(NewSession::default().directory, None);
    assert_eq!(HostError::Invalid("no".to_owned()).to_string(), "no");
}
