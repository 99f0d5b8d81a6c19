//! `pintle tools`: what a model is told of its tools.

use pintle_agent::{ProviderProfile, SubagentLimits};
use pintle_llm::{Error, Message, Request, ToolDefinition};
use pintle_testkit::{Script, ScriptedServer, ServerOptions, Turn};
use serde_json::Value;

use crate::args::{ListFormat, ToolsArgs};
use crate::console::Console;
use crate::equipment;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::Watch;
use crate::host::Host;
use crate::provider::Provider;
use crate::render;
use crate::route::Route;

/// Stands for a model where the tools do not depend on it.
const ANY_MODEL: &str = "any";

/// Lists the tools of a provider's profile. Needs no key.
///
/// # Errors
///
/// Those of writing.
pub(crate) async fn tools(args: &ToolsArgs, host: &Host) -> Result<Exit, Failure> {
    let provider = args.provider.or_else(|| Provider::by_key(|name| host.variable(name)));
    let provider = provider.unwrap_or(Provider::OpenAi);
    let profile = provider.profile(provider.default_model().unwrap_or(ANY_MODEL));
    let toolset = args.toolset.into();
    let options = equipment::shown(&profile, toolset, false)?;
    let profile = profile.with_toolset_options(toolset, &options).as_in_session(SubagentLimits::default());
    let text = match args.output {
        ListFormat::Json => render::line(&sent(provider, &profile).await?)?,
        ListFormat::Text => profile.tools().iter().map(|tool| described(tool)).collect::<Vec<_>>().join("\n"),
    };
    Console::new().write(&text).await?;
    Ok(Exit::Done)
}

/// The tools as they stand in a request: one is made, to a server in this process, and looked at there.
async fn sent(provider: Provider, profile: &ProviderProfile) -> Result<Value, Failure> {
    let cannot = |error: &Error| Failure::failed("the tools cannot be shown as they are sent").because(error);
    let script = Script::new("tools").with_turn(Turn::text("Thank you."));
    let server = ScriptedServer::start(script, ServerOptions::new())
        .await
        .map_err(|error| Failure::failed("the scripted server cannot be started").because(&error))?;
    let route = Route::to_script(provider, profile.model.clone(), server.base_url(provider.dialect()));
    let client = route.client(Watch::default())?;
    let mut request = Request::new(&profile.model, vec![Message::user("Which tools are there?")])
        .with_provider(&profile.provider)
        .with_tools(profile.tools());
    request.provider_options.clone_from(&profile.provider_options);
    client.complete(request).await.map_err(|error| cannot(&error))?;
    let requests = server.requests();
    let tools = requests.first().and_then(|request| request.body.get("tools"));
    Ok(tools.cloned().unwrap_or_else(|| Value::Array(Vec::new())))
}

fn described(tool: &ToolDefinition) -> String {
    let mut text = format!("{}\n", tool.name);
    for line in tool.description.lines() {
        text.push_str(format!("    {line}").trim_end());
        text.push('\n');
    }
    text.push_str(&parameters(tool));
    text
}

/// A line per parameter: its name, its type, whether it may be left out, and what it is for.
fn parameters(tool: &ToolDefinition) -> String {
    let schema = &tool.parameters;
    let required: Vec<&str> = schema
        .get("required")
        .and_then(|names| names.as_array())
        .map(|names| names.iter().filter_map(|name| name.as_str()).collect())
        .unwrap_or_default();
    let Some(properties) = schema.get("properties").and_then(|properties| properties.as_object()) else {
        return String::new();
    };
    let mut text = String::from("\n");
    for (name, property) in properties {
        let optional = if required.contains(&name.as_str()) { "" } else { ", optional" };
        let description = property.get("description").and_then(|text| text.as_str()).unwrap_or_default();
        let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
        let colon = if description.is_empty() { "" } else { ": " };
        text.push_str(&format!("    {name} ({}{optional}){colon}{description}\n", kind(property)));
    }
    text
}

/// The schema's type in a word.
fn kind(property: &serde_json::Value) -> String {
    match property.get("type") {
        Some(serde_json::Value::String(kind)) => kind.clone(),
        Some(serde_json::Value::Array(kinds)) => {
            let kinds = kinds.iter().filter_map(|kind| kind.as_str()).filter(|kind| *kind != "null");
            kinds.collect::<Vec<_>>().join(" or ")
        }
        Some(_) | None => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_is_described_with_its_parameters() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Where\nto look."},
                "depth": {"type": ["integer", "null"]},
                "kind": {"enum": ["a"]},
            },
            "required": ["path"],
        });
        let tool = ToolDefinition::new("list", "Lists.\n\nAll of it.", schema).unwrap();
        insta::assert_snapshot!(described(&tool), @r"
        list
            Lists.

            All of it.

            depth (integer, optional)
            kind (any, optional)
            path (string): Where to look.
        ");
    }
}
