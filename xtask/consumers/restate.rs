//! Finds out that an engine is not there, and what an address is.

use pintle_restate::{EngineError, RestateEngine};

fn main() {
    let refused = RestateEngine::new("https://engine.example");
    assert!(matches!(refused, Err(EngineError::Address(_))));
    assert!(RestateEngine::new("http://127.0.0.1:8080").is_ok());
}
