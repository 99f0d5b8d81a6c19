//! Images, audio and documents (client specification, section 3.5).

use std::fmt;
use std::ops::BitOr;
use std::sync::Arc;

use base64::Engine as _;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::data_url::DataUrl;
use super::{ContentPart, ToolResult};
use crate::error::{Error, ErrorKind};
use crate::fingerprint::Fingerprint;

/// Bytes that are cheap to clone, serialised as base64.
#[derive(Clone, PartialEq, Eq)]
pub struct Blob(Arc<[u8]>);

impl Blob {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes in standard base64 with padding.
    #[must_use]
    pub fn to_base64(&self) -> String {
        BASE64.encode(&self.0)
    }
}

impl From<Vec<u8>> for Blob {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} bytes)", self.0.len())
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Encoded in small pieces: the whole text would be a second copy of tens of megabytes.
        serializer.collect_str(&Base64Display::new(&self.0, &BASE64))
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Base64Visitor)
    }
}

/// Decodes base64 from the text of the deserializer, without a copy of that text.
struct Base64Visitor;

impl Visitor<'_> for Base64Visitor {
    type Value = Blob;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string of base64")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Blob, E> {
        BASE64
            .decode(text)
            .map(Blob::from)
            .map_err(|error| E::custom(format_args!("invalid base64: {error}")))
    }
}

/// Source of media.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MediaSource {
    /// URL, which the provider fetches. A `data:` URL is decoded before an adapter sees it. Never read as a file.
    Url(String),
    /// The bytes.
    Data(Blob),
    /// Path of a local file, which the adapter reads before it sends the request; `~/` is the home directory. Do not
    /// accept this source from untrusted clients.
    Path(String),
}

/// Image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ImageData {
    /// Source of the bytes.
    #[serde(flatten)]
    pub source: MediaSource,
    /// MIME type; `image/png` is assumed for bytes without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Level of detail: `auto`, `low` or `high`; ignored by providers without the option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl ImageData {
    /// An image at a URL.
    #[must_use]
    pub fn url(url: impl Into<String>) -> Self {
        Self { source: MediaSource::Url(url.into()), media_type: None, detail: None }
    }

    /// An image from bytes.
    #[must_use]
    pub fn data(bytes: impl Into<Blob>, media_type: impl Into<String>) -> Self {
        Self { source: MediaSource::Data(bytes.into()), media_type: Some(media_type.into()), detail: None }
    }

    /// An image in a local file, read when the request is sent.
    #[must_use]
    pub fn path(path: impl Into<String>) -> Self {
        Self { source: MediaSource::Path(path.into()), media_type: None, detail: None }
    }

    /// Sets the level of detail: `auto`, `low` or `high`.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}

/// Audio.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AudioData {
    /// Source of the bytes.
    #[serde(flatten)]
    pub source: MediaSource,
    /// MIME type, such as `audio/wav`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

impl AudioData {
    /// Audio at a URL.
    #[must_use]
    pub fn url(url: impl Into<String>) -> Self {
        Self { source: MediaSource::Url(url.into()), media_type: None }
    }

    /// Audio from bytes.
    #[must_use]
    pub fn data(bytes: impl Into<Blob>, media_type: impl Into<String>) -> Self {
        Self { source: MediaSource::Data(bytes.into()), media_type: Some(media_type.into()) }
    }

    /// Audio in a local file, read when the request is sent.
    #[must_use]
    pub fn path(path: impl Into<String>) -> Self {
        Self { source: MediaSource::Path(path.into()), media_type: None }
    }
}

/// Document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DocumentData {
    /// Source of the bytes.
    #[serde(flatten)]
    pub source: MediaSource,
    /// MIME type, such as `application/pdf`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
}

impl DocumentData {
    /// A document at a URL.
    #[must_use]
    pub fn url(url: impl Into<String>) -> Self {
        Self { source: MediaSource::Url(url.into()), media_type: None, file_name: None }
    }

    /// A document from bytes.
    #[must_use]
    pub fn data(bytes: impl Into<Blob>, media_type: impl Into<String>) -> Self {
        Self { source: MediaSource::Data(bytes.into()), media_type: Some(media_type.into()), file_name: None }
    }

    /// A document in a local file, read when the request is sent.
    #[must_use]
    pub fn path(path: impl Into<String>) -> Self {
        Self { source: MediaSource::Path(path.into()), media_type: None, file_name: None }
    }

    /// Sets the display name.
    #[must_use]
    pub fn with_file_name(mut self, name: impl Into<String>) -> Self {
        self.file_name = Some(name.into());
        self
    }
}

