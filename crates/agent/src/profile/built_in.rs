//! Built-in tools of the profiles.

use pintle_tools::{DefinitionError, Tool, ToolRegistry};

/// An ordered list of built-in tools. A test verifies the definition of each.
#[derive(Default)]
pub(crate) struct BuiltInTools {
    tools: ToolRegistry,
}

impl BuiltInTools {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with_tool(mut self, tool: impl Tool) -> Self {
        report(self.tools.register_static(tool));
        self
    }

    /// Adds the tool if its requirements are met.
    pub(crate) fn with_optional<T: Tool>(self, tool: Option<T>) -> Self {
        match tool {
            Some(tool) => self.with_tool(tool),
            None => self,
        }
    }

    pub(crate) fn with_all(mut self, more: Self) -> Self {
        for tool in more.tools {
            self.tools.insert(tool);
        }
        self
    }

    pub(crate) fn into_registry(self) -> ToolRegistry {
        self.tools
    }

    /// Registers the tools whose names are not taken.
    pub(crate) fn add_missing(self, registry: &mut ToolRegistry) {
        for tool in self.tools {
            if registry.get(tool.name()).is_none() {
                registry.insert(tool);
            }
        }
    }

    /// Replaces the registered tools of the same names.
    pub(crate) fn replace_existing(self, registry: &mut ToolRegistry) {
        for tool in self.tools {
            if registry.get(tool.name()).is_some() {
                registry.insert(tool);
            }
        }
    }
}

fn report(registered: Result<(), DefinitionError>) {
    if let Err(error) = registered {
        tracing::error!(%error, "a built-in tool was left out");
    }
}
