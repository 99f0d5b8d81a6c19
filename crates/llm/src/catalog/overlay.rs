//! Parsing of model lists, and overriding models field by field.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;
use serde_json::value::RawValue;

use super::entry::CatalogEntry;
use super::{Catalog, ModelInfo};
use crate::error::{Error, ErrorKind};

/// Fields of one model in a list, with their line numbers.
struct Override {
    line: usize,
    id: String,
    provider: String,
    fields: Vec<Field>,
}

struct Field {
    line: usize,
    name: String,
    value: Value,
}

impl Catalog {
    /// Returns this catalog with the overrides of a list of models, in the format of `catalog/README.md`.
    ///
    /// An entry for a known provider and id changes the fields that it names; `null` makes a value unknown. Any other
    /// entry is a new model; new models come first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] naming the line, and the field if there is one.
    pub fn merged_with(&self, json: &str) -> Result<Self, Error> {
        let key = |provider: &str, id: &str| (provider.to_owned(), id.to_owned());
        let mut models: Vec<ModelInfo> = self.list(None).cloned().collect();
        let known = models.iter().enumerate();
        let known: HashMap<_, _> =
            known.map(|(index, model)| (key(&model.provider, &model.id), index)).collect();
        let mut added: Vec<ModelInfo> = Vec::new();
        let mut seen = HashSet::new();
        for entry in parse_entries(json)? {
            let key = key(&entry.provider, &entry.id);
            let index = known.get(&key).copied();
            if !seen.insert(key) {
                return Err(line_error(entry.line, &format!("the model `{}` is listed twice", entry.id)));
            }
            match index.and_then(|index| models.get_mut(index)) {
                Some(model) => *model = entry.apply(model)?,
                None => added.push(entry.into_model()?),
            }
        }
        added.append(&mut models);
        Ok(Self { entries: added.into_iter().map(CatalogEntry::from).collect() })
    }
}

impl Override {
    /// Converts to a new model.
    fn into_model(self) -> Result<ModelInfo, Error> {
        if !self.fields.iter().any(|field| field.name == "context_window") {
            return Err(line_error(
                self.line,
                &format!("the new model `{}` needs `context_window`", self.id),
            ));
        }
        self.apply(&ModelInfo::new(&self.provider, &self.id, 1))
    }

    /// Overrides fields of a model. `sources` is applied last, since other fields clear sources.
    fn apply(&self, known: &ModelInfo) -> Result<ModelInfo, Error> {
        let (sources, others): (Vec<_>, Vec<_>) =
            self.fields.iter().partition(|field| field.name == "sources");
        others.into_iter().chain(sources).try_fold(known.clone(), |model, field| field.apply(&model))
    }
}

impl Field {
    fn apply(&self, known: &ModelInfo) -> Result<ModelInfo, Error> {
        let refused = |error| line_error(self.line, &format!("invalid `{}`", self.name)).with_source(error);
        let mut value = serde_json::to_value(known).map_err(refused)?;
        if let Some(fields) = value.as_object_mut() {
            if self.value.is_null() {
                fields.remove(&self.name);
            } else {
                fields.insert(self.name.to_owned(), self.value.clone());
            }
        }
        let mut model: ModelInfo = serde_json::from_value(value).map_err(refused)?;
        if let Some(why) = problem(&model) {
            return Err(line_error(self.line, &format!("`{}` {why}", self.name)));
        }
        self.clear_source(&mut model);
        Ok(model)
    }

    /// Clears the source of the overridden value.
    fn clear_source(&self, model: &mut ModelInfo) {
        match self.name.as_str() {
            "context_window" | "max_output" => model.sources.limits = None,
            "knowledge_cutoff" => model.sources.knowledge_cutoff = None,
            "retires_on" => model.sources.retires_on = None,
            "price_tiers" => model.sources.prices = None,
            name if name.ends_with("_cost_per_million") => model.sources.prices = None,
            name if name.starts_with("supports_") => model.sources.capabilities = None,
            _ => {}
        }
    }
}

/// Checks values beyond their types.
fn problem(model: &ModelInfo) -> Option<&'static str> {
    let tiers = &model.price_tiers;
    let of_tiers = tiers.iter().flat_map(|tier| {
        [
            tier.input_cost_per_million,
            tier.output_cost_per_million,
            tier.cache_read_cost_per_million,
            tier.cache_write_cost_per_million,
        ]
    });
    let of_model = [
        model.input_cost_per_million,
        model.output_cost_per_million,
        model.cache_read_cost_per_million,
        model.cache_write_cost_per_million,
    ];
    if model.id.is_empty() || model.provider.is_empty() || model.aliases.iter().any(String::is_empty) {
        return Some("must not be empty");
    }
    if model.context_window == 0 || model.max_output == Some(0) {
        return Some("must be at least 1");
    }
    if of_model.into_iter().chain(of_tiers).flatten().any(|price| price < 0.0) {
        return Some("must not be negative");
    }
    if !tiers.is_sorted_by_key(|tier| tier.above_input_tokens) {
        return Some("must begin with the shortest prompts");
    }
    None
}

fn parse_entries(json: &str) -> Result<Vec<Override>, Error> {
    let list: Vec<&RawValue> = serde_json::from_str(json).map_err(|error| {
        let line = error.line();
        line_error(line, "expected a list of models").with_source(error)
    })?;
    let lines = LineIndex::new(json);
    list.into_iter().map(|entry| parse_entry(&lines, entry)).collect()
}

fn parse_entry(lines: &LineIndex<'_>, entry: &RawValue) -> Result<Override, Error> {
    let line = lines.line_of(entry.get());
    let named: BTreeMap<String, &RawValue> = serde_json::from_str(entry.get())
        .map_err(|error| line_error(line, "expected an object").with_source(error))?;
    let mut fields = Vec::new();
    for (name, value) in named {
        let line = lines.line_of(value.get());
        let value = serde_json::from_str(value.get())
            .map_err(|error| line_error(line, &format!("invalid `{name}`")).with_source(error))?;
        fields.push(Field { line, name, value });
    }
    let text = |name: &str| {
        let field = fields.iter().find(|field| field.name == name);
        field.and_then(|field| field.value.as_str()).map(str::to_owned).ok_or_else(|| {
            let line = field.map_or(line, |field| field.line);
            line_error(line, &format!("expected `{name}` with a string"))
        })
    };
    Ok(Override { line, id: text("id")?, provider: text("provider")?, fields })
}

/// Offsets of the line ends of a text.
struct LineIndex<'a> {
    text: &'a str,
    ends: Vec<usize>,
}

impl<'a> LineIndex<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, ends: text.match_indices('\n').map(|(offset, _)| offset).collect() }
    }

    /// Line number of a slice of the text, starting at 1.
    fn line_of(&self, slice: &str) -> usize {
        // The slice is borrowed from the text, so its offset is the distance of the pointers.
        let offset = (slice.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        self.ends.partition_point(|end| *end < offset) + 1
    }
}

fn line_error(line: usize, what: &str) -> Error {
    Error::new(ErrorKind::Configuration, format!("line {line} of the model catalog: {what}"))
}
