//! Prompts of servers, as commands of a conversation.

use std::collections::BTreeMap;

use pintle_mcp::{McpServers, PromptMessage, PromptRole, ServerError, ServerName, ServerPrompt};

use crate::prompt_commands::{PromptArgument, PromptCall, PromptCommand, PromptText};
use crate::sanitize::sanitize;

/// Prompts of the servers of a session.
#[derive(Debug, Default)]
pub(super) struct ServerPrompts {
    /// By the names of their servers.
    pub(super) known: BTreeMap<String, Vec<PromptCommand>>,
    /// Number of prompt changes at the time of the last request in this session, by server.
    pub(super) asked: BTreeMap<String, u64>,
}

impl ServerPrompts {
    /// Returns the prompts of all servers. Of two with the same name, the first one applies.
    pub(super) fn all(&self) -> Vec<PromptCommand> {
        let mut all: Vec<PromptCommand> = Vec::new();
        for prompt in self.known.values().flatten() {
            if !all.iter().any(|known| known.command == prompt.command) {
                all.push(prompt.clone());
            }
        }
        all
    }
}

/// Lists the prompts of a server, which is started if it does not run.
pub async fn list_prompts(
    servers: &McpServers,
    server: &ServerName,
) -> Result<Vec<PromptCommand>, ServerError> {
    Ok(servers.prompts(server).await?.into_iter().map(command).collect())
}

fn command(prompt: ServerPrompt) -> PromptCommand {
    let arguments = prompt
        .arguments
        .into_iter()
        .map(|argument| PromptArgument { name: argument.name, is_required: argument.is_required });
    PromptCommand {
        server: prompt.server.to_string(),
        name: prompt.name,
        command: prompt.command,
        description: prompt.description,
        arguments: arguments.collect(),
    }
}

/// Requests the text of a prompt from its server.
///
/// The error is the message of the server.
pub(super) async fn fetch(servers: &McpServers, called: &PromptCall) -> Result<PromptText, String> {
    let failed = |error: &dyn std::error::Error| sanitize(&error.to_string()).into_owned();
    let server: ServerName = called.server.parse().map_err(|error| failed(&error))?;
    let fetched = servers.prompt(&server, &called.name, called.arguments.clone()).await;
    let prompt = flatten_messages(fetched.map_err(|error| failed(&error))?);
    if prompt.text.trim().is_empty() && prompt.images.is_empty() {
        return Err(format!("server `{server}` has nothing to say for this prompt"));
    }
    Ok(prompt)
}

/// Joins messages into one user message. Messages of the model are quoted.
fn flatten_messages(messages: Vec<PromptMessage>) -> PromptText {
    let mut prompt = PromptText::default();
    for message in messages {
        let text = match message.role {
            PromptRole::User => message.text,
            PromptRole::Assistant => format!("Assistant: {}", message.text),
        };
        if !text.trim().is_empty() {
            let gap = if prompt.text.is_empty() { "" } else { "\n\n" };
            prompt.text.push_str(gap);
            prompt.text.push_str(&text);
        }
        prompt.images.extend(message.images);
    }
    prompt
}