impl ContentPart {
    /// Sources of the media in this part, including images of a tool result.
    pub fn media(&self) -> impl Iterator<Item = &MediaSource> {
        let (single, images): (Option<&MediaSource>, &[ImageData]) = match self {
            Self::Image(image) => (Some(&image.source), &[]),
            Self::Audio(audio) => (Some(&audio.source), &[]),
            Self::Document(document) => (Some(&document.source), &[]),
            Self::ToolResult(ToolResult { images, .. }) => (None, images),
            Self::Text(_) | Self::ToolCall(_) | Self::Thinking(_) | Self::Opaque(_) => (None, &[]),
        };
        single.into_iter().chain(images.iter().map(|image| &image.source))
    }

    /// Returns the kinds of media that are replaced before this part is encoded.
    pub(crate) fn pending_media(&self) -> PendingMedia {
        match self {
            Self::Text(_) | Self::ToolCall(_) | Self::Thinking(_) | Self::Opaque(_) => {
                PendingMedia::default()
            }
            Self::Image(_) | Self::Audio(_) | Self::Document(_) | Self::ToolResult(_) => {
                self.media().fold(PendingMedia::default(), |pending, source| pending | source.pending())
            }
        }
    }

    /// Replaces `data:` URLs by their bytes, and sets the media type unless it is set.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidRequest`] for a malformed `data:` URL, and for a URL that is a local path.
    pub(crate) fn decode_urls(&mut self) -> Result<(), Error> {
        match self {
            Self::Image(image) => decode_url(&mut image.source, &mut image.media_type),
            Self::Audio(audio) => decode_url(&mut audio.source, &mut audio.media_type),
            Self::Document(document) => decode_url(&mut document.source, &mut document.media_type),
            Self::ToolResult(result) => {
                let mut images = result.images.iter_mut();
                images.try_for_each(|image| decode_url(&mut image.source, &mut image.media_type))
            }
            Self::Text(_) | Self::ToolCall(_) | Self::Thinking(_) | Self::Opaque(_) => Ok(()),
        }
    }
}

/// Kinds of media that are replaced before a request is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PendingMedia {
    /// URLs that no adapter may see: `data:` URLs and local paths.
    pub(crate) urls: bool,
    /// Local files.
    pub(crate) files: bool,
}

impl BitOr for PendingMedia {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self { urls: self.urls || other.urls, files: self.files || other.files }
    }
}

impl MediaSource {
    /// Returns the fingerprint of the bytes, or of the URL or path. A `data:` URL has the fingerprint of its bytes.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        match self {
            Self::Data(bytes) => Fingerprint::from_bytes(bytes.as_bytes()),
            Self::Url(url) => match DataUrl::parse(url).filter(|_| DataUrl::is_one(url)) {
                Some(decoded) => Fingerprint::from_bytes(&decoded.bytes),
                None => Fingerprint::from_bytes(url.as_bytes()),
            },
            Self::Path(path) => Fingerprint::from_bytes(path.as_bytes()),
        }
    }

    fn pending(&self) -> PendingMedia {
        match self {
            Self::Url(url) => PendingMedia { urls: DataUrl::is_one(url) || is_local_path(url), files: false },
            Self::Path(_) => PendingMedia { urls: false, files: true },
            Self::Data(_) => PendingMedia::default(),
        }
    }
}

fn decode_url(source: &mut MediaSource, media_type: &mut Option<String>) -> Result<(), Error> {
    let MediaSource::Url(url) = source else { return Ok(()) };
    if is_local_path(url) {
        let message = format!("`{url}` is a local path, not a URL; use a `path` source to read a file");
        return Err(Error::new(ErrorKind::InvalidRequest, message));
    }
    if !DataUrl::is_one(url) {
        return Ok(());
    }
    let Some(decoded) = DataUrl::parse(url) else {
        return Err(Error::new(ErrorKind::InvalidRequest, "malformed `data:` URL"));
    };
    if media_type.is_none() {
        *media_type = decoded.media_type;
    }
    *source = MediaSource::Data(decoded.bytes.into());
    Ok(())
}

