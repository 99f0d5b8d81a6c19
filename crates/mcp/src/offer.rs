//! Tools of the servers for a model: defined in its requests, or found and called by other tools.

use std::sync::Arc;

use pintle_tools::{DeferredTools, DefinitionError, RegisteredTool, ToolRegistry};

use crate::listing::OfferedTool;
use crate::resources::{ListResources, ReadResource};
use crate::search::{CallTool, SearchTools};
use crate::servers::McpServers;
use crate::spec::{ServerName, ServerSpec};
use crate::tool::McpTool;

impl McpServers {
    /// Adds the tools of the servers to the tools that a model is offered. No server is started.
    ///
    /// Known tools are defined in requests, sorted by name, if all these definitions together have at most `max_bytes`
    /// bytes. Other tools are deferred: the model gets a tool that searches them, which starts servers, and a tool that
    /// calls a found tool. A changed list of deferred tools therefore changes no request.
    ///
    /// Two more tools list and read resources, if a server is known to have some.
    ///
    /// Returns the tools that no provider would accept, each with the reason.
    #[must_use]
    pub fn register(&self, registry: &mut ToolRegistry, max_bytes: usize) -> Vec<DefinitionError> {
        let (mut known, mut has_unknown) = (Vec::new(), false);
        for (spec, tools) in self.offers() {
            match tools {
                Some(tools) => known.push((spec, tools)),
                None => has_unknown = true,
            }
        }
        let bytes: usize = known.iter().flat_map(|(_, known)| &known.offered).map(OfferedTool::bytes).sum();
        let is_defined = bytes <= max_bytes;
        let mut refused = Vec::new();
        for (spec, known) in &known {
            refused.extend(known.malformed(spec));
        }
        if is_defined {
            for (spec, known) in &known {
                for offered in &known.offered {
                    refused.extend(registry.register(self.tool(spec, offered)).err());
                }
            }
        }
        if !is_defined || has_unknown {
            refused.extend(registry.register(SearchTools::new(self.clone())).err());
            refused.extend(registry.register(CallTool).err());
            registry.set_deferred(Some(Arc::new(self.clone())));
        }
        refused.extend(self.register_resources(registry));
        refused
    }

    /// Adds the tools for resources if a server has some.
    fn register_resources(&self, registry: &mut ToolRegistry) -> Vec<DefinitionError> {
        let names: Vec<&ServerName> = self.with_resources().collect();
        if names.is_empty() {
            return Vec::new();
        }
        let effects = self.specs().filter(|spec| names.contains(&&spec.name)).map(|spec| spec.effect);
        let read = ReadResource::new(self.clone(), effects);
        let list = registry.register(ListResources::new(self.clone(), &names));
        list.err().into_iter().chain(registry.register(read).err()).collect()
    }

    fn tool(&self, spec: &ServerSpec, offered: &OfferedTool) -> McpTool {
        McpTool::new(self.clone(), spec.name.clone(), offered.clone())
    }

    /// Returns a tool that requests do not define.
    ///
    /// # Errors
    ///
    /// A schema that no provider would accept.
    pub(crate) fn deferred(
        &self,
        spec: &ServerSpec,
        offered: &OfferedTool,
    ) -> Result<RegisteredTool, DefinitionError> {
        RegisteredTool::new(Arc::new(self.tool(spec, offered)))
    }
}

/// Tools that are called by name although requests do not define them.
impl DeferredTools for McpServers {
    fn find(&self, name: &str) -> Option<Arc<RegisteredTool>> {
        self.offers().find_map(|(spec, known)| {
            let known = known?;
            let offered = known.offered.iter().find(|tool| tool.name == name)?;
            self.deferred(spec, offered).ok().map(Arc::new)
        })
    }

    fn names(&self) -> Vec<String> {
        let known = self.offers().filter_map(|(_, known)| known);
        known
            .flat_map(|known| known.offered.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>())
            .collect()
    }
}
