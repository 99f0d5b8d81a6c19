//! Conversion of servers' results into results of our tools.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pintle_llm::ImageData;
use pintle_tools::ToolOutput;
use pintle_tools::builtin::image_of;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

use crate::process_log::shorten;

/// Maximum number of images of one result that a model sees.
const MAX_IMAGES: usize = 16;

/// Maximum number of characters of a server's description of a resource that a model sees.
const MAX_DESCRIPTION: usize = 200;

/// Converts a result: texts one below the other, images beside them, and a line about each content that a model cannot be
/// shown.
pub(crate) fn output(result: CallToolResult) -> ToolOutput {
    let mut parts = ResultParts::default();
    let is_error = result.is_error.unwrap_or(false);
    // Servers repeat structured content as text for clients without support. The text of an error is often only a
    // message.
    let repeats = |structured: &Value| {
        let is_same =
            |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|value| value == *structured);
        let repeats = |block: &ContentBlock| matches!(block, ContentBlock::Text(text) if !is_error || is_same(&text.text));
        result.content.iter().any(repeats)
    };
    let structured = result.structured_content.filter(|structured| !repeats(structured));
    result.content.into_iter().for_each(|block| parts.block(block));
    if let Some(structured) = structured {
        parts.line(format!("{structured:#}"));
    }
    parts.into_output(is_error)
}

/// Converts the contents of a resource.
pub(crate) fn resource(contents: Vec<ResourceContents>) -> ToolOutput {
    let mut parts = ResultParts::default();
    // Each of several contents is named.
    let is_named = contents.len() > 1;
    contents.into_iter().for_each(|contents| parts.resource(contents, is_named));
    parts.into_output(false)
}

/// Returns the text and the images of one content.
pub(crate) fn content(block: ContentBlock) -> (String, Vec<ImageData>) {
    let mut parts = ResultParts::default();
    parts.block(block);
    (parts.lines.join("\n"), parts.images)
}

#[derive(Default)]
struct ResultParts {
    lines: Vec<String>,
    images: Vec<ImageData>,
}

impl ResultParts {
    fn line(&mut self, text: impl Into<String>) {
        self.lines.push(text.into());
    }

    fn block(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.line(text.text),
            ContentBlock::Image(image) => self.image(&image.data, &image.mime_type),
            ContentBlock::Audio(audio) => {
                let bytes = decoded_length(&audio.data);
                self.line(format!("[audio, {}, {bytes} bytes: not shown]", audio.mime_type));
            }
            ContentBlock::Resource(embedded) => self.resource(embedded.resource, true),
            ContentBlock::ResourceLink(link) => {
                let mut line = format!("[resource {}", link.uri);
                let described = [Some(link.name), link.mime_type, link.description];
                for text in described.into_iter().flatten().filter(|text| !text.is_empty()) {
                    // Writing to a string cannot fail.
                    let _ = write!(line, ", {}", shorten(&text, MAX_DESCRIPTION));
                }
                self.line(line + "]");
            }
            _ => self.line("[content of a kind that is not known: not shown]"),
        }
    }

    fn resource(&mut self, contents: ResourceContents, is_named: bool) {
        match contents {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                if is_named {
                    self.line(format!("[resource {uri}]"));
                }
                self.line(text);
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let mime_type = mime_type.unwrap_or_else(|| "unknown type".to_owned());
                if is_named {
                    self.line(format!("[resource {uri}]"));
                }
                self.image(&blob, &mime_type);
            }
            _ => self.line("[resource of a kind that is not known: not shown]"),
        }
    }

    /// Adds an image, or a line with the reason why it is missing. Its content decides the type, not the server's
    /// declaration.
    fn image(&mut self, data: &str, mime_type: &str) {
        let bytes = decoded_length(data);
        let why = match STANDARD.decode(data.trim_ascii()) {
            Err(_) => "it is no base64".to_owned(),
            Ok(_) if self.images.len() == MAX_IMAGES => format!("there are {MAX_IMAGES} images already"),
            Ok(decoded) => match image_of(decoded) {
                Ok(image) => return self.images.push(image),
                Err(error) => error.to_string(),
            },
        };
        self.line(format!("[{mime_type}, {bytes} bytes, not shown: {why}]"));
    }

    fn into_output(self, is_error: bool) -> ToolOutput {
        let Self { lines, images } = self;
        let text = match (lines.is_empty(), images.is_empty()) {
            (true, true) => "[the result is empty]".to_owned(),
            _ => lines.join("\n"),
        };
        images.into_iter().fold(ToolOutput::new(text).with_error(is_error), ToolOutput::with_image)
    }
}

