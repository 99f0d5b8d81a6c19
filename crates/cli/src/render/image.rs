//! Names of images, which a terminal does not show.

use pintle_agent::ImageSummary;
use pintle_llm::{ImageData, MediaSource};

use super::summary;

/// Most images that are named at once.
const MAX_NAMED: usize = 6;

/// Names the first images, and tells how many more there are.
pub(crate) fn image_labels(images: &[ImageSummary]) -> Vec<String> {
    let mut labels: Vec<String> = images.iter().take(MAX_NAMED).map(image_label).collect();
    let more = images.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        labels.push(format!("… {}", summary::plural(more as u64, "more image")));
    }
    labels
}

/// Names an image by its type and its size.
pub(crate) fn image_label(image: &ImageSummary) -> String {
    label(image.media_type.as_deref(), image.bytes)
}

/// Names an image of a message by its source if it is elsewhere, else by its type and its size.
pub(crate) fn image_data_label(image: &ImageData) -> String {
    let of = ImageSummary::of(image);
    match &image.source {
        // A `data:` URL has the bytes.
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
