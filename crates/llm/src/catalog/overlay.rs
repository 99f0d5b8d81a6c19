//! Reading a list of models and laying it over another, field by field.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;
use serde_json::value::RawValue;

use super::entry::Entry as Kept;
use super::{Catalog, ModelInfo};
use crate::error::{Error, ErrorKind};

/// What a list says of one model, with the place of each word.
struct Entry {
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
    /// This catalog with a list of models over it, in the format of `catalog/README.md`.
    ///
    /// An entry of a model that is here, by its provider and id, changes the fields that it names; `null` makes a
    /// figure unknown. Any other entry is a new model, and new models come first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] naming the line, and the field where there is one.
    pub fn merged_with(&self, json: &str) -> Result<Self, Error> {
        let key = |provider: &str, id: &str| (provider.to_owned(), id.to_owned());
        let mut models: Vec<ModelInfo> = self.list(None).cloned().collect();
        let known = models.iter().enumerate();
        let known: HashMap<_, _> =
            known.map(|(place, model)| (key(&model.provider, &model.id), place)).collect();
        let mut added: Vec<ModelInfo> = Vec::new();
        let mut seen = HashSet::new();
        for entry in read_entries(json)? {
            let key = key(&entry.provider, &entry.id);
            let place = known.get(&key).copied();
            if !seen.insert(key) {
                return Err(at(entry.line, &format!("the model `{}` is there twice", entry.id)));
            }
            match place.and_then(|place| models.get_mut(place)) {
                Some(model) => *model = entry.over(model)?,
                None => added.push(entry.over_nothing()?),
            }
        }
        added.append(&mut models);
        Ok(Self { entries: added.into_iter().map(Kept::from).collect() })
    }
}

impl Entry {
    /// A model of its own.
    fn over_nothing(&self) -> Result<ModelInfo, Error> {
        if !self.fields.iter().any(|field| field.name == "context_window") {
            return Err(at(self.line, &format!("the new model `{}` needs `context_window`", self.id)));
        }
        self.over(&ModelInfo::new(&self.provider, &self.id, 1))
    }

    /// The model with the fields that are named here. What is said of sources counts after the figures.
    fn over(&self, known: &ModelInfo) -> Result<ModelInfo, Error> {
        let (sources, figures): (Vec<_>, Vec<_>) =
            self.fields.iter().partition(|field| field.name == "sources");
        figures.into_iter().chain(sources).try_fold(known.clone(), |model, field| field.over(&model))
    }
}

impl Field {
    fn over(&self, known: &ModelInfo) -> Result<ModelInfo, Error> {
        let refused = |error| at(self.line, &format!("`{}` does not fit", self.name)).with_source(error);
        let mut value = serde_json::to_value(known).map_err(refused)?;
        if let Some(fields) = value.as_object_mut() {
            if self.value.is_null() {
                fields.remove(&self.name);
            } else {
                fields.insert(self.name.to_owned(), self.value.clone());
            }
        }
        let mut model: ModelInfo = serde_json::from_value(value).map_err(refused)?;
        if let Some(why) = senseless(&model) {
            return Err(at(self.line, &format!("`{}` {why}", self.name)));
        }
        self.forget_source(&mut model);
        Ok(model)
    }

    /// A new figure does not come from where the old one came from.
    fn forget_source(&self, model: &mut ModelInfo) {
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

/// What the types allow and a model cannot be.
fn senseless(model: &ModelInfo) -> Option<&'static str> {
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

fn read_entries(json: &str) -> Result<Vec<Entry>, Error> {
    let list: Vec<&RawValue> = serde_json::from_str(json).map_err(|error| {
        let line = error.line();
        at(line, "expected a list of models").with_source(error)
    })?;
    let lines = Lines::of(json);
    list.into_iter().map(|entry| read(&lines, entry)).collect()
}

fn read(lines: &Lines<'_>, entry: &RawValue) -> Result<Entry, Error> {
    let line = lines.line_of(entry.get());
    let named: BTreeMap<String, &RawValue> = serde_json::from_str(entry.get())
        .map_err(|error| at(line, "expected a model, which is an object").with_source(error))?;
    let mut fields = Vec::new();
    for (name, value) in named {
        let line = lines.line_of(value.get());
        let value = serde_json::from_str(value.get())
            .map_err(|error| at(line, &format!("`{name}` does not fit")).with_source(error))?;
        fields.push(Field { line, name, value });
    }
    let text = |name: &str| {
        let field = fields.iter().find(|field| field.name == name);
        field.and_then(|field| field.value.as_str()).map(str::to_owned).ok_or_else(|| {
            let line = field.map_or(line, |field| field.line);
            at(line, &format!("a model needs `{name}`, which is a text"))
        })
    };
    Ok(Entry { line, id: text("id")?, provider: text("provider")?, fields })
}

/// A text, and where its lines end.
struct Lines<'a> {
    text: &'a str,
    ends: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, ends: text.match_indices('\n').map(|(offset, _)| offset).collect() }
    }

    /// The line of a piece of the text, from 1.
    fn line_of(&self, piece: &str) -> usize {
        // The piece is borrowed from the text, so that the distance of the two is its place.
        let offset = (piece.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        self.ends.partition_point(|end| *end < offset) + 1
    }
}

fn at(line: usize, what: &str) -> Error {
    Error::new(ErrorKind::Configuration, format!("line {line} of the model catalog: {what}"))
}
