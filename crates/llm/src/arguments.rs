//! The arguments of a call, which many hold at a time.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The parsed arguments of a tool call.
///
/// It reads like the [`Value`] that it holds. Clones share that value, since the history, the events and the tool of a
/// session all have the arguments, which may be a file of megabytes.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallArguments(Arc<Value>);

impl CallArguments {
    /// The value, to change it. It is copied if it is shared.
    pub fn to_mut(&mut self) -> &mut Value {
        Arc::make_mut(&mut self.0)
    }

    /// The value itself. It is copied if it is shared.
    #[must_use]
    pub fn into_value(self) -> Value {
        Arc::unwrap_or_clone(self.0)
    }
}

impl Deref for CallArguments {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl fmt::Debug for CallArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for CallArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Default for CallArguments {
    fn default() -> Self {
        Value::Object(Map::new()).into()
    }
}

impl From<Value> for CallArguments {
    fn from(value: Value) -> Self {
        Self(Arc::new(value))
    }
}

impl PartialEq<Value> for CallArguments {
    fn eq(&self, other: &Value) -> bool {
        *self.0 == *other
    }
}

impl PartialEq<CallArguments> for Value {
    fn eq(&self, other: &CallArguments) -> bool {
        other == self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn clones_share_the_value_until_one_is_changed() {
        let arguments = CallArguments::from(json!({"path": "a"}));
        let mut changed = arguments.clone();
        assert!(std::ptr::eq(&*arguments, &*changed));
        if let Some(fields) = changed.to_mut().as_object_mut() {
            fields.insert("path".to_owned(), json!("b"));
        }
        assert_eq!((&arguments["path"], &changed["path"]), (&json!("a"), &json!("b")));
        assert_eq!(arguments.clone().into_value(), json!({"path": "a"}));
        assert_eq!(serde_json::to_string(&arguments).unwrap(), r#"{"path":"a"}"#);
    }
}
