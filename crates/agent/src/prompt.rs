//! The system prompt in its layers (loop specification, section 6).

pub(crate) mod base;
mod environment;
mod git;
mod plain;

use pintle_tools::ToolRegistry;
use serde::{Deserialize, Serialize};

pub use self::environment::{EnvironmentContext, GitContext};
use self::plain::defused;
pub(crate) use self::plain::single_line;
use crate::profile::ProviderProfile;
use crate::project_docs::{ProjectDoc, ProjectDocs};
use crate::protocol::Skill;

/// One layer of a system prompt. Later layers take precedence over earlier ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptLayer {
    /// Which layer it is.
    pub kind: LayerKind,
    /// What it says. Never empty: a layer with nothing to say is left out.
    pub text: String,
}

/// The layers of a system prompt, in their order (loop specification, section 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerKind {
    /// The profile's own instructions (section 6.2).
    BaseInstructions,
    /// The environment block (section 6.3): what stays the same while the model works. It is closed by the next layer,
    /// if there is that one.
    Environment,
    /// The git snapshot (section 6.4), with which the environment block ends: what changes with the tree.
    Git,
    /// What the tools are for, one line each.
    Tools,
    /// The project's instruction files (section 6.5).
    ProjectDocuments,
    /// The project's skills, by name and description.
    Skills,
    /// What the host's user wants on top.
    UserInstructions,
}

/// The layers that have something to say, in order.
pub(crate) fn layers(
    profile: &ProviderProfile,
    environment: &EnvironmentContext,
    docs: &ProjectDocs,
    user_instructions: Option<&str>,
) -> Vec<PromptLayer> {
    let layers = [
        (LayerKind::BaseInstructions, profile.base_instructions.trim().to_owned()),
        (LayerKind::Environment, environment_block(profile, environment)),
        (LayerKind::Git, environment.git.as_ref().map(git_facts).unwrap_or_default()),
        (LayerKind::Tools, tool_list(&profile.tool_registry)),
        (LayerKind::ProjectDocuments, project_documents(docs)),
        (LayerKind::Skills, skill_list(&docs.skills, profile.skill_list_budget())),
        (LayerKind::UserInstructions, user_section(user_instructions.unwrap_or_default())),
    ];
    let said = layers.into_iter().filter(|(_, text)| !text.is_empty());
    said.map(|(kind, text)| PromptLayer { kind, text }).collect()
}

/// A system prompt with the place up to which it does not change with the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SystemPrompt {
    pub(crate) text: String,
    /// In bytes. `None` if nothing changes with the tree.
    pub(crate) stable: Option<usize>,
}

impl SystemPrompt {
    /// The layers with a blank line between two; git facts go on in the environment's block.
    pub(crate) fn of(layers: &[PromptLayer]) -> Self {
        let mut prompt = Self::default();
        for layer in layers {
            if layer.kind == LayerKind::Git {
                prompt.stable = Some(prompt.text.len());
            } else if !prompt.text.is_empty() {
                prompt.text.push('\n');
            }
            prompt.text.push_str(if prompt.text.is_empty() { "" } else { "\n" });
            prompt.text.push_str(&layer.text);
        }
        prompt
    }
}

/// The longest path that is shown, in characters: what Linux allows.
const SHOWN_PATH: usize = 4096;

/// The longest other fact that is shown, in characters.
const SHOWN_FACT: usize = 200;

/// The longest description of a skill that is shown, in characters (the Agent Skills format).
const SHOWN_DESCRIPTION: usize = 1024;

/// What the skills of a prompt may take together: 16 KiB, less in a small window. Those that come last by name are left
/// out, and counted.
pub(crate) const SKILLS_BUDGET: usize = 16 * 1024;

/// The block of section 6.3, left open where git facts follow. A line whose fact is unknown is left out.
fn environment_block(profile: &ProviderProfile, environment: &EnvironmentContext) -> String {
    let model = profile.display_name.as_deref().unwrap_or(&profile.model);
    let is_git_repository = if environment.is_git_repository { "true" } else { "false" };
    let facts = [
        ("Working directory", Some(environment.working_directory.as_str()), SHOWN_PATH),
        ("Is git repository", Some(is_git_repository), SHOWN_FACT),
        ("Platform", Some(environment.platform.as_str()), SHOWN_FACT),
        ("OS version", Some(environment.os_version.as_str()), SHOWN_FACT),
        ("Today's date", Some(environment.date.as_str()), SHOWN_FACT),
        ("Model", Some(model), SHOWN_FACT),
        ("Knowledge cutoff", profile.knowledge_cutoff.as_deref(), SHOWN_FACT),
    ];
    let mut lines = vec!["<environment>".to_owned()];
    for (name, value, limit) in facts {
        lines.extend(value.map(|value| format!("{name}: {}", fact(value, limit))));
    }
    if environment.git.is_none() {
        lines.push("</environment>".to_owned());
    }
    lines.join("\n")
}

