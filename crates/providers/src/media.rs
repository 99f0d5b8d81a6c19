//! Reading of local media files before a request is encoded (client specification, section 3.5).

#![expect(clippy::disallowed_methods, reason = "`~` in the path of an image means the user's home directory")]

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use pintle_llm::{
    AudioData, ContentPart, DocumentData, Error, ErrorKind, HistoryItem, ImageData, MediaSource, Message,
    Request,
};
use tokio::io::AsyncReadExt as _;
use tokio::sync::OnceCell;

/// Maximum size of a file, in bytes: the limit of the least restrictive provider.
pub(crate) const MAX_FILE: u64 = 50 * 1024 * 1024;

/// Memo slot of a history item for the item with its files read.
const SLOT: &str = "local-media";

/// Replaces every local path in a request by the content of the file.
///
/// A file is read once per history item. Later requests send the same bytes even if the file has changed, so that the
/// prefix of a conversation is stable.
///
/// # Errors
///
/// [`ErrorKind::InvalidRequest`] if a file cannot be read, is larger than [`MAX_FILE`] or has an unknown type.
pub(crate) async fn resolve(request: &Request) -> Result<Cow<'_, Request>, Error> {
    if !request.messages.has_local_media() {
        return Ok(Cow::Borrowed(request));
    }
    let mut resolved = request.clone();
    for item in &mut resolved.messages {
        if item.content.iter().any(is_local_part) {
            let cell = item.encoding(SLOT, "", |_| OnceCell::<HistoryItem>::new());
            *item = cell.get_or_try_init(|| read_parts(item.message())).await?.clone();
        }
    }
    Ok(Cow::Owned(resolved))
}

/// An image for a request: a URL, or a media type with base64 data.
pub(crate) enum ImageForm<'a> {
    Url(&'a str),
    Base64 { media_type: &'a str, data: String },
}

/// Checks an image against the provider's limits and converts it.
///
/// # Errors
///
/// [`ErrorKind::InvalidRequest`] if the provider does not support images of this type or size in bytes.
pub(crate) fn image_form<'a>(
    image: &'a ImageData,
    provider: &str,
    types: &[&str],
    max_bytes: usize,
) -> Result<ImageForm<'a>, Error> {
    let bytes = match &image.source {
        MediaSource::Url(url) => return Ok(ImageForm::Url(url)),
        MediaSource::Data(bytes) => bytes,
        MediaSource::Path(_) | _ => return Err(unread(provider)),
    };
    let media_type = image.media_type.as_deref().unwrap_or("image/png");
    if !types.contains(&media_type) {
        return Err(unsupported(
            provider,
            format!("images of type {media_type} are not supported; supported are {}", types.join(", ")),
        ));
    }
    let size = bytes.as_bytes().len();
    if size > max_bytes {
        return Err(unsupported(
            provider,
            format!("an image of {size} bytes is too large; the limit is {max_bytes}"),
        ));
    }
    Ok(ImageForm::Base64 { media_type, data: bytes.to_base64() })
}

/// Refuses a document above the size limit of the provider.
pub(crate) fn check_document(size: usize, limit: usize, provider: &str) -> Result<(), Error> {
    if size <= limit {
        return Ok(());
    }
    Err(unsupported(provider, format!("a document of {size} bytes is too large; the limit is {limit}")))
}

/// Returns the error for content that a provider does not support.
pub(crate) fn unsupported(provider: &str, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidRequest, message).with_provider(provider)
}

/// The error for a source that [`resolve`] should have replaced.
pub(crate) fn unread(provider: &str) -> Error {
    unsupported(provider, "a local file has not been read")
}

/// Only a path reads a file: a URL may come from a client of the application.
fn is_local(source: &MediaSource) -> bool {
    matches!(source, MediaSource::Path(_))
}

fn is_local_part(part: &ContentPart) -> bool {
    part.media().any(is_local)
}

