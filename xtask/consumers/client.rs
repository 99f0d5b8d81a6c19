//! Describes a client, and what it would ask for.

use pintle_client::{Client, ClientError, EventId, NewSession};

fn main() {
    let client = Client::new("http://127.0.0.1:7468/#token=pintle_0123", None).expect("a URL");
    assert!(!format!("{client:?}").contains("pintle_0123"));
    let refused = Client::new("ftp://127.0.0.1/", None);
    assert!(matches!(refused, Err(ClientError::InvalidUrl { .. })));
    assert_eq!(NewSession::default().directory, None);
    assert_eq!(EventId::from("41-7").to_string(), "41-7");
}
