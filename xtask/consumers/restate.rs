//! Finds out that an engine is not there, and what an address is.

use pintle_restate::{Engine, EngineError};

fn main() {
    let refused = Engine::new("https://engine.example");
    assert!(matches!(refused, Err(EngineError::Address(_))));
    assert!(Engine::new("http://127.0.0.1:8080").is_ok());
}