async fn read_parts(message: &Message) -> Result<HistoryItem, Error> {
    let mut message = message.clone();
    for part in &mut message.content {
        match part {
            ContentPart::Image(ImageData { source, media_type, .. })
            | ContentPart::Audio(AudioData { source, media_type, .. }) => read(source, media_type).await?,
            ContentPart::Document(DocumentData { source, media_type, file_name, .. }) => {
                if let (None, MediaSource::Path(path)) = (&file_name, &*source) {
                    *file_name = Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
                }
                read(source, media_type).await?;
            }
            ContentPart::ToolResult(result) => {
                for image in &mut result.images {
                    read(&mut image.source, &mut image.media_type).await?;
                }
            }
            ContentPart::Text(_)
            | ContentPart::ToolCall(_)
            | ContentPart::Thinking(_)
            | ContentPart::Opaque(_)
            | _ => {}
        }
    }
    Ok(message.into())
}

async fn read(source: &mut MediaSource, media_type: &mut Option<String>) -> Result<(), Error> {
    let MediaSource::Path(path) = source else { return Ok(()) };
    let path = expand(path);
    if media_type.is_none() {
        *media_type = Some(type_of(&path)?.to_owned());
    }
    let shown = path.display();
    let bytes = read_file(&path).await.map_err(|source| {
        Error::new(ErrorKind::InvalidRequest, format!("cannot read `{shown}`")).with_source(source)
    })?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(Error::new(
            ErrorKind::InvalidRequest,
            format!("`{shown}` is larger than the limit of {MAX_FILE} bytes"),
        ));
    }
    *source = MediaSource::Data(bytes.into());
    Ok(())
}

