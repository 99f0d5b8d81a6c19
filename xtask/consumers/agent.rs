//! Uses the turn machine of `pintle-agent`, which needs no runtime.

use pintle_agent::protocol::{Action, Input, InputKind};
use pintle_agent::turn::Machine;
use pintle_agent::{RunId, SessionState, Timestamp, TurnLimits};

fn main() {
    let mut machine = Machine::new(TurnLimits::default(), None);
    let submit = InputKind::Submit { run: RunId(1), message: "hello".into() };
    let actions = machine.step(Input::new(Timestamp::from_millis(0), submit));
    assert!(actions.iter().any(|action| matches!(action, Action::LoadContext { .. })));
    assert_eq!(machine.state(), SessionState::Processing);
}
