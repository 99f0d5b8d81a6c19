//! Lists of tools: immutable, shared and encoded once.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ToolDefinition;
use crate::cache::EncodingCache;
use crate::fingerprint::Fingerprint;

/// Tool definition in a [`ToolList`]: immutable, shared and encoded once.
#[derive(Clone)]
pub struct ToolItem {
    inner: Arc<Item>,
}

struct Item {
    definition: ToolDefinition,
    encodings: EncodingCache,
}

impl ToolItem {
    /// The definition.
    #[must_use]
    pub fn definition(&self) -> &ToolDefinition {
        &self.inner.definition
    }

    /// Returns the cached encoding, as [`HistoryItem::encoding`](crate::HistoryItem::encoding) does.
    pub fn encoding<T: Any + Send + Sync>(
        &self,
        dialect: &'static str,
        target: &str,
        encode: impl FnOnce(&ToolDefinition) -> T,
    ) -> Arc<T> {
        self.inner.encodings.get_or_insert_with(dialect, target, || encode(&self.inner.definition))
    }
}

impl From<ToolDefinition> for ToolItem {
    fn from(definition: ToolDefinition) -> Self {
        Self { inner: Arc::new(Item { definition, encodings: EncodingCache::default() }) }
    }
}

impl Deref for ToolItem {
    type Target = ToolDefinition;

    fn deref(&self) -> &ToolDefinition {
        &self.inner.definition
    }
}

impl PartialEq for ToolItem {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner) || self.inner.definition == other.inner.definition
    }
}

impl fmt::Debug for ToolItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.definition.fmt(f)
    }
}

impl Serialize for ToolItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.inner.definition.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ToolDefinition::deserialize(deserializer).map(Self::from)
    }
}

/// Tools of a request, in order: immutable and cheap to clone.
///
/// The requests of a session share one list, with its fingerprint and its encoding. To change it, build another from
/// the items of [`to_vec`](slice::to_vec), which keep their encodings.
#[derive(Clone)]
pub struct ToolList {
    inner: Arc<List>,
}

struct List {
    items: Box<[ToolItem]>,
    json: OnceLock<JsonDigest>,
    encodings: EncodingCache,
}

/// Hash and size of the definitions, for which they are serialised once.
#[derive(Clone, Copy)]
struct JsonDigest {
    fingerprint: Fingerprint,
    /// Size without the brackets and commas of the list.
    bytes: usize,
}

static EMPTY: LazyLock<ToolList> = LazyLock::new(|| ToolList::from(Vec::<ToolItem>::new()));

impl ToolList {
    /// Returns a hash over all definitions, computed once.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.json_digest().fingerprint
    }

    /// Returns the size of the JSON of all definitions in bytes, computed once.
    #[must_use]
    pub fn json_bytes(&self) -> usize {
        self.json_digest().bytes
    }

    fn json_digest(&self) -> JsonDigest {
        *self.inner.json.get_or_init(|| {
            // Definitions always serialise; an empty text would only weaken the hash.
            let text = serde_json::to_vec(&self.inner.items).unwrap_or_default();
            let separators = self.inner.items.len().max(1) + 1;
            JsonDigest {
                fingerprint: Fingerprint::from_bytes(&text),
                bytes: text.len().saturating_sub(separators),
            }
        })
    }

    /// Returns the cached encoding of the list, as [`HistoryItem::encoding`](crate::HistoryItem::encoding) does.
    pub fn encoding<T: Any + Send + Sync>(
        &self,
        dialect: &'static str,
        target: &str,
        encode: impl FnOnce(&[ToolItem]) -> T,
    ) -> Arc<T> {
        self.inner.encodings.get_or_insert_with(dialect, target, || encode(&self.inner.items))
    }
}

impl Default for ToolList {
    /// Returns the empty list.
    fn default() -> Self {
        EMPTY.clone()
    }
}

impl Deref for ToolList {
    type Target = [ToolItem];

    fn deref(&self) -> &[ToolItem] {
        &self.inner.items
    }
}

impl From<Vec<ToolItem>> for ToolList {
    fn from(items: Vec<ToolItem>) -> Self {
        let (json, encodings) = (OnceLock::new(), EncodingCache::default());
        Self { inner: Arc::new(List { items: items.into(), json, encodings }) }
    }
}

impl From<Vec<ToolDefinition>> for ToolList {
    fn from(definitions: Vec<ToolDefinition>) -> Self {
        definitions.into_iter().collect()
    }
}

impl<T: Into<ToolItem>> FromIterator<T> for ToolList {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::from(items.into_iter().map(Into::into).collect::<Vec<ToolItem>>())
    }
}

impl<'a> IntoIterator for &'a ToolList {
    type Item = &'a ToolItem;
    type IntoIter = std::slice::Iter<'a, ToolItem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for ToolList {
    type Item = ToolItem;
    type IntoIter = std::vec::IntoIter<ToolItem>;

    fn into_iter(self) -> Self::IntoIter {
        let items: Vec<ToolItem> = self.iter().cloned().collect();
        items.into_iter()
    }
}

impl PartialEq for ToolList {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner) || self.inner.items == other.inner.items
    }
}

impl fmt::Debug for ToolList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.items.fmt(f)
    }
}

impl Serialize for ToolList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.inner.items.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<ToolItem>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::estimate;

    fn definition(name: &str) -> ToolDefinition {
        ToolDefinition::new(name, "Does it.", json!({"type": "object"})).unwrap()
    }

    #[test]
    fn a_list_is_serialised_as_its_definitions() {
        let definitions = vec![definition("a"), definition("b")];
        let text = serde_json::to_string(&definitions).unwrap();
        let list = ToolList::from(definitions);
        assert_eq!(serde_json::to_string(&list).unwrap(), text);
        assert_eq!(serde_json::from_str::<ToolList>(&text).unwrap(), list);
        assert_eq!(list.fingerprint(), Fingerprint::from_bytes(text.as_bytes()));
        assert_ne!(list.fingerprint(), ToolList::from(vec![definition("a")]).fingerprint());
        assert_eq!(ToolList::default().fingerprint(), Fingerprint::from_bytes(b"[]"));
    }

    #[test]
    fn size_of_a_list_is_the_sum_of_its_definitions() {
        let names = ["a", "bb", "ccc"];
        for count in 0..=names.len() {
            let list: ToolList = names[..count].iter().map(|name| definition(name)).collect();
            let sum: usize = list.iter().map(estimate::json_bytes).sum();
            assert_eq!(list.json_bytes(), sum, "{count} definitions");
        }
    }

    #[test]
    fn encodings_are_shared_by_clones_and_between_lists() {
        let list = ToolList::from(vec![definition("a"), definition("b")]);
        assert_eq!(*list.encoding("d", "", <[ToolItem]>::len), 2);
        list.clone().encoding("d", "", |_| -> usize { unreachable!("clones share it") });
        assert_eq!(*list[0].encoding("d", "", |tool| tool.name.clone()), "a");
        let mut fewer = list.to_vec();
        fewer.pop();
        let fewer = ToolList::from(fewer);
        assert_eq!(*fewer.encoding("d", "", <[ToolItem]>::len), 1, "another list has another encoding");
        fewer[0].encoding("d", "", |_| -> String { unreachable!("the tool is the same") });
    }
}
