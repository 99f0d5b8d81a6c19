//! The tools that a server has listed.

use std::collections::HashSet;

use pintle_tools::Effect;
use rmcp::model::{Tool, ToolAnnotations};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::spec::ServerSpec;
use crate::{effect, names};

/// Characters of a server's description of a tool that a model sees.
const MAX_DESCRIPTION: usize = 8_000;

/// Tools that a server has listed, as it listed them. An application can keep them, so that the next session knows them
/// without starting the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Kept", into = "Kept")]
pub struct ToolListing {
    tools: Vec<ListedTool>,
    has_resources: bool,
}

/// Form in which a listing is kept: tools alone are an array.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Kept {
    Tools(Vec<ListedTool>),
    #[serde(rename_all = "camelCase")]
    All {
        tools: Vec<ListedTool>,
        has_resources: bool,
    },
}

impl From<Kept> for ToolListing {
    fn from(kept: Kept) -> Self {
        let (tools, has_resources) = match kept {
            Kept::Tools(tools) => (tools, false),
            Kept::All { tools, has_resources } => (tools, has_resources),
        };
        Self { tools, has_resources }
    }
}

impl From<ToolListing> for Kept {
    fn from(ToolListing { tools, has_resources }: ToolListing) -> Self {
        if has_resources { Self::All { tools, has_resources } } else { Self::Tools(tools) }
    }
}

/// Tool of a [`ToolListing`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedTool {
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
    input_schema: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    annotations: Option<ToolAnnotations>,
}

/// Tool of a server, as it is offered to a model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OfferedTool {
    /// The name that a model calls.
    pub(crate) name: String,
    /// The name that the server knows.
    pub(crate) tool: String,
    pub(crate) description: String,
    pub(crate) parameters: Value,
    pub(crate) effect: Effect,
}

impl OfferedTool {
    /// Returns the size of its definition, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.name.len() + self.description.len() + self.parameters.to_string().len()
    }
}

impl ToolListing {
    /// Of two tools with one name, the first counts.
    pub(crate) fn new(tools: Vec<Tool>, has_resources: bool) -> Self {
        let mut seen = HashSet::new();
        let listed = tools.into_iter().filter(|tool| seen.insert(tool.name.clone())).map(|tool| ListedTool {
            name: tool.name.into_owned(),
            description: tool.description.map(|text| text.into_owned()).unwrap_or_default(),
            input_schema: tool.input_schema.as_ref().clone(),
            annotations: tool.annotations,
        });
        Self { tools: listed.collect(), has_resources }
    }

    /// Returns whether the server has resources, which a model can list and read.
    #[must_use]
    pub fn has_resources(&self) -> bool {
        self.has_resources
    }

    /// Returns the number of tools.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Returns whether there are no tools.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Returns the names that the server gives its tools, in its order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name.as_str())
    }

    /// Returns the tools that a model is offered, sorted by name: servers list them in any order, and a list that changes
    /// without a reason makes a provider forget its cache.
    pub(crate) fn offered(&self, spec: &ServerSpec) -> Vec<OfferedTool> {
        let names = names::of_tools(spec.name.as_str(), self.names());
        let offered = self.tools.iter().zip(names).filter(|(tool, _)| spec.filter.allows(&tool.name));
        let mut offered: Vec<OfferedTool> = offered.map(|(tool, name)| tool.offered(name, spec)).collect();
        offered.sort_by(|one, other| one.name.cmp(&other.name));
        offered
    }
}

impl ListedTool {
    fn offered(&self, name: String, spec: &ServerSpec) -> OfferedTool {
        let mut parameters = self.input_schema.clone();
        // Without a type it is one for anything, of which arguments are one kind.
        parameters.entry("type").or_insert_with(|| Value::from("object"));
        let declared = spec.effects.get(&self.name).copied().unwrap_or(spec.effect);
        OfferedTool {
            name,
            tool: self.name.clone(),
            description: crate::diary::shortened(&self.description, MAX_DESCRIPTION),
            parameters: Value::Object(parameters),
            effect: effect::of_tool(declared, self.annotations.as_ref()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::filter::ToolFilter;
    use crate::spec::{ServerTransport, StdioServer};

    fn spec() -> ServerSpec {
        let transport = ServerTransport::Stdio(StdioServer::new("server", [""; 0]));
        ServerSpec::new("s".parse().unwrap(), transport)
    }

    fn listing(tools: &Value) -> ToolListing {
        ToolListing::new(serde_json::from_value(tools.clone()).unwrap(), false)
    }

    #[test]
    fn tools_are_offered_in_the_order_of_their_names_without_doubles() {
        let tools = json!([
            {"name": "write", "description": "Writes.", "inputSchema": {"type": "object"}},
            {"name": "read", "inputSchema": {}, "annotations": {"readOnlyHint": true}},
            {"name": "write", "description": "Another.", "inputSchema": {"type": "object"}},
            {"name": "hidden", "inputSchema": {"type": "object"}},
        ]);
        let spec =
            spec().with_filter(ToolFilter::new([], ["hid*"]).unwrap()).with_effect_of("read", Effect::Read);
        let listing = listing(&tools);
        let offered = listing.offered(&spec);
        let seen: Vec<_> = offered.iter().map(|tool| (tool.name.as_str(), tool.effect)).collect();
        assert_eq!(seen, [("mcp__s__read", Effect::Read), ("mcp__s__write", Effect::Execute)]);
        assert_eq!(offered[0].parameters, json!({"type": "object"}));
        assert_eq!(offered[1].description, "Writes.");
        let kept: ToolListing = serde_json::from_str(&serde_json::to_string(&listing).unwrap()).unwrap();
        assert_eq!(kept, listing);
    }

    #[test]
    fn a_listing_is_kept_with_whether_there_are_resources() {
        for has_resources in [false, true] {
            let tools = json!([{"name": "read", "inputSchema": {"type": "object"}}]);
            let listing = ToolListing { has_resources, ..listing(&tools) };
            let kept = serde_json::to_value(&listing).unwrap();
            assert_eq!(kept.is_array(), !has_resources);
            assert_eq!(serde_json::from_value::<ToolListing>(kept).unwrap(), listing);
        }
    }
}
