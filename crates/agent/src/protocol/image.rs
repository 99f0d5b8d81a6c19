//! Summaries of images, for surfaces that cannot show them.

use pintle_llm::{ImageData, MediaSource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Media type and size of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ImageSummary {
    /// Media type, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub media_type: Option<String>,
    /// Size in bytes; `None` for an image that is fetched or read later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub bytes: Option<u64>,
}

impl ImageSummary {
    /// Summarises an image.
    #[must_use]
    pub fn from_image(image: &ImageData) -> Self {
        let bytes = match &image.source {
            MediaSource::Data(data) => Some(data.as_bytes().len() as u64),
            MediaSource::Url(_) | MediaSource::Path(_) | _ => None,
        };
        Self { media_type: image.media_type.clone(), bytes }
    }
}
