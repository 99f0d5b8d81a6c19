//! Start tags with the attributes that the conversion reads.

use super::readable;

/// A start tag.
pub(super) struct StartTag {
    /// In lower case.
    pub(super) name: String,
    /// Names and values of the attributes in [`USED`], each name once.
    attributes: Vec<(&'static str, String)>,
    /// Whether the next value belongs to the last of `attributes`.
    reads_value: bool,
}

/// Attributes that are kept.
const USED: [&str; 5] = ["alt", "class", "href", "src", "start"];

impl StartTag {
    pub(super) fn new(name: &[u8]) -> Self {
        let name = String::from_utf8_lossy(name).into_owned();
        Self { name, attributes: Vec::new(), reads_value: false }
    }

    /// Starts an attribute. Of several attributes with one name, the first one counts.
    pub(super) fn begin_attribute(&mut self, name: &[u8]) {
        let used = USED.into_iter().find(|used| used.as_bytes() == name);
        let new = used.filter(|used| self.attribute(used).is_none());
        self.reads_value = new.is_some();
        self.attributes.extend(new.map(|name| (name, String::new())));
    }

    /// Sets the value of the attribute that was started last, cleaned up like text.
    pub(super) fn set_value(&mut self, value: &[u8]) {
        if let Some((_, last)) = self.attributes.last_mut().filter(|_| self.reads_value) {
            *last = readable(&String::from_utf8_lossy(value)).into_owned();
        }
    }

    /// Returns the value of an attribute, empty if it has none.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}
