//! One model of a catalog: read, or still as it stands in the shipped file.

use std::fmt;
use std::sync::OnceLock;

use serde::Deserialize;

use super::ModelInfo;

/// A model with its names at hand.
///
/// A program asks for a model or two, so that of the shipped file no more than the names is read at first.
#[derive(Clone)]
pub(super) enum Entry {
    Read(ModelInfo),
    Shipped(Shipped),
}

#[derive(Clone)]
pub(super) struct Shipped {
    names: Names<'static>,
    text: &'static str,
    model: OnceLock<ModelInfo>,
}

/// What a model is asked for by.
#[derive(Clone, Deserialize)]
struct Names<'a> {
    id: &'a str,
    provider: &'a str,
    #[serde(borrow, default)]
    aliases: Vec<&'a str>,
}

impl Entry {
    /// The entries of a list in the format of `catalog/README.md`, of which no name needs an escape. What comes after a
    /// mistake is left out.
    pub(super) fn of_list(json: &'static str) -> Vec<Self> {
        let mut entries = Vec::new();
        let mut rest = json;
        // After the bracket that opens the list, and after the comma behind each entry.
        while let Some((_, from_entry)) = rest.split_once(['[', ',']) {
            let mut stream = serde_json::Deserializer::from_str(from_entry).into_iter();
            let Some(Ok(names)) = stream.next() else { break };
            let Some((text, behind)) = from_entry.split_at_checked(stream.byte_offset()) else { break };
            entries.push(Self::Shipped(Shipped { names, text, model: OnceLock::new() }));
            rest = behind;
        }
        entries
    }

    pub(super) fn id(&self) -> &str {
        match self {
            Self::Read(model) => &model.id,
            Self::Shipped(shipped) => shipped.names.id,
        }
    }

    pub(super) fn provider(&self) -> &str {
        match self {
            Self::Read(model) => &model.provider,
            Self::Shipped(shipped) => shipped.names.provider,
        }
    }

    /// Whether this is its id or one of its aliases.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.id() == name
            || match self {
                Self::Read(model) => model.aliases.iter().any(|alias| alias == name),
                Self::Shipped(shipped) => shipped.names.aliases.contains(&name),
            }
    }

    /// All that is known of it; read here if nobody has asked before.
    pub(super) fn model(&self) -> &ModelInfo {
        match self {
            Self::Read(model) => model,
            Self::Shipped(shipped) => shipped.model.get_or_init(|| shipped.read()),
        }
    }
}

impl Shipped {
    fn read(&self) -> ModelInfo {
        // The file is part of the crate and a test reads all of it; a model of which nothing is known is the only thing
        // left to say otherwise.
        serde_json::from_str(self.text)
            .unwrap_or_else(|_| ModelInfo::new(self.names.provider, self.names.id, 1))
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.model().fmt(f)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.model() == other.model()
    }
}

impl From<ModelInfo> for Entry {
    fn from(model: ModelInfo) -> Self {
        Self::Read(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Catalog, SHIPPED};

    /// How many of the entries have been read.
    fn read(entries: &[Entry]) -> usize {
        let is_read =
            |entry: &&Entry| matches!(entry, Entry::Shipped(shipped) if shipped.model.get().is_some());
        entries.iter().filter(is_read).count()
    }

    #[test]
    fn what_is_asked_for_is_read_and_no_more() {
        let catalog = Catalog { entries: Entry::of_list(SHIPPED) };
        assert_eq!(catalog.get("no-such-model"), None);
        assert_eq!(catalog.find("openai", "claude-opus-4-6"), None);
        assert_eq!(read(&catalog.entries), 0);
        assert_eq!(catalog.get("gpt-5.2-2025-12-11").unwrap().id, "gpt-5.2");
        assert_eq!(catalog.find("openai", "gpt-5.2").unwrap().id, "gpt-5.2");
        assert_eq!(read(&catalog.entries), 1);
        assert_eq!(catalog.list(Some("gemini")).count(), read(&catalog.entries) - 1);
        assert_eq!(catalog.list(None).count(), read(&catalog.entries));
    }

    #[test]
    fn the_names_at_hand_are_those_of_the_model() {
        let entries = Entry::of_list(SHIPPED);
        let whole: Vec<ModelInfo> = serde_json::from_str(SHIPPED).unwrap();
        assert_eq!(entries.len(), whole.len());
        for (entry, model) in entries.iter().zip(whole) {
            assert_eq!((entry.id(), entry.provider()), (model.id.as_str(), model.provider.as_str()));
            let other = ["", "no-such-model", model.provider.as_str()];
            let own = model.aliases.iter().chain([&model.id]).map(String::as_str);
            for name in own.chain(other) {
                assert_eq!(entry.is_called(name), Entry::from(model.clone()).is_called(name), "{name}");
            }
            assert_eq!(entry.model(), &model);
        }
    }
}
