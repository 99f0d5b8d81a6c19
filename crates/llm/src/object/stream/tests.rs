use std::sync::Arc;

use futures_util::StreamExt as _;
use serde_json::json;

use super::*;
use crate::adapter::ProviderAdapter;
use crate::client::Client;
use crate::content::ToolCall;
use crate::error::ErrorKind;
use crate::generate::tests::ChunkedAdapter;
use crate::generate::{ClientTool, GenerateOptions};
use crate::message::{Message, Role};
use crate::object::stream_object;
use crate::testing::FakeAdapter;
use crate::tool::ToolDefinition;

fn options(adapter: impl ProviderAdapter + 'static) -> GenerateOptions {
    let name = adapter.name().to_owned();
    let client = Client::builder().provider(adapter).default_provider(name).build().unwrap();
    GenerateOptions::new("m").with_client(client).with_prompt("Two recipes, please.")
}

fn schema() -> Value {
    let recipe = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let properties = json!({"recipes": {"type": "array", "items": recipe}});
    json!({"type": "object", "properties": properties, "required": ["recipes"]})
}

#[tokio::test]
async fn the_object_grows_until_complete() {
    let complete = json!({"recipes": [{"name": "Soup"}, {"name": "Salad"}]});
    let text = r#"{"recipes": [{"name": "Soup"}, {"name": "Salad"}]}"#;
    let fenced = "\n```json\n{\"recipes\": [{\"name\": \"Soup\"}, {\"name\": \"Salad\"}]}\n```\n";
    let tilded = fenced.replace('`', "~");
    let texts = [text, fenced, &tilded];
    for (text, size) in texts.into_iter().flat_map(|text| [1, 7, 1000].map(|size| (text, size))) {
        let mut stream = stream_object(options(ChunkedAdapter::new(text, size)), schema()).unwrap();
        assert_eq!(stream.partial(), None);
        let mut names = Vec::new();
        while let Some(partial) = stream.next().await {
            let recipes = partial.unwrap()["recipes"].as_array();
            names.push(recipes.map_or(0, Vec::len));
        }
        assert!(names.is_sorted() && names.last() == Some(&2), "{names:?}");
        assert!(size > 1 || names.contains(&0) && names.contains(&1), "{names:?}");
        assert_eq!(stream.partial(), Some(&complete));
        assert!(stream.next().await.is_none(), "the stream is fused");
        let result = stream.result().await.unwrap();
        assert_eq!((result.output, result.response.text().as_str()), (complete.clone(), text));
    }
}

#[tokio::test]
async fn items_of_the_stream_are_owned() {
    let text = r#"{"recipes": [{"name": "Soup"}]}"#;
    let stream = stream_object(options(ChunkedAdapter::new(text, 12)), schema()).unwrap();
    let items: Vec<Value> = stream.map(Result::unwrap).collect().await;
    assert_eq!(
        items,
        [json!({}), json!({"recipes": [{"name": "S"}]}), json!({"recipes": [{"name": "Soup"}]})]
    );
}

#[tokio::test]
async fn the_object_is_available_without_reading_items() {
    let stream = stream_object(options(ChunkedAdapter::new(r#"{"recipes": []}"#, 3)), schema()).unwrap();
    assert_eq!(stream.object().await.unwrap(), json!({"recipes": []}));
}

#[tokio::test]
async fn a_failure_is_the_last_item() {
    let cut = FakeAdapter::new("fake").cut(r#"{"recipes": ["#, Error::new(ErrorKind::Stream, "broken"));
    let mut stream = stream_object(options(cut), schema()).unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), &json!({"recipes": []}));
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind(), ErrorKind::Stream);
    assert!(stream.next().await.is_none());
    assert_eq!(stream.object().await.unwrap_err().kind(), ErrorKind::Stream);
}

#[tokio::test]
async fn each_step_starts_a_new_object() {
    let call = ToolCall::from_raw("c0", "look", "{}");
    let first = Message::new(Role::Assistant, vec![crate::ContentPart::text("I look first."), call.into()]);
    let adapter = Arc::new(FakeAdapter::new("fake").message(first).answer(r#"{"recipes": []}"#));
    let client = Client::builder().shared_provider(adapter).default_provider("fake").build().unwrap();
    let definition = ToolDefinition::new("look", "", json!({"type": "object"})).unwrap();
    let look = ClientTool::active(definition, |_, _| async { Ok::<_, Error>("nothing") });
    let options = GenerateOptions::new("m").with_client(client).with_prompt("Recipes.").with_tool(look);
    let stream = stream_object(options, schema()).unwrap();
    let items: Vec<Value> = stream.map(Result::unwrap).collect().await;
    assert_eq!(items, [json!({"recipes": []})]);
}
