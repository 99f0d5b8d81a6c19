//! Prompts of servers: texts that a user chooses, often as commands of a terminal.

use std::collections::BTreeMap;

use pintle_llm::ImageData;
use rmcp::model::{Prompt, Role};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::error::ServerError;
use crate::process_log::shorten;
use crate::servers::McpServers;
use crate::spec::ServerName;
use crate::{result, tool_names};

/// Maximum number of characters of a server's description.
const MAX_DESCRIPTION: usize = 500;

/// Prompt that a server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerPrompt {
    /// The server.
    pub server: ServerName,
    /// The name that the server gives it.
    pub name: String,
    /// `mcp__SERVER__PROMPT`, in characters that need no quotes. No other prompt of the server has it.
    pub command: String,
    /// Its purpose, in at most 500 characters of untrusted text. Default: empty.
    pub description: String,
    /// Its arguments, in the order of the server.
    pub arguments: Vec<PromptArgument>,
}

/// Argument of a [`ServerPrompt`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// Its description, in at most 500 characters of untrusted text. Default: empty.
    pub description: String,
    /// Whether the prompt needs it. Default false.
    pub is_required: bool,
}

/// Message of a prompt that was fetched.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PromptMessage {
    /// Author of the message.
    pub role: PromptRole,
    /// Its text, with a line for each content that cannot be shown.
    pub text: String,
    /// Its images.
    pub images: Vec<ImageData>,
}

/// Author of a [`PromptMessage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptRole {
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl McpServers {
    /// Lists the prompts of a server. Starts the server if it does not run. The list of a server without prompts is
    /// empty. A malformed prompt is left out, and logged.
    ///
    /// # Errors
    ///
    /// The server cannot be started or does not answer.
    pub async fn prompts(&self, server: &ServerName) -> Result<Vec<ServerPrompt>, ServerError> {
        let entries = self.connect(server, &CancellationToken::new()).await?.prompts().await?;
        let mut prompts = Vec::new();
        for entry in entries {
            match entry {
                Ok(prompt) => prompts.push(prompt),
                Err(malformed) => tracing::warn!(%server, %malformed, "a prompt is left out"),
            }
        }
        let commands =
            tool_names::for_tools(server.as_str(), prompts.iter().map(|prompt| prompt.name.as_str()));
        Ok(prompts
            .into_iter()
            .zip(commands)
            .map(|(prompt, command)| server_prompt(server, prompt, command))
            .collect())
    }

    /// Fetches a prompt with arguments, by the name that the server gives it. Dropping the future withdraws the request.
    ///
    /// # Errors
    ///
    /// The server cannot be started, does not answer, or refuses the arguments.
    pub async fn prompt(
        &self,
        server: &ServerName,
        name: &str,
        arguments: BTreeMap<String, String>,
    ) -> Result<Vec<PromptMessage>, ServerError> {
        let arguments = arguments.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
        let cancel = CancellationToken::new();
        let fetched = self.connect(server, &cancel).await?.prompt(name, arguments, &cancel).await?;
        let messages = fetched.messages.into_iter().map(|message| {
            let role = match message.role {
                Role::Assistant => PromptRole::Assistant,
                _ => PromptRole::User,
            };
            let (text, images) = result::content(message.content);
            PromptMessage { role, text, images }
        });
        Ok(messages.collect())
    }

    /// Returns the number of times that the running servers reported changed prompts. List them again between two runs.
    pub async fn prompt_changes(&self) -> u64 {
        self.running_connections().await.iter().map(|connection| connection.prompt_changes()).sum()
    }
}

fn server_prompt(server: &ServerName, prompt: Prompt, command: String) -> ServerPrompt {
    let described = |text: Option<String>| shorten(text.unwrap_or_default().trim(), MAX_DESCRIPTION);
    let arguments = prompt.arguments.unwrap_or_default().into_iter().map(|argument| PromptArgument {
        name: argument.name,
        description: described(argument.description),
        is_required: argument.required.unwrap_or(false),
    });
    ServerPrompt {
        server: server.clone(),
        name: prompt.name,
        command,
        description: described(prompt.description.or(prompt.title)),
        arguments: arguments.collect(),
    }
}
