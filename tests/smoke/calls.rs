//! The smoke test of the client (client specification, section 8.10).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pintle_llm::{
    CallContext, ClientTool, ErrorKind, Finish, GenerateOptions, ImageData, Message, StreamEvent,
    ToolDefinition, generate, generate_object, stream,
};
use pintle_testkit::Turn;
use serde_json::{Value, json};

use crate::check::{Checked, during, ensure};
use crate::scripts;
use crate::target::{Target, TestClient};

/// A red square of 16 by 16 pixels.
const RED: &str = "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mO4oKBAEmIY1TCqYfhqAABLfxAQegypMgAAAABJRU5ErkJggg==";

/// Runs the steps and returns their names.
pub(crate) async fn run(target: &Target) -> Checked<Vec<&'static str>> {
    generation(target).await?;
    streaming(target).await?;
    tools(target).await?;
    image(target).await?;
    object(target).await?;
    unknown_model(target).await?;
    Ok(vec!["generation", "streaming", "tools", "image", "object", "unknown model"])
}

fn options(target: &Target, test_client: &TestClient) -> GenerateOptions {
    GenerateOptions::new(target.model())
        .with_client(test_client.client.clone())
        .with_provider(target.dialect.name())
}

async fn generation(target: &Target) -> Checked<()> {
    let test_client = target.test_client(scripts::of([Turn::text("Hello to you.")])).await?;
    let options =
        options(target, &test_client).with_prompt("Say hello in one sentence.").with_max_tokens(1_000);
    let result = during("generation", generate(options).await)?;
    let usage = result.usage();
    ensure(!result.text().is_empty(), "generation: there is no text")?;
    ensure(usage.input_tokens > 0 && usage.output_tokens > 0, format!("generation: usage is {usage:?}"))?;
    let finish = result.finish_reason();
    ensure(finish.reason == Finish::Stop, format!("generation: it finished as {finish:?}"))
}

async fn streaming(target: &Target) -> Checked<()> {
    let test_client = target
        .test_client(scripts::of([Turn::text("An old silent pond,\na frog jumps in,\nsplash.")]))
        .await?;
    let mut events =
        during("streaming", stream(options(target, &test_client).with_prompt("Write a haiku.")))?;
    let mut text = String::new();
    while let Some(event) = events.next().await {
        if let StreamEvent::TextDelta { delta, .. } = during("streaming", event)? {
            text.push_str(&delta);
        }
    }
    let whole = during("streaming", events.response())?.text();
    ensure(
        !text.is_empty() && text == whole,
        format!("streaming: {text:?} came, and the answer is {whole:?}"),
    )
}

async fn tools(target: &Target) -> Checked<()> {
    let test_client = target.test_client(scripts::weather()).await?;
    let parameters =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let definition = ToolDefinition::new("get_weather", "The weather in a city.", parameters);
    let weather =
        ClientTool::active(during("tools", definition)?, |arguments: Value, _: CallContext| async move {
            Ok::<_, pintle_llm::Error>(format!(
                "The weather in {} is fair, 20 degrees.",
                arguments.get("city").unwrap_or(&Value::Null)
            ))
        });
    let prompt = "What is the weather in San Francisco and New York?";
    let options =
        options(target, &test_client).with_prompt(prompt).with_tool(weather).with_max_tool_rounds(3);
    let result = during("tools", generate(options).await)?;
    ensure(result.steps.len() >= 2, format!("tools: it took {} steps", result.steps.len()))?;
    let text = result.text();
    let both = text.contains("San Francisco") && text.contains("New York");
    ensure(both, format!("tools: the answer does not speak of both cities: {text:?}"))
}

async fn image(target: &Target) -> Checked<()> {
    let test_client = target.test_client(scripts::of([Turn::text("A red square.")])).await?;
    let png = during("image", STANDARD.decode(RED))?;
    let message = Message::user("What do you see?").with_part(ImageData::data(png, "image/png").into());
    let result = during("image", generate(options(target, &test_client).with_messages([message])).await)?;
    ensure(!result.text().is_empty(), "image: there is no text")
}

async fn object(target: &Target) -> Checked<()> {
    let test_client =
        target.test_client(scripts::of([Turn::text(r#"{"name": "Alice", "age": 30}"#)])).await?;
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
    });
    let options = options(target, &test_client).with_prompt("Extract: Alice is 30 years old");
    let output = during("object", generate_object(options, schema).await)?.output;
    let alice = json!({ "name": "Alice", "age": 30 });
    ensure(output == alice, format!("object: it is {output}"))
}

async fn unknown_model(target: &Target) -> Checked<()> {
    let script = scripts::of([Turn::text("Never said.")]).with_model(target.model());
    let test_client = target.test_client(script).await?;
    let options = GenerateOptions::new("nonexistent-model-xyz").with_client(test_client.client.clone());
    let options = options.with_provider(target.dialect.name()).with_prompt("test");
    match generate(options).await {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(format!("unknown model: the error is of another kind: {error:?}")),
        Ok(result) => Err(format!("unknown model: it answered: {:?}", result.text())),
    }
}
