//! Structured output: answers that are JSON and fit a schema (client specification, sections 4.5 and 4.6).

mod partial;
mod schema;
mod stream;

#[cfg(test)]
mod tests;

pub use partial::PartialJson;
pub use stream::ObjectStream;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::schema::ObjectSchema;
use crate::error::{Error, ErrorKind};
use crate::generate::{self, GenerateOptions, GenerateResult};
use crate::response::{Finish, Response};

/// How much of a text that is no object the error keeps, in bytes.
const MAX_RAW: usize = 64 * 1024;

/// Generates an object that fits a JSON Schema.
///
/// The schema goes to the provider in its own way: OpenAI and Gemini enforce it, Anthropic is told of it in the system
/// prompt; it replaces the options' response format. Where that excludes nothing that the model should be free to say,
/// the form that is sent is stricter than the schema: objects are closed, and a property that may be missing or null must
/// be there. The answer is then checked against the schema as given. A Markdown fence around it is taken off.
///
/// A model call is tried again by the retry policy; an answer that does not fit is not.
///
/// # Errors
///
/// As for [`generate`](crate::generate); [`ErrorKind::Configuration`] before anything is sent if `schema` is no JSON Schema
/// with an object at its root; [`ErrorKind::NoObjectGenerated`] if the answer is no JSON or does not fit. The latter's
/// [`raw`](Error::raw) is the text that came, its first 64 KiB.
pub async fn generate_object(
    options: GenerateOptions,
    schema: Value,
) -> Result<GenerateResult<Value>, Error> {
    generate_as(options, ObjectSchema::new(schema)?).await
}

