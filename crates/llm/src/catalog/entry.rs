//! Catalog entries, parsed on demand.

use std::fmt;
use std::sync::OnceLock;

use serde::Deserialize;

use super::ModelInfo;

/// An entry whose names are known.
///
/// Most programs look up a model or two, so only the names of built-in entries are parsed up front.
#[derive(Clone)]
pub(super) enum CatalogEntry {
    Parsed(ModelInfo),
    Lazy(LazyEntry),
}

#[derive(Clone)]
pub(super) struct LazyEntry {
    names: Names<'static>,
    text: &'static str,
    model: OnceLock<ModelInfo>,
}

/// Keys of a lookup.
#[derive(Clone, Deserialize)]
struct Names<'a> {
    id: &'a str,
    provider: &'a str,
    #[serde(borrow, default)]
    aliases: Vec<&'a str>,
}

impl CatalogEntry {
    /// Parses the names in a list in the format of `catalog/README.md`. Names must not contain escapes. Entries after an
    /// error are left out.
    pub(super) fn parse_list(json: &'static str) -> Vec<Self> {
        let mut entries = Vec::new();
        let mut rest = json;
        // An entry follows the opening bracket or the comma after the previous entry.
        while let Some((_, from_entry)) = rest.split_once(['[', ',']) {
            let mut stream = serde_json::Deserializer::from_str(from_entry).into_iter();
            let Some(Ok(names)) = stream.next() else { break };
            let Some((text, after)) = from_entry.split_at_checked(stream.byte_offset()) else { break };
            entries.push(Self::Lazy(LazyEntry { names, text, model: OnceLock::new() }));
            rest = after;
        }
        entries
    }

    pub(super) fn id(&self) -> &str {
        match self {
            Self::Parsed(model) => &model.id,
            Self::Lazy(lazy) => lazy.names.id,
        }
    }

    pub(super) fn provider(&self) -> &str {
        match self {
            Self::Parsed(model) => &model.provider,
            Self::Lazy(lazy) => lazy.names.provider,
        }
    }

    /// Returns `true` for the id and the aliases.
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.id() == name
            || match self {
                Self::Parsed(model) => model.aliases.iter().any(|alias| alias == name),
                Self::Lazy(lazy) => lazy.names.aliases.contains(&name),
            }
    }

    /// Returns the model, parsing it on first use.
    pub(super) fn model(&self) -> &ModelInfo {
        match self {
            Self::Parsed(model) => model,
            Self::Lazy(lazy) => lazy.model.get_or_init(|| lazy.parse()),
        }
    }
}

impl LazyEntry {
    fn parse(&self) -> ModelInfo {
        // A test parses the complete built-in file, so the fallback is never used.
        serde_json::from_str(self.text)
            .unwrap_or_else(|_| ModelInfo::new(self.names.provider, self.names.id, 1))
    }
}

impl fmt::Debug for CatalogEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.model().fmt(f)
    }
}

impl PartialEq for CatalogEntry {
    fn eq(&self, other: &Self) -> bool {
        self.model() == other.model()
    }
}

impl From<ModelInfo> for CatalogEntry {
    fn from(model: ModelInfo) -> Self {
        Self::Parsed(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Catalog, SHIPPED};

    /// Number of entries parsed so far.
    fn parsed(entries: &[CatalogEntry]) -> usize {
        let is_parsed =
            |entry: &&CatalogEntry| matches!(entry, CatalogEntry::Lazy(lazy) if lazy.model.get().is_some());
        entries.iter().filter(is_parsed).count()
    }

    #[test]
    fn only_requested_models_are_parsed() {
        let catalog = Catalog { entries: CatalogEntry::parse_list(SHIPPED) };
        assert_eq!(catalog.get("no-such-model"), None);
        assert_eq!(catalog.find("openai", "claude-opus-4-6"), None);
        assert_eq!(parsed(&catalog.entries), 0);
        assert_eq!(catalog.get("gpt-5.2-2025-12-11").unwrap().id, "gpt-5.2");
        assert_eq!(catalog.find("openai", "gpt-5.2").unwrap().id, "gpt-5.2");
        assert_eq!(parsed(&catalog.entries), 1);
        assert_eq!(catalog.list(Some("gemini")).count(), parsed(&catalog.entries) - 1);
        assert_eq!(catalog.list(None).count(), parsed(&catalog.entries));
    }

    #[test]
    fn names_parsed_up_front_are_those_of_the_models() {
        let entries = CatalogEntry::parse_list(SHIPPED);
        let models: Vec<ModelInfo> = serde_json::from_str(SHIPPED).unwrap();
        assert_eq!(entries.len(), models.len());
        for (entry, model) in entries.iter().zip(models) {
            assert_eq!((entry.id(), entry.provider()), (model.id.as_str(), model.provider.as_str()));
            let other = ["", "no-such-model", model.provider.as_str()];
            let own = model.aliases.iter().chain([&model.id]).map(String::as_str);
            for name in own.chain(other) {
                assert_eq!(entry.is_named(name), CatalogEntry::from(model.clone()).is_named(name), "{name}");
            }
            assert_eq!(entry.model(), &model);
        }
    }
}
