//! Sections 8.4 and 8.9: structured output.

use pintle_llm::{ErrorKind, generate_object, generate_object_as, stream_object};
use pintle_testkit::{Call, Dialect, Expectation, Finish, Turn};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{GenerateHarness, read_file};
use crate::harness::in_each_dialect;

in_each_dialect!(an_object, a_typed_object, a_partial_object, no_object, an_object_after_tools);

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
    })
}

const ALICE: &str = r#"{"name": "Alice", "age": 30}"#;

async fn an_object(dialect: Dialect) {
    let harness = GenerateHarness::new(dialect, [Turn::text(ALICE)]).await;
    let result = generate_object(harness.options(), schema()).await.unwrap();
    assert_eq!(result.output, json!({"name": "Alice", "age": 30}));
    assert_eq!(result.text(), ALICE);
    assert!(result.usage().output_tokens > 0);
    let mut closed = schema();
    closed["additionalProperties"] = json!(false);
    let body = &harness.requests()[0].body;
    match dialect {
        Dialect::OpenAiResponses => assert_eq!(
            body["text"]["format"],
            json!({"type": "json_schema", "name": "response", "schema": closed, "strict": true})
        ),
        Dialect::AnthropicMessages => {
            assert_eq!(body["output_config"]["format"], json!({"type": "json_schema", "schema": closed}));
        }
        Dialect::Gemini => {
            assert_eq!(body["generationConfig"]["responseMimeType"], "application/json");
            assert!(body["generationConfig"].to_string().contains(r#""required":["name","age"]"#), "{body}");
        }
        Dialect::ChatCompletions => assert_eq!(
            body["response_format"]["json_schema"],
            json!({"name": "response", "schema": closed, "strict": true})
        ),
    }
}

async fn a_typed_object(dialect: Dialect) {
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Person {
        name: String,
        age: Option<u8>,
        friends: Vec<Friend>,
    }
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Friend {
        Person(String),
        Pet { name: String },
    }
    let answer =
        r#"{"name": "Alice", "age": null, "friends": [{"person": "Bob"}, {"pet": {"name": "Rex"}}]}"#;
    let harness = GenerateHarness::new(dialect, [Turn::text(answer)]).await;
    let person = generate_object_as::<Person>(harness.options()).await.unwrap().output;
    let friends = vec![Friend::Person("Bob".into()), Friend::Pet { name: "Rex".into() }];
    assert_eq!(person, Person { name: "Alice".into(), age: None, friends });
    if dialect == Dialect::OpenAiResponses {
        let format = &harness.requests()[0].body["text"]["format"];
        assert_eq!((&format["strict"], &format["name"]), (&json!(true), &json!("Person")));
        assert_eq!(format["schema"]["required"], json!(["name", "friends", "age"]));
    }
}

async fn a_partial_object(dialect: Dialect) {
    let text = r#"{"recipes": ["Soup of leeks", "Salad of beans", "Bread of rye"]}"#;
    let schema = json!({
        "type": "object",
        "properties": {"recipes": {"type": "array", "items": {"type": "string"}}},
        "required": ["recipes"],
    });
    let harness = GenerateHarness::new(dialect, [Turn::text(text)]).await;
    let mut recipes = stream_object(harness.options(), schema).unwrap();
    let mut counts = Vec::new();
    while let Some(partial) = recipes.next().await {
        counts.push(partial.unwrap()["recipes"].as_array().map_or(0, Vec::len));
    }
    assert!(counts.is_sorted() && counts.contains(&1) && counts.last() == Some(&3), "{counts:?}");
    let result = recipes.result().await.unwrap();
    assert_eq!(result.output, serde_json::from_str::<Value>(text).unwrap());
    assert!(result.total_usage.output_tokens > 0);
}

async fn no_object(dialect: Dialect) {
    let rows = [
        (Turn::text("Alice is 30 years old."), "the response is not JSON"),
        (
            Turn::text(r#"{"name": "Ali"#).with_finish(Finish::Length),
            "the response is not JSON (truncated at the output limit)",
        ),
        (
            Turn::text(r#"{"name": "Alice"}"#),
            "the response does not match the schema: \"age\" is a required property",
        ),
    ];
    for (turn, message) in rows {
        let text = turn.text.clone().unwrap();
        let harness = GenerateHarness::new(dialect, [turn]).await;
        let error = generate_object(harness.options(), schema()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoObjectGenerated);
        assert!(error.message().starts_with(message), "{error}");
        assert_eq!(error.raw(), Some(&Value::from(text)));
        assert_eq!(harness.statuses(), [Some(200)], "it is not asked again");
        let streamed = stream_object(harness.options(), schema()).unwrap().object().await.unwrap_err();
        assert_eq!((streamed.kind(), streamed.message()), (ErrorKind::NoObjectGenerated, error.message()));
    }
}

async fn an_object_after_tools(dialect: Dialect) {
    let harness = GenerateHarness::new(
        dialect,
        [
            Turn::text("I look.").with_call(Call::new("read_file", json!({"file_path": "alice.txt"}))),
            Turn::text(ALICE).with_expectation(Expectation::result_contains(0, "content of alice.txt")),
        ],
    )
    .await;
    let result = generate_object(harness.options().with_tool(read_file()), schema()).await.unwrap();
    assert_eq!((result.output["age"].as_u64(), result.steps.len()), (Some(30), 2));
}
