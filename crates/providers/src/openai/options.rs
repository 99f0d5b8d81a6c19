//! The options that a request has for one provider.

use pintle_llm::{Error, ErrorKind, Request};
use serde_json::{Map, Value};

/// The options of a request for this provider; none if it has none.
///
/// # Errors
///
/// [`ErrorKind::Configuration`] if what stands there is no object.
pub(crate) fn options_for<'a>(
    request: &'a Request,
    provider: &str,
) -> Result<Option<&'a Map<String, Value>>, Error> {
    match request.provider_options.get(provider) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(options)) => Ok(Some(options)),
        Some(found) => Err(misfit(provider, "", "an object", found)),
    }
}

/// The list that an option holds; empty if it is not given.
///
/// # Errors
///
/// [`ErrorKind::Configuration`] if it is no list.
pub(crate) fn list_option<'a>(
    options: Option<&'a Map<String, Value>>,
    provider: &str,
    name: &str,
) -> Result<&'a [Value], Error> {
    match options.and_then(|options| options.get(name)) {
        None => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(found) => Err(misfit(provider, name, "a list", found)),
    }
}

/// An option that is not what it must be. No name means the options as a whole.
pub(crate) fn misfit(provider: &str, name: &str, expected: &str, found: &Value) -> Error {
    let dot = if name.is_empty() { "" } else { "." };
    let message = format!("provider_options.{provider}{dot}{name} must be {expected}; found {found}");
    Error::new(ErrorKind::Configuration, message).with_provider(provider)
}
