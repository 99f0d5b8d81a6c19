//! Fields of JSON objects, with typed errors.

use serde_json::{Map, Value};

use super::lines::LineError;

/// An object that is being read, and its position in its line.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectFields<'a> {
    path: &'a str,
    fields: &'a Map<String, Value>,
}

impl<'a> ObjectFields<'a> {
    pub(super) fn new(path: &'a str, value: &'a Value) -> Result<Self, LineError> {
        let fields = value.as_object().ok_or_else(|| LineError::field(path, "an object"))?;
        Ok(Self { path, fields })
    }

    pub(super) fn map(&self) -> &'a Map<String, Value> {
        self.fields
    }

    /// Returns a field that is present and not null.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn required(&self, name: &str, expected: &str) -> Result<&'a Value, LineError> {
        self.get(name).ok_or_else(|| self.wrong(name, expected))
    }

    pub(super) fn text(&self, name: &str) -> Result<&'a str, LineError> {
        self.required(name, "a string")?.as_str().ok_or_else(|| self.wrong(name, "a string"))
    }

    pub(super) fn optional<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, LineError> {
        match self.get(name) {
            Some(value) => read(value).map(Some).ok_or_else(|| self.wrong(name, expected)),
            None => Ok(None),
        }
    }

    pub(super) fn optional_text(&self, name: &str) -> Result<Option<String>, LineError> {
        self.optional(name, "a string", |value| value.as_str().map(str::to_owned))
    }

    /// Returns a switch; off if it is missing.
    pub(super) fn switch(&self, name: &str) -> Result<bool, LineError> {
        Ok(self.optional(name, "true or false", Value::as_bool)?.unwrap_or(false))
    }

    /// Returns a list of strings; empty if it is missing.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, LineError> {
        let read = |value: &Value| {
            let items = value.as_array()?.iter();
            items.map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        };
        Ok(self.optional(name, "a list of strings", read)?.unwrap_or_default())
    }

    pub(super) fn wrong(&self, name: &str, expected: &str) -> LineError {
        LineError::field(format!("{}.{name}", self.path), expected)
    }
}
