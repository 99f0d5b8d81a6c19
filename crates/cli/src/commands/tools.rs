//! `pintle tools`: lists the tools offered to a model, and checks manifests of tools.

use std::path::Path;

use pintle_agent::{ProviderProfile, SubagentLimits};
use pintle_host::failure::{Failure, FailureKind, OrFailure as _};
use pintle_host::process_env::{self, ProcessEnv};
use pintle_host::provider::Provider;
use pintle_host::route::{self, Route};
use pintle_host::sanitize::json_line;
use pintle_host::tool_manifests::ToolDirectory;
use pintle_host::toolset;
use pintle_llm::{Client, Message, Request, ToolDefinition};
use pintle_testkit::{Script, ScriptedServer, ServerOptions, Turn};
use pintle_tui::console;
use serde_json::Value;

use crate::arguments::{ListFormat, ToolsArgs, ToolsCommand};
use crate::exit::Exit;
use crate::testkit_models::dialect_of;

/// Model name for providers without a default model. Their tools do not depend on it.
const ANY_MODEL: &str = "any";

/// Runs `pintle tools`. Needs no key.
pub(crate) async fn tools(args: &ToolsArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    match &args.command {
        Some(ToolsCommand::Check { file }) => check(file, process_env).await,
        None => list(args, process_env).await,
    }
}

/// Checks a manifest. Its mistakes are one usage failure.
async fn check(file: &Path, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let environment = process_env.local_environment(&process_env.directory(None)?)?;
    let file = process_env::absolute(file)?;
    match ToolDirectory::check_file(&file, &environment).await {
        Ok(loaded) => {
            let mut text = describe(&loaded.manifest.definition);
            text.push_str("\nno mistakes\n");
            console::print(&text).await?;
            Ok(Exit::Done)
        }
        Err(problems) => {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Err(Failure::multi_line(FailureKind::Usage, &problems.join("\n")))
        }
    }
}

/// Lists the tools of a provider's profile.
async fn list(args: &ToolsArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let provider = route::displayed_provider(args.provider, None, process_env)?;
    let profile = provider.profile(provider.default_model().unwrap_or(ANY_MODEL));
    let toolset = args.toolset.into();
    let options = toolset::display_options(&profile, toolset, false)?;
    let profile = profile.with_toolset_options(toolset, &options).as_in_session(SubagentLimits::default());
    let text = match args.output {
        ListFormat::Json => json_line(&wire_tools(provider, &profile).await?)?,
        ListFormat::Text => profile.tools().iter().map(|tool| describe(tool)).collect::<Vec<_>>().join("\n"),
    };
    console::print(&text).await?;
    Ok(Exit::Done)
}

/// Returns the tools as serialised in a request, by sending one to a server in this process.
async fn wire_tools(provider: Provider, profile: &ProviderProfile) -> Result<Value, Failure> {
    let script = Script::new("tools").with_turn(Turn::text("Thank you."));
    let server = ScriptedServer::start(script, ServerOptions::new())
        .await
        .or_failed("cannot start the scripted server")?;
    let route = Route::scripted(provider, profile.model.clone(), server.base_url(dialect_of(provider)));
    let client = route.client(Client::builder())?;
    let mut request = Request::new(&profile.model, vec![Message::user("Which tools are there?")])
        .with_provider(&profile.provider)
        .with_tools(profile.tools());
    request.provider_options.clone_from(&profile.provider_options);
    client.complete(request).await.or_failed("cannot serialise the tools")?;
    let requests = server.requests();
    let tools = requests.first().and_then(|request| request.body.get("tools"));
    Ok(tools.cloned().unwrap_or_else(|| Value::Array(Vec::new())))
}

fn describe(tool: &ToolDefinition) -> String {
    let mut text = format!("{}\n", tool.name);
    for line in tool.description.lines() {
        text.push_str(format!("    {line}").trim_end());
        text.push('\n');
    }
    text.push_str(&parameters(tool));
    text
}

/// Returns a line per parameter with name, type and description.
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
        text.push_str(&format!("    {name} ({}{optional}){colon}{description}\n", json_type(property)));
    }
    text
}

/// Returns the JSON type of a parameter.
fn json_type(property: &serde_json::Value) -> String {
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
    fn tools_are_described_with_parameters() {
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
        insta::assert_snapshot!(describe(&tool), @r"
        list
            Lists.

            All of it.

            depth (integer, optional)
            kind (any, optional)
            path (string): Where to look.
        ");
    }
}