/// Reads a file, up to one byte more than the limit.
async fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    if !tokio::fs::metadata(path).await?.is_file() {
        // Reading a pipe or a terminal may never end.
        return Err(std::io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    tokio::fs::File::open(path).await?.take(MAX_FILE + 1).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

fn expand(path: &str) -> PathBuf {
    let home = path.strip_prefix("~/").and_then(|rest| Some(std::env::home_dir()?.join(rest)));
    home.unwrap_or_else(|| PathBuf::from(path))
}

fn type_of(path: &Path) -> Result<&'static str, Error> {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    Ok(match extension.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "heic" => "image/heic",
        "heif" => "image/heif",
        "pdf" => "application/pdf",
        "txt" | "md" => "text/plain",
        "wav" => "audio/wav",
        "mp3" => "audio/mp3",
        _ => {
            return Err(Error::new(
                ErrorKind::InvalidRequest,
                format!(
                    "cannot tell the type of `{}` from its extension; set `media_type`, or use one of \
                     png, jpg, gif, webp, heic, heif, pdf, txt, md, wav, mp3",
                    path.display()
                ),
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pintle_llm::{Role, ToolResult};

    use super::*;

    fn image_of(item: &HistoryItem) -> &ImageData {
        let ContentPart::Image(image) = &item.content[0] else { panic!("no image: {item:?}") };
        image
    }

    #[tokio::test]
    async fn local_files_are_read_once_and_typed_by_extension() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shot.JPG");
        std::fs::write(&path, b"first").unwrap();
        let part = ContentPart::Image(ImageData::path(path.to_string_lossy()));
        let request = Request::new("m", [Message::new(Role::User, vec![part])]);

        let resolved = resolve(&request).await.unwrap();
        let image = image_of(&resolved.messages[0]);
        assert_eq!(image, &ImageData::data(b"first".to_vec(), "image/jpeg"));

        std::fs::write(&path, b"second").unwrap();
        let again = resolve(&request).await.unwrap();
        assert_eq!(again.messages, resolved.messages, "the prefix is stable");
    }

    #[tokio::test]
    async fn tool_result_images_and_documents_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let png = directory.path().join("a.png");
        let pdf = directory.path().join("b.pdf");
        std::fs::write(&png, b"png").unwrap();
        std::fs::write(&pdf, b"pdf").unwrap();
        let result = ToolResult::new("c", "seen", false).with_image(ImageData::path(png.to_string_lossy()));
        let mut document: DocumentData =
            serde_json::from_value(serde_json::json!({"path": pdf.to_string_lossy()})).unwrap();
        document.media_type = Some("application/x-own".into());
        let request = Request::new(
            "m",
            [
                Message::tool_results(vec![result]),
                Message::new(Role::User, vec![ContentPart::Document(document)]),
            ],
        );
        let resolved = resolve(&request).await.unwrap();
        let result = resolved.messages[0].results().next().unwrap();
        assert_eq!(result.images[0], ImageData::data(b"png".to_vec(), "image/png"));
        let ContentPart::Document(document) = &resolved.messages[1].content[0] else { panic!("no document") };
        assert_eq!(document.source, MediaSource::Data(b"pdf".to_vec().into()));
        assert_eq!(document.media_type.as_deref(), Some("application/x-own"));
        assert_eq!(document.file_name.as_deref(), Some("b.pdf"));
    }

    #[tokio::test]
    async fn requests_without_local_media_are_not_copied() {
        let part = ContentPart::Image(ImageData::url("https://example.com/a.png"));
        let request = Request::new("m", [Message::user("hi").with_part(part)]);
        assert!(matches!(resolve(&request).await.unwrap(), Cow::Borrowed(_)));
    }

    #[tokio::test]
    async fn a_url_never_reads_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.png");
        std::fs::write(&path, b"png").unwrap();
        for url in [path.to_string_lossy().into_owned(), format!("file://{}", path.display())] {
            let parts = vec![
                ImageData::url(&url).into(),
                ContentPart::Audio(AudioData::url(&url)),
                ContentPart::Document(DocumentData::url(&url)),
                ToolResult::new("c", "", false).with_image(ImageData::url(&url)).into(),
            ];
            let request = Request::new("m", [Message::new(Role::User, parts)]);
            assert!(matches!(resolve(&request).await.unwrap(), Cow::Borrowed(_)), "{url}");
        }
    }

    #[tokio::test]
    async fn unreadable_files_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("none.png").to_string_lossy().into_owned();
        let untyped = directory.path().join("none.xyz").to_string_lossy().into_owned();
        let nested = directory.path().join("dir.png");
        std::fs::create_dir(&nested).unwrap();
        for (path, words) in [
            (missing, "cannot read"),
            (untyped, "cannot tell the type"),
            (nested.to_string_lossy().into_owned(), "cannot read"),
        ] {
            let part = ContentPart::Image(ImageData::path(&path));
            let error =
                resolve(&Request::new("m", [Message::new(Role::User, vec![part])])).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidRequest);
            assert!(error.message().contains(words) && error.message().contains(&path), "{error}");
        }
    }

    #[test]
    fn provider_limits_are_checked() {
        let types = ["image/png"];
        let png = ImageData::data(vec![0; 10], "image/png");
        assert!(matches!(image_form(&png, "p", &types, 10), Ok(ImageForm::Base64 { .. })));
        let error = image_form(&png, "p", &types, 9).err().unwrap();
        assert_eq!(error.message(), "an image of 10 bytes is too large; the limit is 9");
        let tiff = ImageData::data(vec![0], "image/tiff");
        let error = image_form(&tiff, "p", &types, 9).err().unwrap();
        assert_eq!(error.message(), "images of type image/tiff are not supported; supported are image/png");
    }

    #[test]
    fn tilde_expands_to_the_home_directory() {
        let home = std::env::home_dir().expect("a home directory");
        assert_eq!(expand("~/a.png"), home.join("a.png"));
        assert_eq!(expand("./a.png"), PathBuf::from("./a.png"));
        assert_eq!(Arc::new(expand("/a.png")).as_path(), Path::new("/a.png"));
    }
}
