//! The tools of the profiles.

use pintle_tools::{Tool, ToolRegistry};

/// A list of our own tools. A test verifies the definition of each.
#[derive(Default)]
pub(crate) struct Kit {
    tools: ToolRegistry,
}

impl Kit {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with(mut self, tool: impl Tool) -> Self {
        if let Err(error) = self.tools.register_static(tool) {
            tracing::error!(%error, "a built-in tool was left out");
        }
        self
    }

    /// With this tool, if there is one.
    pub(crate) fn with_some<T: Tool>(self, tool: Option<T>) -> Self {
        match tool {
            Some(tool) => self.with(tool),
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

    /// Adds the tools whose names are not registered yet.
    pub(crate) fn add_missing(self, registry: &mut ToolRegistry) {
        for tool in self.tools {
            if registry.get(tool.name()).is_none() {
                registry.insert(tool);
            }
        }
    }

    /// Replaces the registered tools with the same names.
    pub(crate) fn replace_in(self, registry: &mut ToolRegistry) {
        for tool in self.tools {
            if registry.get(tool.name()).is_some() {
                registry.insert(tool);
            }
        }
    }
}
