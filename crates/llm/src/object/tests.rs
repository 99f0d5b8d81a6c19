use std::net::Ipv4Addr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::adapter::ProviderAdapter;
use crate::client::Client;
use crate::message::Message;
use crate::request::ResponseFormat;
use crate::testing::FakeAdapter;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Person {
    name: String,
    age: Option<u8>,
    /// Where the person can be reached.
    #[serde(default)]
    address: Option<Ipv4Addr>,
}

fn client(adapter: FakeAdapter) -> (GenerateOptions, Arc<FakeAdapter>) {
    let adapter = Arc::new(adapter);
    let shared = Arc::clone(&adapter) as Arc<dyn ProviderAdapter>;
    let client = Client::builder().shared_provider(shared).build().unwrap();
    (GenerateOptions::new("m").with_client(client).with_prompt("Extract: Alice is 30"), adapter)
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
    })
}

#[tokio::test]
async fn the_object_is_parsed_and_validated() {
    let answers = [
        r#"{"name": "Alice", "age": 30}"#,
        "\n {\"name\":\"Alice\",\"age\":30}\n",
        "```json\n{\"name\": \"Alice\", \"age\": 30}\n```",
        "```\n{\"name\": \"Alice\", \"age\": 30}```\n",
        "~~~ json\n{\"name\": \"Alice\", \"age\": 30}\n~~~",
        "````json\n{\"name\": \"Alice\", \"age\": 30}\n````",
    ];
    for text in answers {
        let (options, adapter) = client(FakeAdapter::new("fake").answer(text));
        let result = generate_object(options, schema()).await.unwrap();
        assert_eq!(result.output, json!({"name": "Alice", "age": 30}));
        assert_eq!(result.text(), text);
        let mut closed = schema();
        closed["additionalProperties"] = false.into();
        let expected = ResponseFormat::JsonSchema { json_schema: closed, strict: true };
        assert_eq!(adapter.requests()[0].response_format, Some(expected));
    }
}

#[tokio::test]
async fn what_is_no_such_object_is_an_error_with_the_text() {
    let rows = [
        ("Alice is 30.", Finish::Stop, "the answer is no JSON"),
        (r#"{"name": "Alice", "#, Finish::Length, "the answer is no JSON, and the output limit cut it off"),
        ("", Finish::ContentFilter, "the answer is no JSON, and a filter or a refusal ended it"),
        (
            r#"{"name": "Alice", "age": "thirty"}"#,
            Finish::Stop,
            "the answer does not fit the schema: `/age`: \"thirty\" is not of type \"integer\"",
        ),
        (
            r#"{"name": "Alice"}"#,
            Finish::Stop,
            "the answer does not fit the schema: \"age\" is a required property",
        ),
    ];
    for (text, finish, message) in rows {
        let script = || FakeAdapter::new("fake").finished(Message::assistant(text), finish).answer("never");
        let (options, adapter) = client(script());
        let error = generate_object(options, schema()).await.unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::NoObjectGenerated, message));
        assert_eq!((error.raw(), error.provider()), (Some(&Value::from(text)), Some("fake")));
        assert_eq!(adapter.requests().len(), 1, "it is not asked again");

        let (options, _) = client(script());
        let mut stream = stream_object(options, schema()).unwrap();
        let mut last = None;
        while let Some(item) = stream.next().await {
            last = Some(item.cloned());
        }
        let streamed = last.unwrap().unwrap_err();
        assert_eq!((streamed.kind(), streamed.message()), (ErrorKind::NoObjectGenerated, message));
        assert!(stream.next().await.is_none());
        assert_eq!(stream.object().await.unwrap_err().message(), message);
    }
}

#[tokio::test]
async fn an_error_keeps_a_bounded_text() {
    let (options, _) = client(FakeAdapter::new("fake").answer("ä".repeat(100_000)));
    let error = generate_object(options, schema()).await.unwrap_err();
    assert_eq!(error.raw().unwrap().as_str().unwrap().len(), MAX_RAW);
    assert!(error.to_string().len() < 1000, "{error}");
}

#[tokio::test]
async fn a_type_is_its_own_schema() {
    let (options, adapter) =
        client(FakeAdapter::new("fake").answer(r#"{"name": "Alice", "age": 30, "address": null}"#));
    let result = generate_object_as::<Person>(options).await.unwrap();
    assert_eq!(result.output, Person { name: "Alice".into(), age: Some(30), address: None });
    let expected = json!({
        "title": "Person",
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": ["integer", "null"], "minimum": 0, "maximum": 255},
            "address": {
                "type": ["string", "null"],
                "format": "ipv4",
                "description": "Where the person can be reached.",
                "default": null,
            },
        },
        "required": ["name"],
    });
    let Some(ResponseFormat::JsonSchema { json_schema, .. }) = &adapter.requests()[0].response_format else {
        panic!("{:?}", adapter.requests())
    };
    assert_eq!(*json_schema, expected);

    let answer = r#"{"name": "Alice", "address": "somewhere"}"#;
    let (options, _) = client(FakeAdapter::new("fake").answer(answer));
    let error = generate_object_as::<Person>(options).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::NoObjectGenerated, "the answer does not fit the type")
    );
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("IPv4"), "{error:?}");
    let (options, adapter) = client(FakeAdapter::new("fake"));
    assert_eq!(
        generate_object_as::<Vec<Person>>(options).await.unwrap_err().kind(),
        ErrorKind::Configuration
    );
    assert_eq!(adapter.requests(), []);
}

#[tokio::test(start_paused = true)]
async fn a_model_call_is_tried_again() {
    let busy = Error::new(ErrorKind::RateLimit, "busy");
    let (options, adapter) =
        client(FakeAdapter::new("fake").failure(busy).answer(r#"{"name": "A", "age": 1}"#));
    assert_eq!(generate_object(options, schema()).await.unwrap().output["age"], 1);
    assert_eq!(adapter.requests().len(), 2);
}
