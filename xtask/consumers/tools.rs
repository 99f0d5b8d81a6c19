//! Registers a typed tool.

use std::collections::BTreeMap;

use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolOutput, ToolRegistry};

struct Count;

impl Tool for Count {
    type Input = BTreeMap<String, String>;

    fn name(&self) -> &str {
        "count"
    }

    fn description(&self) -> &str {
        "Counts the given words, by name."
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    async fn call(&self, words: Self::Input, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new(words.len().to_string().as_str()))
    }
}

fn main() {
    let mut registry = ToolRegistry::new();
    registry.register(Count).expect("a good definition");
    assert_eq!(registry.definitions()[0].name, "count");
    assert!(registry.get("no-such-tool").is_none());
}
