//! Machines that were stored, such as in a workflow engine.

use serde_json::{Value, json};

use super::*;
use crate::turn::end_reasons::RoundEnd;

/// Fields that change together are in types, but the members of a stored machine keep their names.
#[test]
fn a_stored_machine_keeps_the_names_of_its_members() {
    let Value::Object(mut stored) = serde_json::to_value(Machine::default()).unwrap() else { unreachable!() };
    let members = [
        ("steering", json!([{"text": "now"}])),
        ("follow_ups", json!([{"text": "then"}])),
        ("waiting", json!([2, {"text": "later"}])),
        ("environment_lost", json!(false)),
        ("stopped_by_gate", json!(null)),
        ("question", json!("Which one?")),
        ("last_chain", json!(null)),
        ("chain_goes_on", json!(true)),
        ("chars", json!(400)),
        ("tool_chars", json!(40)),
        ("counted_prompt", json!({"tokens": 90, "chars": 400, "turns": 0})),
        ("context_warned", json!(true)),
        ("over_budget", json!({"budget": "tokens", "limit": 1, "spent": 2})),
    ];
    for (name, value) in members {
        assert!(stored.insert(name.to_owned(), value).is_some(), "{name}");
    }
    let mut machine: Machine = serde_json::from_value(Value::Object(stored)).unwrap();
    assert_eq!(machine.steering().collect::<Vec<_>>(), ["now"]);
    assert_eq!(machine.follow_ups().collect::<Vec<_>>(), ["then"]);
    assert_eq!(machine.queued.take_next_run(), Some((RunId(2), UserMessage::from("later"))));
    assert_eq!(machine.size.estimated_tokens(), 100);
    assert!(machine.end_reasons.has_limit());
    assert_eq!(machine.end_reasons.end_round(), RoundEnd::Question("Which one?".into()));
}
