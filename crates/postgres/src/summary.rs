//! Summaries as columns of a table.

use pintle_store::Summary;
use tokio_postgres::Row;

/// Columns of a summary.
pub(crate) struct SummaryRow {
    pub(crate) parent: Option<String>,
    pub(crate) updated_at: i64,
    pub(crate) summary: String,
    pub(crate) properties: String,
}

impl SummaryRow {
    pub(crate) fn new(summary: &Summary) -> Self {
        Self {
            parent: summary.parent.as_ref().map(|parent| searchable(parent.as_str())),
            updated_at: summary.updated_at.as_millis(),
            summary: serde_json::to_string(summary).unwrap_or_default(),
            properties: properties_json(summary.properties.iter()),
        }
    }
}

/// Returns properties as a JSON object that can be searched.
pub(crate) fn properties_json<'a>(properties: impl Iterator<Item = (&'a String, &'a String)>) -> String {
    let members = properties.map(|(name, value)| (searchable(name), searchable(value).into()));
    serde_json::Value::Object(members.collect()).to_string()
}

/// Replaces NUL characters, which PostgreSQL does not allow in text. The rows that a search finds are compared again.
pub(crate) fn searchable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Returns the summary of a row, or `None` if it cannot be parsed.
pub(crate) fn parse_summary(row: &Row) -> Option<Summary> {
    let text: &str = row.try_get(0).ok()?;
    serde_json::from_str(text).ok()
}
