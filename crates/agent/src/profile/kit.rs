//! The tools that come with the profiles, each in the form that all of its kind in the process share.

use std::sync::Arc;

use pintle_tools::{DynTool, Tool, ToolForm, ToolRegistry};

/// A list of tools that we wrote ourselves: a test proves the definition of every one.
#[derive(Default)]
pub(crate) struct Kit {
    tools: Vec<(Arc<ToolForm>, Arc<dyn DynTool>)>,
}

impl Kit {
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

    /// With this tool, if there is what it needs.
    pub(crate) fn with_some<T: Tool>(self, tool: Option<T>) -> Self {
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

    /// Adds those of whose name there is no tool yet.
    pub(crate) fn add_missing(self, registry: &mut ToolRegistry) {
        for (form, tool) in self.tools {
            if registry.get(form.name()).is_none() {
                registry.register_as(form, tool);
            }
        }
    }

    /// Puts those in the place of the tools that have their names.
    pub(crate) fn replace_in(self, registry: &mut ToolRegistry) {
        for (form, tool) in self.tools {
            if registry.get(form.name()).is_some() {
                registry.register_as(form, tool);
            }
        }
    }
}