/// Local paths as the specification defines them (section 3.5).
fn is_local_path(url: &str) -> bool {
    ["/", "./", "~"].iter().any(|start| url.starts_with(start))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn data_urls_become_bytes() {
        let mut image = ContentPart::from(ImageData::url("data:image/png;base64,AQL/").with_detail("low"));
        image.decode_urls().unwrap();
        assert_eq!(image, ImageData::data(vec![1, 2, 255], "image/png").with_detail("low").into());

        let mut document = DocumentData::url("data:text/plain,a%20b").with_file_name("notes");
        document.media_type = Some("text/markdown".into());
        let mut document = ContentPart::Document(document);
        document.decode_urls().unwrap();
        let expected = DocumentData::data(b"a b".to_vec(), "text/markdown").with_file_name("notes");
        assert_eq!(document, ContentPart::Document(expected), "a given type wins");

        let result = ToolResult::new("c", "seen", false).with_image(ImageData::url("data:;base64,AQ=="));
        let mut result = ContentPart::ToolResult(result);
        assert_eq!(result.pending_media(), PendingMedia { urls: true, files: false });
        result.decode_urls().unwrap();
        assert_eq!(result.pending_media(), PendingMedia::default());
        assert!(result.media().all(|source| *source == MediaSource::Data(vec![1].into())));
    }

    #[test]
    fn bytes_are_written_and_read_as_base64() {
        // Longer than one piece of the encoder, with each length of the last group.
        for size in [0, 1, 2, 3, 1_023, 1_024, 1_025, 5_000] {
            let bytes: Vec<u8> = (0..=255).cycle().take(size).collect();
            let blob = Blob::from(bytes);
            let text = serde_json::to_string(&blob).unwrap();
            assert_eq!(text, format!("\"{}\"", blob.to_base64()), "{size}");
            assert_eq!(serde_json::to_value(&blob).unwrap(), json!(blob.to_base64()), "{size}");
            assert_eq!(serde_json::from_str::<Blob>(&text).unwrap(), blob, "{size}");
            // From a text that is not in the input as it is.
            assert_eq!(serde_json::from_value::<Blob>(json!(blob.to_base64())).unwrap(), blob, "{size}");
            let escaped = text.replace('/', "\\/");
            assert_eq!(serde_json::from_str::<Blob>(&escaped).unwrap(), blob, "{size}");
        }
        for damaged in ["\"?\"", "\"AAE\"", "\"AB==\"", "1"] {
            assert!(serde_json::from_str::<Blob>(damaged).is_err(), "{damaged}");
        }
    }

    #[test]
    fn a_data_url_and_its_bytes_have_one_fingerprint() {
        let bytes = MediaSource::Data(vec![1, 2, 255].into()).fingerprint();
        assert_eq!(MediaSource::Url("data:image/png;base64,AQL/".into()).fingerprint(), bytes);
        let url = MediaSource::Url("https://example.com/a.png".into()).fingerprint();
        assert_eq!(url, Fingerprint::from_bytes(b"https://example.com/a.png"));
        assert_ne!(url, bytes);
    }

    #[test]
    fn other_sources_are_unchanged() {
        for (image, files) in [
            (ImageData::url("https://example.com/a.png"), false),
            (ImageData::data(vec![1], "image/png"), false),
            (ImageData::path("/tmp/a.png"), true),
        ] {
            let mut part = ContentPart::from(image.clone());
            assert_eq!(part.pending_media(), PendingMedia { urls: false, files }, "{image:?}");
            part.decode_urls().unwrap();
            assert_eq!(part, image.into());
        }
    }

    #[test]
    fn local_paths_and_malformed_data_urls_are_refused() {
        for (url, message) in [
            ("/etc/passwd", "`/etc/passwd` is a local path, not a URL; use a `path` source to read a file"),
            ("./a.png", "`./a.png` is a local path, not a URL; use a `path` source to read a file"),
            ("~/a.png", "`~/a.png` is a local path, not a URL; use a `path` source to read a file"),
            ("data:image/png;base64,???", "malformed `data:` URL"),
            ("data:image/png", "malformed `data:` URL"),
        ] {
            let mut part = ContentPart::from(ImageData::url(url));
            let error = part.decode_urls().unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidRequest, message));
        }
    }

    #[test]
    fn sources_are_serialised_by_kind() {
        for (image, expected) in [
            (ImageData::url("https://example.com/a.png"), json!({"url": "https://example.com/a.png"})),
            (ImageData::path("./a.png"), json!({"path": "./a.png"})),
            (ImageData::data(vec![1], "image/png"), json!({"data": "AQ==", "media_type": "image/png"})),
        ] {
            assert_eq!(serde_json::to_value(&image).unwrap(), expected);
            assert_eq!(serde_json::from_value::<ImageData>(expected).unwrap(), image);
        }
    }
}
