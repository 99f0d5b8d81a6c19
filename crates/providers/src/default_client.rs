//! High-level functions with a default client from the environment (client specification, section 2.5).
//!
//! They are in this crate because `pintle-llm` reads no environment and knows no provider.

use pintle_llm::{
    Client, Error, GenerateOptions, GenerateResult, ObjectStream, StreamResult, default_client_or_init,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::FromEnv as _;

/// Returns the default client of the process: the client of [`set_default_client`](pintle_llm::set_default_client), else
/// one that is created from the environment on first use, by the rules of [`FromEnv`](crate::FromEnv).
///
/// # Errors
///
/// As for [`FromEnv::from_env`](crate::FromEnv::from_env). After a failure the next call tries again.
pub fn default_client() -> Result<Client, Error> {
    default_client_or_init(Client::from_env)
}

/// [`pintle_llm::generate`] with [`default_client`] if the options have no client.
///
/// # Errors
///
/// As for both functions.
pub async fn generate(options: GenerateOptions) -> Result<GenerateResult, Error> {
    pintle_llm::generate(with_client(options)?).await
}

/// [`pintle_llm::stream`] with [`default_client`] if the options have no client.
///
/// # Errors
///
/// As for both functions.
pub fn stream(options: GenerateOptions) -> Result<StreamResult, Error> {
    pintle_llm::stream(with_client(options)?)
}

/// [`pintle_llm::generate_object`] with [`default_client`] if the options have no client.
///
/// # Errors
///
/// As for both functions.
pub async fn generate_object(
    options: GenerateOptions,
    schema: Value,
) -> Result<GenerateResult<Value>, Error> {
    pintle_llm::generate_object(with_client(options)?, schema).await
}

/// [`pintle_llm::generate_object_as`] with [`default_client`] if the options have no client.
///
/// # Errors
///
/// As for both functions.
pub async fn generate_object_as<T>(options: GenerateOptions) -> Result<GenerateResult<T>, Error>
where
    T: DeserializeOwned + JsonSchema,
{
    pintle_llm::generate_object_as(with_client(options)?).await
}

/// [`pintle_llm::stream_object`] with [`default_client`] if the options have no client.
///
/// # Errors
///
/// As for both functions.
pub fn stream_object(options: GenerateOptions, schema: Value) -> Result<ObjectStream, Error> {
    pintle_llm::stream_object(with_client(options)?, schema)
}

/// [`pintle_llm::stream_object_as`] with [`default_client`] if the options have no client.
///
/// # Errors
///
/// As for both functions.
pub fn stream_object_as<T>(options: GenerateOptions) -> Result<ObjectStream<T>, Error>
where
    T: DeserializeOwned + JsonSchema,
{
    pintle_llm::stream_object_as(with_client(options)?)
}

fn with_client(options: GenerateOptions) -> Result<GenerateOptions, Error> {
    Ok(if options.client.is_some() { options } else { options.with_client(default_client()?) })
}
