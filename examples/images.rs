//! Images in a request: from bytes and from a file, beside text.
//!
//! The adapter encodes them for its provider. A URL (`ImageData::url`) is sent as it is, and never read as a file.

use pintle_llm::{Client, ContentPart, GenerateOptions, ImageData, Message, generate};
use pintle_providers::Anthropic;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

/// One red pixel.
const RED: &[u8] = b"\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\
    \x90wS\xde\x00\x00\x00\x0cIDATx\xdac\xf8\xcf\xc0\x00\x00\x03\x01\x01\x00\xf7\x03AC\x00\x00\x00\x00IEND\xaeB`\x82";

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider =
        Anthropic::builder("any-key").with_base_url(server.base_url(Dialect::AnthropicMessages)).build()?;
    let client = Client::builder().provider(provider).default_provider("anthropic").build()?;

    let directory = tempfile::tempdir()?;
    let file = directory.path().join("red.png");
    std::fs::write(&file, RED)?;
    let message = Message::user("Are these two pictures the same?")
        .with_part(ContentPart::Image(ImageData::data(RED.to_vec(), "image/png")))
        // The file is read when the request is sent. Its media type follows from its name.
        .with_part(ContentPart::Image(ImageData::path(file.to_string_lossy())));
    let options = GenerateOptions::new("claude-opus-4-6").with_client(client).with_messages([message]);
    println!("answer  {}", generate(options).await?.text());

    // The images as the server received them.
    for request in server.requests() {
        let content = request.body.pointer("/messages/0/content").and_then(|content| content.as_array());
        for part in content.into_iter().flatten() {
            if let Some(media_type) = part.pointer("/source/media_type").and_then(|value| value.as_str()) {
                println!("sent    {media_type}");
            }
        }
    }
    server.shutdown().await;
    Ok(())
}

/// Responses of the model, each with what the request must contain.
const SCRIPT: &str = include_str!("scripts/images.toml");
