//! Uses the library `pintle` alone, from its package: the layers without a feature are reachable through it.

use pintle::prelude::*;

fn main() {
    let client = Client::builder().build();
    assert!(client.is_ok(), "a client needs no provider to be built");
    let profile = ProviderProfile::anthropic("claude-opus-4-6");
    assert!(!profile.tools().is_empty());
    let patch = pintle::patch::parse("*** Begin Patch\n*** Delete File: a\n*** End Patch\n");
    assert_eq!(patch.map(|patch| patch.paths().len()).ok(), Some(1));
}
