//! Forms that are made once in a process, each part when it is first needed.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use pintle_llm::{Grammar, ToolDefinition, ToolItem};
use serde_json::{Value, json};

use super::ToolForm;
use crate::error::DefinitionError;
use crate::schema;
use crate::tool::{Tool, owned_aliases};
use crate::truncate::TruncationRule;

/// The most forms that are kept of one type of tool. Ours have one each; a host may word each of its tools anew.
const KEPT: usize = 4;

static FORMS: LazyLock<Mutex<HashMap<TypeId, Vec<Proven>>>> = LazyLock::new(Mutex::default);

/// All that a form depends on but the type of the tool.
struct Facts<'a> {
    name: &'a str,
    description: &'a str,
    grammar: Option<Grammar>,
    kind: &'a str,
    truncation: TruncationRule,
    aliases: &'a [(&'static str, &'static str)],
}

/// A form, with those of its facts that would only show in its definition.
struct Proven {
    description: String,
    grammar: Option<Grammar>,
    form: Arc<ToolForm>,
}

impl ToolForm {
    /// That of a tool whose definition is known to be right, because a test has called
    /// [`ToolRegistry::prove`](crate::ToolRegistry::prove).
    ///
    /// The schema is derived when somebody asks what the model is told, and compiled at the first call. Both happen once
    /// in a process for all tools of this type with the same name, texts and rules, so the schema of the input has to be
    /// a matter of its type alone: a [`JsonSchema`](schemars::JsonSchema) written by hand, with values that are known at
    /// run time only, wants [`ToolForm::of`].
    ///
    /// If the schema is wrong in spite of the test, each call of the tool fails.
    ///
    /// # Errors
    ///
    /// A name that is not as the specification wants it.
    pub fn proven<T: Tool>(tool: &T) -> Result<Arc<Self>, DefinitionError> {
        let facts = Facts {
            name: tool.name(),
            description: tool.description(),
            grammar: tool.grammar(),
            kind: tool.kind(),
            truncation: tool.truncation(),
            aliases: tool.aliases(),
        };
        kept(TypeId::of::<T>(), facts, schema::parameters_of::<T::Input>)
    }
}

/// The form of these facts for this type of tool; `parameters` gives the schema of the type's input.
fn kept(
    of_tool: TypeId,
    facts: Facts<'_>,
    parameters: fn() -> Value,
) -> Result<Arc<ToolForm>, DefinitionError> {
    let mut all = FORMS.lock().unwrap_or_else(PoisonError::into_inner);
    let forms = all.entry(of_tool).or_default();
    if let Some(known) = forms.iter().find(|known| known.is_of(&facts)) {
        return Ok(Arc::clone(&known.form));
    }
    let made = Proven::new(facts, parameters)?;
    let form = Arc::clone(&made.form);
    if forms.len() < KEPT {
        forms.push(made);
    }
    Ok(form)
}

impl Proven {
    fn new(facts: Facts<'_>, parameters: fn() -> Value) -> Result<Self, DefinitionError> {
        // The least that is a schema stands for it until somebody asks.
        let mut definition = ToolDefinition::new(facts.name, facts.description, json!({"type": "object"}))
            .map_err(|source| DefinitionError::refused(facts.name, source))?;
        definition.grammar.clone_from(&facts.grammar);
        let make = move || {
            definition.parameters = parameters();
            ToolItem::from(definition)
        };
        let form = ToolForm {
            name: facts.name.to_owned(),
            kind: facts.kind.to_owned(),
            truncation: facts.truncation,
            aliases: owned_aliases(facts.aliases),
            definition: LazyLock::new(Box::new(make)),
            validator: OnceLock::new(),
        };
        Ok(Self { description: facts.description.to_owned(), grammar: facts.grammar, form: Arc::new(form) })
    }

    fn is_of(&self, facts: &Facts<'_>) -> bool {
        let aliases = self.form.aliases.iter().map(|(alias, parameter)| (alias.as_str(), parameter.as_str()));
        self.form.name == facts.name
            && self.description == facts.description
            && self.grammar == facts.grammar
            && self.form.kind == facts.kind
            && self.form.truncation == facts.truncation
            && aliases.eq(facts.aliases.iter().copied())
    }
}

#[cfg(test)]
mod tests;
