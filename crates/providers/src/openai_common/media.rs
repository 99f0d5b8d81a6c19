//! Images and documents on the wire.

use pintle_llm::{ContentPart, DocumentData, Error, ImageData, MediaSource};

use crate::media::{ImageForm, check_document, image_form, unsupported};

/// Types and maximum size, in bytes, of the images that OpenAI accepts.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const MAX_IMAGE: usize = 20 * 1024 * 1024;

/// Maximum size of a file, in bytes.
const MAX_DOCUMENT: usize = 50 * 1024 * 1024;

/// Returns the URL of an image, or its data as a data URI.
pub(crate) fn image_url(image: &ImageData, provider: &str) -> Result<String, Error> {
    Ok(match image_form(image, provider, &IMAGE_TYPES, MAX_IMAGE)? {
        ImageForm::Url(url) => url.to_owned(),
        ImageForm::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
    })
}

/// Returns the name of a document, which the provider requires, and its data as a data URI.
pub(crate) fn file_data(document: &DocumentData, provider: &str) -> Result<(String, String), Error> {
    let MediaSource::Data(bytes) = &document.source else {
        return Err(unsupported(
            provider,
            "documents by URL are not supported; pass the data or a local path",
        ));
    };
    check_document(bytes.as_bytes().len(), MAX_DOCUMENT, provider)?;
    let media_type = document.media_type.as_deref().unwrap_or("application/pdf");
    let name = document.file_name.clone().unwrap_or_else(|| "document".to_owned());
    Ok((name, format!("data:{media_type};base64,{}", bytes.to_base64())))
}

/// Returns the placeholder for media of another provider's model, which an assistant message cannot contain here.
pub(crate) fn media_placeholder(part: &ContentPart) -> String {
    let media_type = match part {
        ContentPart::Image(data) => data.media_type.as_deref(),
        ContentPart::Audio(data) => data.media_type.as_deref(),
        ContentPart::Document(data) => data.media_type.as_deref(),
        ContentPart::Text(_)
        | ContentPart::ToolCall(_)
        | ContentPart::ToolResult(_)
        | ContentPart::Thinking(_)
        | ContentPart::Opaque(_)
        | _ => None,
    };
    media_type.map_or_else(|| format!("[{}]", part.kind().to_lowercase()), |kind| format!("[{kind}]"))
}
