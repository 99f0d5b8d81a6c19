//! Catalog entries, parsed on demand.

use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use super::{ModelInfo, SHIPPED};

/// An entry whose names are known.
///
/// Most programs look up a model or two, so a built-in entry is parsed on first use. Its names are in the index.
#[derive(Clone)]
pub(super) enum CatalogEntry {
    Parsed(ModelInfo),
    Lazy(LazyEntry),
}

#[derive(Clone)]
pub(super) struct LazyEntry {
    indexed: &'static IndexedModel,
    model: OnceLock<ModelInfo>,
}

/// Keys of a lookup for a built-in model, and the location of the model.
#[derive(Debug)]
pub(super) struct IndexedModel {
    pub(super) id: &'static str,
    pub(super) provider: &'static str,
    pub(super) aliases: &'static [&'static str],
    /// Bytes of the model in the built-in file.
    pub(super) text: Range<usize>,
}

impl CatalogEntry {
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Parsed(model) => &model.id,
            Self::Lazy(lazy) => lazy.indexed.id,
        }
    }

    pub(super) fn provider(&self) -> &str {
        match self {
            Self::Parsed(model) => &model.provider,
            Self::Lazy(lazy) => lazy.indexed.provider,
        }
    }

    /// Returns `true` for the id and the aliases.
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.id() == name
            || match self {
                Self::Parsed(model) => model.aliases.iter().any(|alias| alias == name),
                Self::Lazy(lazy) => lazy.indexed.aliases.contains(&name),
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
        let IndexedModel { id, provider, text, .. } = self.indexed;
        let text = SHIPPED.get(text.clone()).unwrap_or_default();
        // A test parses all built-in entries, so the fallback is never used.
        serde_json::from_str(text).unwrap_or_else(|_| ModelInfo::new(*provider, *id, 1))
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

impl From<&'static IndexedModel> for CatalogEntry {
    fn from(indexed: &'static IndexedModel) -> Self {
        Self::Lazy(LazyEntry { indexed, model: OnceLock::new() })
    }
}

impl From<ModelInfo> for CatalogEntry {
    fn from(model: ModelInfo) -> Self {
        Self::Parsed(model)
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::disallowed_methods,
        reason = "the checked-in index is compared, and written when asked for"
    )]

    use std::fmt::Write as _;

    use serde_json::value::RawValue;

    use super::*;
    use crate::catalog::{Catalog, MODELS};

    const INDEX: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/catalog/index.rs");

    /// Returns the built-in catalog, of which no entry is parsed.
    fn built_in() -> Catalog {
        Catalog { entries: MODELS.iter().map(CatalogEntry::from).collect() }
    }

    /// Number of entries parsed so far.
    fn parsed(entries: &[CatalogEntry]) -> usize {
        let is_parsed =
            |entry: &&CatalogEntry| matches!(entry, CatalogEntry::Lazy(lazy) if lazy.model.get().is_some());
        entries.iter().filter(is_parsed).count()
    }

    /// Returns the source text of the index.
    fn generated() -> String {
        let file: &'static str = SHIPPED;
        let models: Vec<&'static RawValue> = serde_json::from_str(file).unwrap();
        let mut source = "//! Index of `catalog/models.json`, which `cargo xtask generate` writes.\n\n\
                          use super::entry::IndexedModel;\n\n\
                          /// Names of the models and ranges of their text, in the order of the file.\n\
                          #[rustfmt::skip]\n\
                          pub(super) const MODELS: &[IndexedModel] = &[\n"
            .to_owned();
        for text in models.into_iter().map(RawValue::get) {
            let ModelInfo { id, provider, aliases, .. } = serde_json::from_str(text).unwrap();
            let start = text.as_ptr().addr() - file.as_ptr().addr();
            let end = start + text.len();
            writeln!(
                source,
                "    IndexedModel {{ id: {id:?}, provider: {provider:?}, aliases: &{aliases:?}, text: {start}..{end} }},"
            )
            .unwrap();
        }
        source + "];\n"
    }

    #[test]
    fn the_checked_in_index_matches_the_models() {
        let generated = generated();
        if std::env::var_os("WRITE_CATALOG_INDEX").is_some() {
            std::fs::write(INDEX, &generated).unwrap();
        }
        assert!(
            std::fs::read_to_string(INDEX).unwrap() == generated,
            "crates/llm/src/catalog/index.rs does not match catalog/models.json; regenerate it with\n    \
             cargo xtask generate"
        );
    }

    #[test]
    fn only_requested_models_are_parsed() {
        let catalog = built_in();
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
    fn indexed_names_are_those_of_the_models() {
        let entries = built_in().entries;
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
