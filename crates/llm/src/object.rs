//! Structured output: responses that are JSON and match a schema (client specification, sections 4.5 and 4.6).

mod answer;
mod partial;
mod schema;
mod stream;

#[cfg(test)]
mod tests;

pub use answer::{AnswerSchema, UnmatchedAnswer, Verdict};
pub use partial::PartialJson;
pub use stream::ObjectStream;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::schema::ObjectSchema;
use crate::error::{Error, ErrorKind};
use crate::generate::{self, GenerateOptions, GenerateResult};
use crate::response::Finish;

/// Limit on the text kept in an error, in bytes.
const MAX_RAW: usize = 64 * 1024;

/// Generates an object that matches a JSON Schema.
///
/// The schema is sent in the provider's way and replaces the options' response format: OpenAI, Gemini and Claude from 4.5 on
/// enforce it; for other models of Anthropic it is part of the system prompt. If this excludes no useful object, a stricter
/// form of the schema is sent: objects are closed, and a property that may be missing or null is required. The response is
/// checked against the original schema, after removing a Markdown fence around it.
///
/// Model calls are retried by the retry policy. A response that does not match is not retried.
///
/// # Errors
///
/// As for [`generate`](crate::generate); [`ErrorKind::Configuration`] before anything is sent if `schema` is not a JSON
/// Schema with an object at its root; [`ErrorKind::NoObjectGenerated`] if the response is not JSON or does not match. The
/// latter carries the first 64 KiB of the text ([`raw`](Error::raw)), the id of the response
/// ([`response_id`](Error::response_id)) and the tokens of all steps ([`usage`](Error::usage)).
pub async fn generate_object(
    options: GenerateOptions,
    schema: Value,
) -> Result<GenerateResult<Value>, Error> {
    generate_as(options, ObjectSchema::new(schema)?).await
}

/// As [`generate_object`], with the schema of a type. Doc comments of its fields describe them to the model.
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
/// #         Err(Error::new(ErrorKind::Configuration, "no streaming"))
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
/// # let client = Client::builder().provider(Extractor).default_provider("extractor").build()?;
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
/// As for [`generate_object`], also for a response that matches the schema but not the type.
pub async fn generate_object_as<T>(options: GenerateOptions) -> Result<GenerateResult<T>, Error>
where
    T: DeserializeOwned + JsonSchema,
{
    generate_as(options, ObjectSchema::new(generate::schema::schema_of::<T>())?).await
}

/// As [`generate_object`], as a stream of partial objects.
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
/// #         Err(Error::new(ErrorKind::Configuration, "streaming only"))
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
/// # let client = Client::builder().provider(Cook).default_provider("cook").build()?;
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
/// [`ErrorKind::Configuration`] as for [`generate_object`]; other errors are items of the stream.
pub fn stream_object(options: GenerateOptions, schema: Value) -> Result<ObjectStream<Value>, Error> {
    stream_as(options, ObjectSchema::new(schema)?)
}

/// As [`stream_object`], with the schema of a type. Partial objects are JSON; the complete object has the type.
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
    with_object(&schema, generate::generate(options).await?)
}

fn stream_as<T: DeserializeOwned>(
    options: GenerateOptions,
    schema: ObjectSchema,
) -> Result<ObjectStream<T>, Error> {
    let options = options.with_response_format(schema.format().clone());
    Ok(ObjectStream::new(generate::stream(options)?, schema))
}

/// Parses the object in the result's text.
fn with_object<T: DeserializeOwned>(
    schema: &ObjectSchema,
    result: GenerateResult,
) -> Result<GenerateResult<T>, Error> {
    let output = parse(schema, &result)?;
    Ok(result.with_output(output))
}

fn parse<T: DeserializeOwned>(schema: &ObjectSchema, result: &GenerateResult) -> Result<T, Error> {
    let response = &result.response;
    let text = response.text();
    let failed = |problem: String| {
        let problem = match response.finish_reason.reason {
            Finish::Stop | Finish::Other => problem,
            Finish::Length => format!("{problem} (truncated at the output limit)"),
            Finish::ContentFilter => format!("{problem} (ended by a content filter or a refusal)"),
            Finish::ToolCalls => format!("{problem} (the model requested tool calls)"),
            Finish::Error => format!("{problem} (the generation failed)"),
        };
        let error = Error::new(ErrorKind::NoObjectGenerated, problem)
            .with_provider(response.provider.clone())
            .with_usage(result.total_usage.clone())
            .with_raw(Value::from(truncated(&text)));
        if response.id.is_empty() { error } else { error.with_response_id(response.id.clone()) }
    };
    let object: Value = serde_json::from_str(strip_fence(&text))
        .map_err(|error| failed("the response is not JSON".to_owned()).with_source(error))?;
    if let Some(violations) = schema.violations(&object) {
        return Err(failed(format!("the response does not match the schema: {violations}")));
    }
    serde_json::from_value(object)
        .map_err(|error| failed("the response does not match the type".to_owned()).with_source(error))
}

/// Removes a Markdown fence around the complete text: three or more backticks or tildes.
fn strip_fence(text: &str) -> &str {
    let text = text.trim();
    let Some(mark) = text.chars().next().filter(|mark| matches!(mark, '`' | '~')) else { return text };
    let after = text.trim_start_matches(mark);
    match after.split_once('\n') {
        Some((_language, body)) if text.len() - after.len() >= 3 => body.trim_end_matches(mark),
        Some(_) | None => text,
    }
}

fn truncated(text: &str) -> &str {
    let mut end = text.len().min(MAX_RAW);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
