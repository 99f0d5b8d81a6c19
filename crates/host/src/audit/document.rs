//! Document of an audit, independent of its format. Texts are verbatim from the record: each format escapes them.

use pintle_governance::audit::{EventStamp, InputHistory};

/// Document of headings, fields and texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AuditDocument {
    pub(super) title: String,
    pub(super) blocks: Vec<AuditBlock>,
}

/// Part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AuditBlock {
    /// Named part.
    Section { title: &'static str, blocks: Vec<AuditBlock> },
    /// Part that describes one thing, such as a call.
    Item { title: String, blocks: Vec<AuditBlock> },
    /// One line with a name.
    Field { name: &'static str, value: String },
    /// Text of several lines with a name.
    Text { name: &'static str, text: String },
    /// Something that a reader must not miss.
    Alarm(String),
}

impl AuditBlock {
    pub(super) fn field(name: &'static str, value: impl Into<String>) -> Self {
        Self::Field { name, value: value.into() }
    }

    pub(super) fn item(title: impl Into<String>, blocks: Vec<Self>) -> Self {
        Self::Item { title: title.into(), blocks }
    }

    /// Returns a section, unless it is empty.
    pub(super) fn section(title: &'static str, blocks: Vec<Self>) -> Option<Self> {
        (!blocks.is_empty()).then_some(Self::Section { title, blocks })
    }
}

/// Returns number and time of an event.
pub(super) fn format_stamp(format_stamp: EventStamp) -> String {
    format!("#{} {}", format_stamp.seq, format_stamp.at)
}

/// Returns where an input came from.
pub(super) fn origin(input: &InputHistory) -> String {
    let posted = input.posted_as.as_ref().map_or_else(String::new, |id| format!(", posted as {id}"));
    let run = input.run.map_or_else(String::new, |run| format!(", run {run}"));
    let by = input.by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
    format!("{} {}{by}{run}{posted}", format_stamp(input.moment), input.source.as_str())
}

/// Returns the serialised name of a value, such as `turn_limit`, with spaces.
pub(super) fn name_of(value: &impl serde::Serialize) -> String {
    let name = serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned));
    name.unwrap_or_default().to_lowercase().replace('_', " ")
}

/// Returns a duration for display.
pub(super) fn duration(millis: u64) -> String {
    if millis < 1_000 {
        format!("{millis} ms")
    } else {
        format!("{}.{} s", millis / 1_000, millis % 1_000 / 100)
    }
}
