//! The tools that a server has listed.

use std::collections::HashSet;

use pintle_tools::Effect;
use rmcp::model::{Tool, ToolAnnotations};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::spec::ServerSpec;
use crate::{effect, tool_names};

/// Maximum number of characters of a tool's description that a model sees.
const MAX_DESCRIPTION: usize = 8_000;

/// Maximum number of characters of the name of a malformed entry, and of the reason, in a notice.
const MAX_NAME: usize = 100;
const MAX_REASON: usize = 300;

/// Maximum number of fields of a malformed entry that are tried to find the wrong field. Each takes a copy of the entry.
const MAX_TRIED: usize = 16;

/// Tools as a server has listed them. An application can store them, so that the next session knows them without starting
/// the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredListing", into = "StoredListing")]
pub struct ToolListing {
    tools: Vec<ListedTool>,
    has_resources: bool,
    malformed: Vec<MalformedEntry>,
}

/// Entry of a server's list that cannot be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("`{name}`: {reason}")]
pub(crate) struct MalformedEntry {
    name: String,
    reason: String,
}

/// Form in which a listing is stored: tools alone are an array.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredListing {
    Tools(Vec<ListedTool>),
    #[serde(rename_all = "camelCase")]
    All {
        tools: Vec<ListedTool>,
        has_resources: bool,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        malformed: Vec<MalformedEntry>,
    },
}

impl From<StoredListing> for ToolListing {
    fn from(kept: StoredListing) -> Self {
        match kept {
            StoredListing::Tools(tools) => Self { tools, ..Self::default() },
            StoredListing::All { tools, has_resources, malformed } => {
                Self { tools, has_resources, malformed }
            }
        }
    }
}

impl From<ToolListing> for StoredListing {
    fn from(ToolListing { tools, has_resources, malformed }: ToolListing) -> Self {
        match has_resources || !malformed.is_empty() {
            true => Self::All { tools, has_resources, malformed },
            false => Self::Tools(tools),
        }
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

/// Tool of a server, as offered to a model.
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
    /// Of two tools with the same name, the first counts.
    pub(crate) fn new(entries: Vec<Result<Tool, MalformedEntry>>, has_resources: bool) -> Self {
        let (mut tools, mut malformed, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for entry in entries {
            match entry {
                Ok(tool) => tools.push(tool),
                Err(tool) => malformed.push(tool),
            }
        }
        let listed = tools.into_iter().filter(|tool| seen.insert(tool.name.clone())).map(|tool| ListedTool {
            name: tool.name.into_owned(),
            description: tool.description.map(|text| text.into_owned()).unwrap_or_default(),
            input_schema: tool.input_schema.as_ref().clone(),
            annotations: tool.annotations,
        });
        Self { tools: listed.collect(), has_resources, malformed }
    }

    /// Returns the names of the malformed tools, which are left out, each with the reason.
    pub fn malformed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.malformed.iter().map(|tool| (tool.name.as_str(), tool.reason.as_str()))
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

    /// Returns the tools that a model is offered, sorted by name. Servers list them in any order, and a needless change
    /// of the list invalidates the provider's cache.
    pub(crate) fn offered_tools(&self, spec: &ServerSpec) -> Vec<OfferedTool> {
        let names = tool_names::for_tools(spec.name.as_str(), self.names());
        let offered = self.tools.iter().zip(names).filter(|(tool, _)| spec.filter.allows(&tool.name));
        let mut offered: Vec<OfferedTool> = offered.map(|(tool, name)| tool.to_offered(name, spec)).collect();
        offered.sort_by(|one, other| one.name.cmp(&other.name));
        offered
    }
}

impl MalformedEntry {
    /// Reads an entry of a server's list.
    ///
    /// # Errors
    ///
    /// The entry with the reason why it cannot be read.
    pub(crate) fn check<T: DeserializeOwned>(entry: &Value) -> Result<T, Self> {
        let names = ["name", "uri", "uriTemplate"];
        let name = names.iter().find_map(|name| entry.get(*name)?.as_str()).unwrap_or("without a name");
        let name = crate::process_log::shorten(name, MAX_NAME);
        T::deserialize(entry).map_err(|error| {
            let error = error.to_string();
            let field = wrong_field::<T>(entry, &error);
            let reason = field.map_or_else(|| error.clone(), |field| format!("`{field}`: {error}"));
            Self { name, reason: crate::process_log::shorten(&reason, MAX_REASON) }
        })
    }
}

/// Returns the field of an entry whose removal changes or removes the error. The messages of errors name a field only if
/// it is missing.
fn wrong_field<'a, T: DeserializeOwned>(entry: &'a Value, error: &str) -> Option<&'a str> {
    if error.starts_with("missing field") {
        return None;
    }
    let fields = entry.as_object()?;
    let is_wrong = |field: &&String| {
        let mut others = fields.clone();
        others.remove(*field);
        T::deserialize(&Value::Object(others)).err().is_none_or(|other| other.to_string() != error)
    };
    fields.keys().take(MAX_TRIED).find(is_wrong).map(String::as_str)
}

impl ListedTool {
    fn to_offered(&self, name: String, spec: &ServerSpec) -> OfferedTool {
        let mut parameters = self.input_schema.clone();
        // A schema without a type matches any value, including arguments.
        parameters.entry("type").or_insert_with(|| Value::from("object"));
        let declared = spec.effects.get(&self.name).copied().unwrap_or(spec.effect);
        OfferedTool {
            name,
            tool: self.name.clone(),
            description: crate::process_log::shorten(&self.description, MAX_DESCRIPTION),
            parameters: Value::Object(parameters),
            effect: effect::tool_effect(declared, self.annotations.as_ref()),
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
        let entries = tools.as_array().unwrap().iter().map(MalformedEntry::check);
        ToolListing::new(entries.collect(), false)
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
        let offered = listing.offered_tools(&spec);
        let seen: Vec<_> = offered.iter().map(|tool| (tool.name.as_str(), tool.effect)).collect();
        assert_eq!(seen, [("mcp__s__read", Effect::Read), ("mcp__s__write", Effect::Execute)]);
        assert_eq!(offered[0].parameters, json!({"type": "object"}));
        assert_eq!(offered[1].description, "Writes.");
        let kept: ToolListing = serde_json::from_str(&serde_json::to_string(&listing).unwrap()).unwrap();
        assert_eq!(kept, listing);
    }

    #[test]
    fn a_malformed_tool_is_named_and_the_others_stay() {
        for (entry, name, reason) in [
            (json!({"name": "bad"}), "bad", "missing field `inputSchema`"),
            (json!({"name": "bad", "inputSchema": "text"}), "bad", "`inputSchema`: invalid type: string"),
            (
                json!({"name": "bad", "inputSchema": {}, "outputSchema": 7}),
                "bad",
                "`outputSchema`: invalid type: integer",
            ),
            (json!({"name": 7, "inputSchema": {}}), "without a name", "`name`: invalid type: integer"),
            (json!(null), "without a name", "invalid type: null"),
        ] {
            let listing = listing(&json!([{"name": "good", "inputSchema": {}}, entry]));
            assert_eq!(listing.names().collect::<Vec<_>>(), ["good"], "{entry}");
            let malformed: Vec<_> = listing.malformed().collect();
            let [(found, why)] = malformed.as_slice() else { panic!("{listing:?}") };
            assert!(*found == name && why.starts_with(reason), "{entry}: {found}: {why}");
            let kept: ToolListing = serde_json::from_str(&serde_json::to_string(&listing).unwrap()).unwrap();
            assert_eq!(kept, listing);
        }
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
