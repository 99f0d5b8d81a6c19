//! Images that models accept.

use std::path::Path;

use pintle_env::{EnvError, ExecutionEnvironment};
use pintle_llm::ImageData;

use super::content_kind::{ContentKind, SAMPLE};

/// Maximum size of an image, in bytes. In base64 it has 5 MB, which every provider accepts.
pub const MAX_IMAGE: u64 = 3_750_000;

/// Reason why a file is not an image for a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The content is not PNG, JPEG, GIF or WebP.
    #[error("it is no PNG, JPEG, GIF or WebP image")]
    Kind,
    /// The image is larger than [`MAX_IMAGE`].
    #[error("the image has {size} bytes; models take at most {MAX_IMAGE}")]
    TooLarge {
        /// Size in bytes.
        size: u64,
    },
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] EnvError),
}

/// Returns the image in these bytes. Its first bytes determine the type.
///
/// # Errors
///
/// [`ImageError::Kind`] or [`ImageError::TooLarge`].
pub fn image_of(bytes: Vec<u8>) -> Result<ImageData, ImageError> {
    let sample = bytes.len().min(usize::try_from(SAMPLE).unwrap_or(usize::MAX));
    let media_type = media_type(bytes.get(..sample).unwrap_or_default()).ok_or(ImageError::Kind)?;
    check_size(bytes.len() as u64)?;
    Ok(ImageData::data(bytes, media_type))
}

/// Reads an image file of an environment. Of a file that is too large or not an image, only the start is read.
///
/// # Errors
///
/// All errors of [`ImageError`].
pub async fn read_image(env: &dyn ExecutionEnvironment, path: &Path) -> Result<ImageData, ImageError> {
    let size = env.metadata(path).await?.len;
    let sample = env.read(path, Some(0..SAMPLE)).await?;
    media_type(&sample).ok_or(ImageError::Kind)?;
    check_size(size)?;
    // The file may have grown since then.
    image_of(env.read(path, Some(0..MAX_IMAGE + 1)).await?)
}

fn check_size(size: u64) -> Result<(), ImageError> {
    if size > MAX_IMAGE { Err(ImageError::TooLarge { size }) } else { Ok(()) }
}

fn media_type(sample: &[u8]) -> Option<&'static str> {
    match ContentKind::from_sample(sample) {
        ContentKind::Image(media_type) => Some(media_type),
        ContentKind::Binary(_) | ContentKind::Text => None,
    }
}

#[cfg(test)]
mod tests {
    use pintle_env::MemoryEnvironment;

    use super::*;

    const GIF: &[u8] = b"GIF89a\x01\0\x01\0";

    #[tokio::test]
    async fn images_are_read_by_their_content_within_a_limit() {
        let large = [GIF, &vec![0; usize::try_from(MAX_IMAGE).unwrap()]].concat();
        let cases: [(&[u8], Result<&str, &str>); 4] = [
            (GIF, Ok("image/gif")),
            (b"\xFF\xD8\xFF\xE0", Ok("image/jpeg")),
            (b"text", Err("it is no PNG, JPEG, GIF or WebP image")),
            (&large, Err("the image has 3750010 bytes; models take at most 3750000")),
        ];
        let env = MemoryEnvironment::new("/work");
        for (bytes, expected) in cases {
            env.write(Path::new("shot"), bytes).await.unwrap();
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            let read = read_image(&env, Path::new("shot")).await;
            for image in [read, image_of(bytes.to_vec())] {
                let media_type = image.map(|image| image.media_type.unwrap_or_default());
                assert_eq!(media_type.map_err(|error| error.to_string()), expected);
            }
        }
        let missing = read_image(&env, Path::new("none.png")).await.unwrap_err();
        assert!(matches!(missing, ImageError::Read(_)), "{missing}");
    }
}
