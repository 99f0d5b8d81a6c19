//! Built-in tools of the profiles.

use std::sync::Arc;

use pintle_tools::{DynTool, Tool, ToolForm, ToolRegistry};

/// An ordered list of built-in tools. Their definitions are shared over the process and are checked by a test instead
/// of at run time.
#[derive(Default)]
pub(crate) struct BuiltInTools {
    tools: Vec<(Arc<ToolForm>, Arc<dyn DynTool>)>,
}

impl BuiltInTools {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with(mut self, tool: impl Tool) -> Self {
        match ToolForm::proven(&tool) {
            Ok(form) => self.tools.push((form, Arc::new(tool))),
            Err(error) => tracing::error!(%error, "a built-in tool was left out"),
        }
        self
    }

    /// Adds the tool if its requirements are met.
    pub(crate) fn with_optional<T: Tool>(self, tool: Option<T>) -> Self {
        match tool {
            Some(tool) => self.with(tool),
            None => self,
        }
    }

    pub(crate) fn with_all(mut self, more: Self) -> Self {
        self.tools.extend(more.tools);
        self
    }

    pub(crate) fn into_registry(self) -> ToolRegistry {
        let mut registry = ToolRegistry::new();
        for (form, tool) in self.tools {
            registry.register_as(form, tool);
        }
        registry
    }

    /// Registers the tools whose names are not taken.
    pub(crate) fn add_missing(self, registry: &mut ToolRegistry) {
        for (form, tool) in self.tools {
            if registry.get(form.name()).is_none() {
                registry.register_as(form, tool);
            }
        }
    }

    /// Replaces the registered tools of the same names.
    pub(crate) fn replace_existing(self, registry: &mut ToolRegistry) {
        for (form, tool) in self.tools {
            if registry.get(form.name()).is_some() {
                registry.register_as(form, tool);
            }
        }
    }
}
