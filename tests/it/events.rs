//! What every event of every session has to be: as the schema says, numbered without gaps, its starts and ends paired.
//!
//! The lab and the kit hold each of their sessions to it, so that whatever a test makes happen is checked.

mod law;
mod noticed;
mod page;
mod spans;

use std::sync::LazyLock;

use futures_util::FutureExt as _;
use jsonschema::Validator;
use pintle_agent::{Session, SessionEvent, TreeEvents, event_schema};
use serde_json::{Map, Value};

pub(crate) use self::law::Law;

/// A subscriber that never reads before the end, and then holds all that happened, in subagents too, to schema and law.
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
        let mut law = Law::default();
        // What has not happened by now is not waited for.
        while let Some(Some(event)) = self.events.next().now_or_never() {
            assert_described(&event);
            law.take(&event);
        }
    }
}

/// Panics unless the schema describes this event, with every field that it has.
pub(crate) fn assert_described(event: &SessionEvent) {
    let value = serde_json::to_value(event).unwrap();
    if let Err(error) = described(&value) {
        panic!(
            "crates/agent/schema/events.json does not describe this event ({error}); extend crates/agent/src/event.rs \
             or, for a type of a lower layer, crates/agent/src/event/schema.rs:\n{value:#}"
        );
    }
}

/// Whether an event is as the schema says, with nothing besides.
fn described(event: &Value) -> Result<(), String> {
    static EXACT: LazyLock<Validator> = LazyLock::new(|| {
        let mut schema = event_schema();
        seal(&mut schema, true);
        jsonschema::draft202012::new(&schema).expect("the schema is one")
    });
    EXACT.validate(event).map_err(|error| format!("at `{}`: {error}", error.instance_path()))
}

/// Makes a schema refuse fields that it does not name.
///
/// Alternatives within an object describe a part of it, so it is the object that is `sealed`.
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