/// Returns the number of bytes that a base64 text encodes.
fn decoded_length(data: &str) -> usize {
    let data = data.trim_ascii().trim_end_matches('=');
    data.len() * 3 / 4
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text_of(result: Value) -> (String, usize, bool) {
        let output = output(serde_json::from_value(result).unwrap());
        (output.text.to_text_lossy().unwrap(), output.images.len(), output.is_error)
    }

    #[test]
    fn each_kind_of_content_is_shown_or_named() {
        let png = STANDARD.encode(b"\x89PNG\r\n\x1a\nrest");
        for (content, text, images) in [
            (json!([]), "[the result is empty]", 0),
            (json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "a\nb", 0),
            (json!([{"type": "image", "data": png, "mimeType": "image/x-wrong"}]), "", 1),
            (
                json!([{"type": "image", "data": "AAAA", "mimeType": "image/png"}]),
                "[image/png, 3 bytes, not shown: it is no PNG, JPEG, GIF or WebP image]",
                0,
            ),
            (
                json!([{"type": "image", "data": "?", "mimeType": "image/png"}]),
                "[image/png, 0 bytes, not shown: it is no base64]",
                0,
            ),
            (
                json!([{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]),
                "[audio, audio/wav, 3 bytes: not shown]",
                0,
            ),
            (
                json!([{"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain"}]),
                "[resource file:///a, a, text/plain]",
                0,
            ),
            (
                json!([{"type": "resource", "resource": {"uri": "test://a", "text": "content"}}]),
                "[resource test://a]\ncontent",
                0,
            ),
            (
                json!([{"type": "resource", "resource": {"uri": "test://a", "blob": png}}]),
                "[resource test://a]",
                1,
            ),
        ] {
            assert_eq!(text_of(json!({"content": content})), (text.to_owned(), images, false), "{content}");
        }
    }

    #[test]
    fn structured_content_is_shown_if_no_text_repeats_it() {
        let structured = json!({"sum": 3});
        let both =
            json!({"content": [{"type": "text", "text": "{\"sum\":3}"}], "structuredContent": structured});
        assert_eq!(text_of(both).0, "{\"sum\":3}");
        assert_eq!(text_of(json!({"content": [], "structuredContent": structured})).0, "{\n  \"sum\": 3\n}");
    }

    #[test]
    fn an_error_of_a_tool_is_a_failure() {
        let failed = json!({"content": [{"type": "text", "text": "no such city"}], "isError": true});
        assert_eq!(text_of(failed), ("no such city".to_owned(), 0, true));
        for (text, shown) in
            [("no such city", "no such city\n{\n  \"code\": 7\n}"), ("{\"code\":7}", "{\"code\":7}")]
        {
            let failed = json!({
                "content": [{"type": "text", "text": text}], "structuredContent": {"code": 7}, "isError": true,
            });
            assert_eq!(text_of(failed), (shown.to_owned(), 0, true));
        }
    }

    #[test]
    fn images_above_the_limit_are_named() {
        let png =
            json!({"type": "image", "data": STANDARD.encode(b"\x89PNG\r\n\x1a\n"), "mimeType": "image/png"});
        let (text, images, _) = text_of(json!({"content": vec![png; MAX_IMAGES + 1]}));
        assert_eq!(
            (text.as_str(), images),
            ("[image/png, 8 bytes, not shown: there are 16 images already]", 16)
        );
    }
}
