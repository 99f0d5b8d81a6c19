//! Labels of images, which a terminal does not show.

use pintle_agent::ImageSummary;
use pintle_llm::{ImageData, MediaSource};

use super::summary;

/// Maximum number of images with a label.
const MAX_NAMED: usize = 6;

/// Returns labels for the first images, and a label with the number of further images.
pub(crate) fn image_labels(images: &[ImageSummary]) -> Vec<String> {
    let mut labels: Vec<String> = images.iter().take(MAX_NAMED).map(image_label).collect();
    let more = images.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        labels.push(format!("… {}", summary::plural(more as u64, "more image")));
    }
    labels
}

/// Returns a label with the type and the size of an image.
fn image_label(image: &ImageSummary) -> String {
    label(image.media_type.as_deref(), image.bytes)
}

/// Returns a label for an image of a message, with its URL or path if it has one, otherwise with its type. The label
/// includes the size.
pub(crate) fn image_data_label(image: &ImageData) -> String {
    let of = ImageSummary::from_image(image);
    match &image.source {
        // A `data:` URL contains the bytes.
        MediaSource::Url(name) | MediaSource::Path(name) if !name.starts_with("data:") => {
            label(Some(name), of.bytes)
        }
        MediaSource::Data(_) | _ => image_label(&of),
    }
}

fn label(name: Option<&str>, bytes: Option<u64>) -> String {
    let name = name.map(|name| summary::one_line(name, summary::MAX_CHARS));
    let size = bytes.map(|bytes| summary::plural(bytes, "byte"));
    let parts: Vec<String> = name.into_iter().chain(size).collect();
    if parts.is_empty() { "[image]".to_owned() } else { format!("[image: {}]", parts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_named_by_source_type_and_size() {
        let cases = [
            (ImageData::data(vec![0; 12_345], "image/png"), "[image: image/png, 12,345 bytes]"),
            (ImageData::data(vec![0; 1], "image/\x1b[2J\ngif"), "[image: image/ [2J…, 1 byte]"),
            (ImageData::url("https://example.org/a.png"), "[image: https://example.org/a.png]"),
            (ImageData::url("data:image/png;base64,AAAA"), "[image]"),
        ];
        for (image, expected) in cases {
            assert_eq!(image_data_label(&image), expected);
        }
    }
}