/// As [`generate_object`], with the schema of a type, whose doc comments describe the fields to the model.
///
/// ```
/// # use async_trait::async_trait;
/// use pintle_llm::{Error, GenerateOptions, generate_object_as};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// # use pintle_llm::*;
/// # #[derive(Debug)]
/// # struct Extractor;
/// # #[async_trait]
/// # impl ProviderAdapter for Extractor {
/// #     fn name(&self) -> &str { "extractor" }
/// #     async fn complete(&self, request: &Request) -> Result<Response, Error> {
/// #         let message = Message::assistant(r#"{"name": "Alice", "age": 30}"#);
/// #         Ok(Response::new("extractor", &request.model, message))
/// #     }
/// #     async fn stream(&self, _: &Request) -> Result<EventStream, Error> {
/// #         Err(Error::new(ErrorKind::Configuration, "it does not stream"))
/// #     }
/// # }
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Person {
///     name: String,
///     /// In years.
///     age: u32,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// # let client = Client::builder().provider(Extractor).build()?;
/// let options = GenerateOptions::new("gpt-5.2")
///     .with_client(client)
///     .with_prompt("Extract the person: Alice is 30 years old.");
/// let person = generate_object_as::<Person>(options).await?.output;
/// assert_eq!((person.name.as_str(), person.age), ("Alice", 30));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As for [`generate_object`]; an answer that fits the schema and not the type is none either.
pub async fn generate_object_as<T>(options: GenerateOptions) -> Result<GenerateResult<T>, Error>
where
    T: DeserializeOwned + JsonSchema,
{
    generate_as(options, ObjectSchema::new(generate::schema::schema_of::<T>())?).await
}

/// As [`generate_object`], while it forms: each item is the object so far.
///
/// ```
/// # use async_trait::async_trait;
/// use pintle_llm::{Error, GenerateOptions, stream_object};
/// use serde_json::json;
/// # use pintle_llm::*;
/// # #[derive(Debug)]
/// # struct Cook;
/// # #[async_trait]
/// # impl ProviderAdapter for Cook {
/// #     fn name(&self) -> &str { "cook" }
/// #     async fn complete(&self, _: &Request) -> Result<Response, Error> {
/// #         Err(Error::new(ErrorKind::Configuration, "it streams only"))
/// #     }
/// #     async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
/// #         let text = r#"{"recipes": ["Soup", "Salad"]}"#;
/// #         let response = Response::new("cook", &request.model, Message::assistant(text));
/// #         let mut events = vec![StreamEvent::TextStart { text_id: "0".into() }];
/// #         events.extend(text.split_inclusive(' ').map(|piece| StreamEvent::TextDelta {
/// #             text_id: "0".into(),
/// #             delta: piece.into(),
/// #         }));
/// #         events.push(StreamEvent::TextEnd { text_id: "0".into(), signature: None });
/// #         events.push(StreamEvent::Finish {
/// #             finish_reason: response.finish_reason.clone(),
/// #             usage: response.usage.clone(),
/// #             response: Box::new(response),
/// #         });
/// #         Ok(Box::pin(futures_util::stream::iter(events.into_iter().map(Ok))))
/// #     }
/// # }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let schema = json!({
///     "type": "object",
///     "properties": {"recipes": {"type": "array", "items": {"type": "string"}}},
///     "required": ["recipes"],
/// });
/// # let client = Client::builder().provider(Cook).build()?;
/// let options = GenerateOptions::new("gpt-5.2").with_client(client).with_prompt("Two recipes, please.");
/// let mut recipes = stream_object(options, schema)?;
/// let mut counts = Vec::new();
/// while let Some(partial) = recipes.next().await {
///     counts.push(partial?["recipes"].as_array().map(Vec::len));
/// }
/// assert_eq!(counts, [None, Some(1), Some(2)]);
/// assert_eq!(recipes.object().await?, json!({"recipes": ["Soup", "Salad"]}));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`ErrorKind::Configuration`] as for [`generate_object`]; everything else comes through the stream.
pub fn stream_object(options: GenerateOptions, schema: Value) -> Result<ObjectStream<Value>, Error> {
    stream_as(options, ObjectSchema::new(schema)?)
}

/// As [`stream_object`], with the schema of a type. What forms is JSON; only the whole object is of the type.
///
/// # Errors
///
/// As for [`stream_object`].
pub fn stream_object_as<T>(options: GenerateOptions) -> Result<ObjectStream<T>, Error>
where
    T: DeserializeOwned + JsonSchema,
{
    stream_as(options, ObjectSchema::new(generate::schema::schema_of::<T>())?)
}

async fn generate_as<T: DeserializeOwned>(
    options: GenerateOptions,
    schema: ObjectSchema,
) -> Result<GenerateResult<T>, Error> {
    let options = options.with_response_format(schema.format().clone());
    read(&schema, generate::generate(options).await?)
}

fn stream_as<T: DeserializeOwned>(
    options: GenerateOptions,
    schema: ObjectSchema,
) -> Result<ObjectStream<T>, Error> {
    let options = options.with_response_format(schema.format().clone());
    Ok(ObjectStream::new(generate::stream(options)?, schema))
}

/// The result with the object that its text is.
fn read<T: DeserializeOwned>(
    schema: &ObjectSchema,
    result: GenerateResult,
) -> Result<GenerateResult<T>, Error> {
    let output = parse(schema, &result.response)?;
    Ok(result.with_output(output))
}

fn parse<T: DeserializeOwned>(schema: &ObjectSchema, response: &Response) -> Result<T, Error> {
    let text = response.text();
    let failed = |problem: String| {
        let problem = match response.finish_reason.reason {
            Finish::Stop | Finish::Other => problem,
            Finish::Length => format!("{problem}, and the output limit cut it off"),
            Finish::ContentFilter => format!("{problem}, and a filter or a refusal ended it"),
            Finish::ToolCalls => format!("{problem}, and the model still wants tools called"),
            Finish::Error => format!("{problem}, and the generation failed"),
        };
        Error::new(ErrorKind::NoObjectGenerated, problem)
            .with_provider(response.provider.clone())
            .with_raw(Value::from(beginning(&text)))
    };
    let object: Value = serde_json::from_str(unfenced(&text))
        .map_err(|error| failed("the answer is no JSON".to_owned()).with_source(error))?;
    if let Some(mistakes) = schema.mistakes(&object) {
        return Err(failed(format!("the answer does not fit the schema: {mistakes}")));
    }
    serde_json::from_value(object)
        .map_err(|error| failed("the answer does not fit the type".to_owned()).with_source(error))
}

/// The text without a Markdown fence around all of it: three backticks or tildes, or more.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let Some(mark) = text.chars().next().filter(|mark| matches!(mark, '`' | '~')) else { return text };
    let behind = text.trim_start_matches(mark);
    match behind.split_once('\n') {
        Some((_language, body)) if text.len() - behind.len() >= 3 => body.trim_end_matches(mark),
        Some(_) | None => text,
    }
}

/// As much of a text as an error keeps.
fn beginning(text: &str) -> &str {
    let mut end = text.len().min(MAX_RAW);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
