//! Builds an adapter for a local server, and checks that an invalid base URL is refused.

use pintle_providers::{Anthropic, OpenAi};

fn main() {
    let local =
        OpenAi::builder("a-key").with_base_url("http://127.0.0.1:8080/v1").build().expect("a complete adapter");
    assert!(!format!("{local:?}").contains("a-key"));
    let refused = Anthropic::builder("a-key").with_base_url("no address").build().expect_err("not a URL");
    assert!(refused.to_string().len() > 10);
}
