//! Provider options of a request.

use pintle_llm::{Error, ErrorKind, Request};
use serde_json::{Map, Value};

/// Returns the options of a request for this provider, if any.
///
/// # Errors
///
/// [`ErrorKind::Configuration`] if they are not an object.
pub(crate) fn options_for<'a>(
    request: &'a Request,
    provider: &str,
) -> Result<Option<&'a Map<String, Value>>, Error> {
    match request.provider_options.get(provider) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(options)) => Ok(Some(options)),
        Some(found) => Err(invalid_option(provider, "", "an object", found)),
    }
}

/// Returns the value of a list option, empty if it is absent.
///
/// # Errors
///
/// [`ErrorKind::Configuration`] if it is not a list.
pub(crate) fn list_option<'a>(
    options: Option<&'a Map<String, Value>>,
    provider: &str,
    name: &str,
) -> Result<&'a [Value], Error> {
    match options.and_then(|options| options.get(name)) {
        None => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(found) => Err(invalid_option(provider, name, "a list", found)),
    }
}

/// Returns the error for an option of the wrong type. An empty name means the options as a whole.
pub(crate) fn invalid_option(provider: &str, name: &str, expected: &str, found: &Value) -> Error {
    let dot = if name.is_empty() { "" } else { "." };
    let message = format!("provider_options.{provider}{dot}{name} must be {expected}; found {found}");
    Error::new(ErrorKind::Configuration, message).with_provider(provider)
}
