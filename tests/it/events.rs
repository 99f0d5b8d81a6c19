//! Checks that hold for every event of every session: it matches the schema, numbers have no gaps, and starts and ends
//! are paired.
//!
//! The harnesses apply these checks to each of their sessions.

mod event_order;
mod page;
mod spans;
mod violations;

use std::sync::LazyLock;

use futures_util::FutureExt as _;
use jsonschema::Validator;
use pintle_agent::{Session, SessionEvent, TreeEvents, event_schema};
use serde_json::{Map, Value};

pub(crate) use self::event_order::EventOrder;

/// A subscriber that reads nothing until it is dropped, and then checks all events, including those of subagents.
pub(crate) struct CheckedEvents {
    events: TreeEvents,
}

impl CheckedEvents {
    pub(crate) fn of(session: &Session) -> Self {
        Self { events: session.tree_events() }
    }
}

impl Drop for CheckedEvents {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let mut order = EventOrder::default();
        // Only events that have happened by now are checked.
        while let Some(Some(event)) = self.events.next().now_or_never() {
            assert_described(&event);
            order.take(&event);
        }
    }
}

/// Panics unless the schema describes this event with all of its fields.
pub(crate) fn assert_described(event: &SessionEvent) {
    let value = serde_json::to_value(event).unwrap();
    if let Err(error) = described(&value) {
        panic!(
            "crates/agent/schema/events.json does not describe this event ({error}); extend crates/agent/src/event.rs \
             or, for a type of a lower layer, crates/agent/src/event/schema.rs:\n{value:#}"
        );
    }
}

/// Returns whether an event matches the schema and has no other fields.
fn described(event: &Value) -> Result<(), String> {
    static EXACT: LazyLock<Validator> = LazyLock::new(|| {
        let mut schema = event_schema();
        seal(&mut schema, true);
        jsonschema::draft202012::new(&schema).expect("the schema is one")
    });
    EXACT.validate(event).map_err(|error| format!("at `{}`: {error}", error.instance_path()))
}

/// Makes a schema reject fields that it does not name.
///
/// Alternatives within an object describe parts of it, so only the object itself is `sealed`.
fn seal(schema: &mut Value, sealed: bool) {
    match schema {
        Value::Object(schema) => seal_object(schema, sealed),
        Value::Array(schemas) => schemas.iter_mut().for_each(|schema| seal(schema, sealed)),
        _ => {}
    }
}

fn seal_object(schema: &mut Map<String, Value>, sealed: bool) {
    let names_fields = schema.contains_key("properties");
    for (keyword, value) in schema.iter_mut() {
        match keyword.as_str() {
            "properties" | "$defs" => {
                value.as_object_mut().into_iter().flatten().for_each(|(_, schema)| seal(schema, true));
            }
            "items" => seal(value, true),
            "oneOf" | "anyOf" | "allOf" => seal(value, sealed && !names_fields),
            _ => {}
        }
    }
    if names_fields && sealed {
        schema.insert("unevaluatedProperties".to_owned(), false.into());
    }
}
