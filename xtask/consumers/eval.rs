//! Compares two shares of solved instances.

use pintle_eval::{AgentKind, Proportion, mcnemar};

fn main() {
    let solved = Proportion::new(12, 20);
    assert_eq!(solved.describe(), "12 of 20 (60.0 %, 38.7–78.1 %)");
    assert!(mcnemar(0, 8) < 0.05);
    assert_eq!("mini".parse(), Ok(AgentKind::Mini));
}
