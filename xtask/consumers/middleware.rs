//! Builds each layer; none needs a client.

use std::time::Duration;

use pintle_middleware::{CircuitBreaker, CircuitState, KnownModels, RateLimit, ResponseCache, TextToolCalls};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let breaker = CircuitBreaker::builder().with_threshold(3).with_cool_down(Duration::from_secs(20)).build()?;
    assert_eq!(breaker.state("any"), CircuitState::Closed);
    let cache = ResponseCache::builder().with_max_entries(1).build()?;
    assert_eq!(cache.stats().entries, 0);
    assert!(RateLimit::builder().build().is_err());
    println!("{:?} {:?}", KnownModels::new(), TextToolCalls::new([]));
    Ok(())
}
