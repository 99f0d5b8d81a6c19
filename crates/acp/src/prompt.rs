//! Conversion of prompts from content of the protocol to messages for the model.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pintle_agent::UserMessage;
use pintle_llm::ImageData;

use crate::rpc::RpcError;
use crate::wire::{ContentBlock, ResourceContents};

/// Returns the message of a prompt. Text and links keep the order of the prompt. The content of embedded resources follows.
pub(crate) fn message(prompt: &[ContentBlock]) -> Result<UserMessage, RpcError> {
    let (mut text, mut resources, mut images) = (String::new(), String::new(), Vec::new());
    for block in prompt {
        match block {
            ContentBlock::Text { text: more } => text.push_str(more),
            ContentBlock::Image { data, mime_type } => images.push(image(data, mime_type)?),
            ContentBlock::Audio {} => return Err(RpcError::invalid_params("audio is not supported")),
            ContentBlock::ResourceLink { name, uri, .. } => text.push_str(&link(name, uri)),
            ContentBlock::Resource { resource } => {
                text.push_str(&link(name_of(&resource.uri), &resource.uri));
                match resource {
                    ResourceContents { text: Some(content), uri, .. } => {
                        resources.push_str(&embedded(uri, content));
                    }
                    ResourceContents { blob: Some(blob), mime_type: Some(mime), .. }
                        if mime.starts_with("image/") =>
                    {
                        images.push(image(blob, mime)?);
                    }
                    // Models do not read other bytes. The link names them.
                    ResourceContents { .. } => {}
                }
            }
        }
    }
    text.push_str(&resources);
    let message = images.into_iter().fold(UserMessage::from(text), UserMessage::with_image);
    if message.text.trim().is_empty() && message.images.is_empty() {
        return Err(RpcError::invalid_params("the prompt is empty"));
    }
    Ok(message)
}

/// Returns name and input of a slash command, if the text of a prompt is a slash command.
pub(crate) fn slash_command(text: &str) -> Option<(&str, &str)> {
    let command = text.trim_start().strip_prefix('/')?;
    let end = command.find(char::is_whitespace).unwrap_or(command.len());
    let (name, input) = command.split_at_checked(end)?;
    Some((name, input.trim()))
}

fn image(data: &str, mime_type: &str) -> Result<ImageData, RpcError> {
    let bytes = STANDARD
        .decode(data)
        .map_err(|error| RpcError::invalid_params(format!("the data of an image is no base64: {error}")))?;
    Ok(ImageData::data(bytes, mime_type))
}

fn link(name: &str, uri: &str) -> String {
    format!("[@{name}]({uri})")
}

/// Returns the last segment of a URI.
fn name_of(uri: &str) -> &str {
    uri.trim_end_matches('/').rsplit('/').next().unwrap_or(uri)
}

/// Returns the content of a resource in tags that the content cannot close.
fn embedded(uri: &str, content: &str) -> String {
    let content = content.replace("</resource", "<\\/resource");
    let uri = uri.replace('"', "%22");
    format!("\n\n<resource uri=\"{uri}\">\n{content}\n</resource>")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn blocks(value: serde_json::Value) -> Vec<ContentBlock> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn text_and_links_keep_their_order() {
        let prompt = blocks(json!([
            {"type": "text", "text": "Look at "},
            {"type": "resource_link", "name": "a.rs", "uri": "file:///w/a.rs"},
            {"type": "text", "text": " and "},
            {"type": "resource", "resource": {"uri": "file:///w/b.txt", "text": "one </resource> two"}},
            {"type": "text", "text": "."},
        ]));
        let expected = "Look at [@a.rs](file:///w/a.rs) and [@b.txt](file:///w/b.txt).\n\n\
                        <resource uri=\"file:///w/b.txt\">\none <\\/resource> two\n</resource>";
        assert_eq!(message(&prompt).unwrap().text, expected);
    }

    #[test]
    fn images_become_bytes() {
        let prompt = blocks(json!([
            {"type": "image", "data": "AQID", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "x:/b.gif", "mimeType": "image/gif", "blob": "AQID"}},
        ]));
        let message = message(&prompt).unwrap();
        let expected =
            [ImageData::data(vec![1, 2, 3], "image/png"), ImageData::data(vec![1, 2, 3], "image/gif")];
        assert_eq!(message.images, expected);
    }

    #[test]
    fn prompts_that_cannot_be_used_are_refused() {
        let cases = [
            (json!([]), "empty"),
            (json!([{"type": "text", "text": " \n"}]), "empty"),
            (json!([{"type": "audio", "data": "AQID", "mimeType": "audio/wav"}]), "audio"),
            (json!([{"type": "image", "data": "?", "mimeType": "image/png"}]), "base64"),
        ];
        for (prompt, word) in cases {
            let error = message(&blocks(prompt)).unwrap_err();
            assert!(error.code == RpcError::INVALID_PARAMS && error.message.contains(word), "{error:?}");
        }
    }

    #[test]
    fn slash_commands_have_a_name_and_an_input() {
        let cases = [
            ("/compact", Some(("compact", ""))),
            ("/plan  the work \n", Some(("plan", "the work"))),
            ("plan", None),
            ("a /plan", None),
        ];
        for (text, expected) in cases {
            assert_eq!(slash_command(text), expected, "{text}");
        }
    }
}