/// The snapshot of section 6.4, enough to know where one stands, not the diff; and the end of the environment's block.
fn git_facts(git: &GitContext) -> String {
    let mut lines = Vec::new();
    lines.extend(git.branch.as_ref().map(|branch| format!("Git branch: {}", fact(branch, SHOWN_FACT))));
    lines.push(format!("Git status when the session started: {}", short_status(git)));
    if !git.recent_commits.is_empty() {
        lines.push("Recent commits:".to_owned());
    }
    lines.extend(git.recent_commits.iter().map(|commit| format!("- {}", fact(commit, SHOWN_FACT))));
    lines.push("</environment>".to_owned());
    lines.join("\n")
}

fn short_status(git: &GitContext) -> String {
    match (git.modified, git.untracked) {
        (Some(0), Some(0)) => "clean".to_owned(),
        (Some(modified), Some(untracked)) => format!("{modified} modified, {untracked} untracked"),
        (None, _) | (_, None) => "unknown".to_owned(),
    }
}

/// The first paragraph of each description: the whole travels with the tool's definition.
fn tool_list(registry: &ToolRegistry) -> String {
    let definitions = registry.definitions();
    if definitions.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = definitions
        .iter()
        .map(|tool| format!("- `{}`: {}", tool.name, first_paragraph(&tool.description)))
        .collect();
    format!("# Tools\n\nThese tools are available. Their definitions say more.\n\n{}", lines.join("\n"))
}

fn first_paragraph(text: &str) -> String {
    let lines = text.trim().lines().map(str::trim).take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

fn project_documents(docs: &ProjectDocs) -> String {
    if docs.documents.is_empty() {
        return String::new();
    }
    let blocks: Vec<String> =
        docs.documents.iter().map(|document| document_block(document, &docs.truncation_marker())).collect();
    format!(
        "# Project instructions\n\n\
         These files come from the project, those of its root first. \
         Follow them; where two disagree, the later one counts, and what the user says counts more than any.\n\n{}",
        blocks.join("\n\n")
    )
}

fn document_block(document: &ProjectDoc, marker: &str) -> String {
    let path = defused(&fact(&document.path, SHOWN_PATH).replace('"', "'"), "project_document");
    let content = defused(&document.content, "project_document");
    let mut block = format!("<project_document path=\"{path}\">\n");
    if !content.is_empty() {
        block.push_str(&content);
        block.push('\n');
    }
    if document.truncated {
        block.push_str(marker);
        block.push('\n');
    }
    block.push_str("</project_document>");
    block
}

fn skill_list(skills: &[Skill], budget: usize) -> String {
    if skills.is_empty() {
        return String::new();
    }
    let mut list = String::from(
        "# Skills\n\n\
         Each of these files has instructions for one kind of work. When a task is of a kind that a description names, \
         read the file before you begin, and follow it; paths in it are relative to its directory. Do not read those \
         that the task does not need.\n",
    );
    let mut left_out = 0usize;
    for skill in skills {
        let path = fact(&skill.path, SHOWN_PATH).replace('`', "'");
        let line =
            format!("\n- `{}` (`{path}`): {}", skill.name, fact(&skill.description, SHOWN_DESCRIPTION));
        if left_out == 0 && list.len() + line.len() <= budget {
            list.push_str(&line);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        list.push_str(&format!("\n- {left_out} more skills are left out here for their length."));
    }
    list
}

fn user_section(instructions: &str) -> String {
    match instructions.trim() {
        "" => String::new(),
        text => format!("# User instructions\n\n{text}"),
    }
}

/// A fact for one line of a block, which it can neither leave nor close.
fn fact(text: &str, limit: usize) -> String {
    defused(&single_line(text, limit), "environment")
}

#[cfg(test)]
mod tests;
