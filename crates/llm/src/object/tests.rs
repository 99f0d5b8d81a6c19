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
    let client = Client::builder().shared_provider(shared).default_provider("fake").build().unwrap();
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
    let texts = [
        r#"{"name": "Alice", "age": 30}"#,
        "\n {\"name\":\"Alice\",\"age\":30}\n",
        "```json\n{\"name\": \"Alice\", \"age\": 30}\n```",
        "```\n{\"name\": \"Alice\", \"age\": 30}```\n",
        "~~~ json\n{\"name\": \"Alice\", \"age\": 30}\n~~~",
        "````json\n{\"name\": \"Alice\", \"age\": 30}\n````",
    ];
    for text in texts {
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
async fn invalid_objects_are_errors_with_text_usage_and_id() {
    let cases = [
        ("Alice is 30.", Finish::Stop, "the response is not JSON"),
        (r#"{"name": "Alice", "#, Finish::Length, "the response is not JSON (truncated at the output limit)"),
        ("", Finish::ContentFilter, "the response is not JSON (ended by a content filter or a refusal)"),
        (
            r#"{"name": "Alice", "age": "thirty"}"#,
            Finish::Stop,
            "the response does not match the schema: `/age`: \"thirty\" is not of type \"integer\"",
        ),
        (
            r#"{"name": "Alice"}"#,
            Finish::Stop,
            "the response does not match the schema: \"age\" is a required property",
        ),
    ];
    for (text, finish, message) in cases {
        let script = || FakeAdapter::new("fake").finished(Message::assistant(text), finish).answer("never");
        let (options, adapter) = client(script());
        let error = generate_object(options, schema()).await.unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::NoObjectGenerated, message));
        assert_eq!((error.raw(), error.provider()), (Some(&Value::from(text)), Some("fake")));
        assert_eq!(error.usage().map(|usage| usage.total_tokens), Some(15));
        assert_eq!(error.response_id(), None, "the fake provider gives none");
        assert_eq!(adapter.requests().len(), 1, "no retry");

        let (options, _) = client(script());
        let mut stream = stream_object(options, schema()).unwrap();
        let mut last = None;
        while let Some(item) = stream.next().await {
            last = Some(item.cloned());
        }
        let streamed = last.unwrap().unwrap_err();
        assert_eq!((streamed.kind(), streamed.message()), (ErrorKind::NoObjectGenerated, message));
        assert_eq!(streamed.usage(), error.usage());
        assert!(stream.next().await.is_none());
        assert_eq!(stream.object().await.unwrap_err().message(), message);
    }
}

#[tokio::test]
async fn a_failed_object_carries_the_usage_of_all_steps_and_the_response_id() {
    let call = crate::content::ToolCall::from_raw("c0", "look", "{}");
    let first = Message::new(crate::message::Role::Assistant, vec![call.into()]);
    let adapter = Arc::new(FakeAdapter::new("fake").message(first).answer("nothing"));
    let shared = Arc::clone(&adapter) as Arc<dyn ProviderAdapter>;
    let builder = Client::builder().shared_provider(shared).default_provider("fake");
    let client = builder.middleware(NumberedResponses::default()).build().unwrap();
    let definition = crate::tool::ToolDefinition::new("look", "", json!({"type": "object"})).unwrap();
    let look = crate::generate::ClientTool::active(definition, |_, _| async { Ok::<_, Error>("nothing") });
    let options = GenerateOptions::new("m").with_client(client).with_prompt("Extract.").with_tool(look);
    let error = generate_object(options, schema()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoObjectGenerated);
    assert_eq!((error.response_id(), error.usage()), (Some("r2"), Some(&crate::Usage::new(20, 10))));
    let info = serde_json::to_value(error.info()).unwrap();
    assert_eq!((&info["response_id"], &info["usage"]["total_tokens"]), (&json!("r2"), &json!(30)));
}

/// Layer that gives responses the ids `r1`, `r2`, ….
#[derive(Debug, Default)]
struct NumberedResponses(std::sync::atomic::AtomicU32);

#[async_trait::async_trait]
impl crate::Middleware for NumberedResponses {
    async fn handle(
        &self,
        request: crate::Request,
        mode: crate::Mode,
        next: crate::Next<'_>,
    ) -> Result<crate::Reply, Error> {
        let mut reply = next.run(request, mode).await?;
        if let crate::Reply::Response(response) = &mut reply {
            let number = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
            response.id = format!("r{number}");
        }
        Ok(reply)
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
async fn the_schema_is_derived_from_the_type() {
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

    let text = r#"{"name": "Alice", "address": "somewhere"}"#;
    let (options, _) = client(FakeAdapter::new("fake").answer(text));
    let error = generate_object_as::<Person>(options).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::NoObjectGenerated, "the response does not match the type")
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
async fn model_calls_are_retried() {
    let busy = Error::new(ErrorKind::RateLimit, "busy");
    let (options, adapter) =
        client(FakeAdapter::new("fake").failure(busy).answer(r#"{"name": "A", "age": 1}"#));
    assert_eq!(generate_object(options, schema()).await.unwrap().output["age"], 1);
    assert_eq!(adapter.requests().len(), 2);
}
