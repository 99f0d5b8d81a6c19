//! The manifest: each recording with its expected outcome.
//!
//! Unknown expectations are refused, so that everything in the manifest is checked.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

/// The corpus.
#[derive(Debug, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) files: Vec<Arc<Entry>>,
}

/// A recording.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    /// Name below the directory of the manifest.
    pub(crate) file: String,
    pub(crate) kind: Kind,
    pub(crate) transport: Transport,
    pub(crate) http_status: u16,
    pub(crate) bytes: usize,
    pub(crate) sha256: String,
    #[serde(default)]
    pub(crate) response_headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) request: Asked,
    /// Reason why it is not required to pass.
    pub(crate) optional: Option<String>,
    pub(crate) expected: Expected,
}

/// Dialect of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    OpenaiResponses,
    Anthropic,
    OpenaiChat,
    Gemini,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Transport {
    /// A complete response.
    Json,
    /// A stream of events.
    Sse,
}

/// Known facts about the request.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Asked {
    pub(crate) model: Option<String>,
}

/// The outcome. A missing field means that there is none: no call, no reasoning.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    pub(crate) id: Option<String>,
    pub(crate) model: Option<String>,
    #[serde(default)]
    pub(crate) text: String,
    pub(crate) text_segments: Option<Vec<String>>,
    pub(crate) reasoning: Option<String>,
    pub(crate) refusal: Option<String>,
    #[serde(default)]
    pub(crate) signatures: Vec<Digest>,
    /// The same signatures as in the final snapshot, which is equally correct.
    #[serde(default)]
    pub(crate) signatures_final: Vec<Digest>,
    #[serde(default)]
    pub(crate) redacted: Vec<Digest>,
    /// The provider's names of the items without an equivalent in the unified model.
    #[serde(default)]
    pub(crate) other_items: Vec<String>,
    #[serde(default)]
    pub(crate) tool_calls: Vec<ExpectedCall>,
    pub(crate) finish: ExpectedFinish,
    pub(crate) usage: Option<ExpectedUsage>,
    /// The error within a stream, or of an error response.
    pub(crate) error: Option<Complaint>,
    /// Class of an error response.
    pub(crate) http_error: Option<String>,
    /// Number of events in the stream.
    pub(crate) events: Option<usize>,
    /// Number of data lines that are not JSON.
    #[serde(default)]
    pub(crate) bad_events: usize,
    /// Whether the terminal event is there.
    pub(crate) terminated: bool,
    #[serde(default)]
    pub(crate) notes: Vec<String>,
}

/// An opaque string that must be preserved, by its length in bytes and its hash.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Digest {
    pub(crate) len: usize,
    pub(crate) sha256: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedCall {
    /// `None` if the client must generate one.
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: CallKind,
    pub(crate) arguments: Value,
    /// As the model wrote them; `None` if they arrived as JSON.
    pub(crate) arguments_raw: Option<String>,
    /// `false` if they were truncated.
    pub(crate) valid_json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CallKind {
    Function,
    Custom,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedFinish {
    pub(crate) raw: Option<String>,
    /// In the spelling of the specification; `None` is not checked.
    pub(crate) unified: Option<String>,
}

/// Token counts; `None` if the provider did not report them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedUsage {
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    pub(crate) total_tokens: Option<u64>,
    pub(crate) reasoning_tokens: Option<u64>,
    pub(crate) cache_read_tokens: Option<u64>,
    pub(crate) cache_write_tokens: Option<u64>,
    /// Gemini's own total.
    pub(crate) provider_total: Option<u64>,
    /// Gemini's output including thoughts.
    pub(crate) output_plus_reasoning: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Complaint {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    /// A text or a number.
    #[serde(default)]
    pub(crate) code: Value,
    pub(crate) message: String,
}

impl Manifest {
    pub(crate) fn read(directory: &Path) -> Result<Self, String> {
        let path = directory.join("manifest.json");
        let shown = path.display();
        let text = std::fs::read_to_string(&path).map_err(|error| format!("cannot read {shown}: {error}"))?;
        serde_json::from_str(&text).map_err(|error| format!("{shown} is no manifest: {error}"))
    }

    /// Returns the recordings whose names contain `filter`.
    pub(crate) fn matching(&self, filter: Option<&str>) -> Result<Vec<Arc<Entry>>, String> {
        let wanted = |entry: &&Arc<Entry>| filter.is_none_or(|part| entry.file.contains(part));
        let found: Vec<Arc<Entry>> = self.files.iter().filter(wanted).cloned().collect();
        if found.is_empty() {
            return Err(format!(
                "no recording has `{}` in its name; there are {}",
                filter.unwrap_or_default(),
                self.files.len()
            ));
        }
        Ok(found)
    }
}

impl Entry {
    /// Returns the model for the request: as recorded, else the one that responded.
    pub(crate) fn model(&self) -> &str {
        let answered = self.expected.model.as_deref();
        self.request.model.as_deref().or(answered).unwrap_or("some-model")
    }
}

impl Kind {
    pub(crate) const ALL: [Self; 4] =
        [Self::OpenaiResponses, Self::Anthropic, Self::OpenaiChat, Self::Gemini];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::OpenaiChat => "openai-chat",
            Self::Gemini => "gemini",
        }
    }
}
