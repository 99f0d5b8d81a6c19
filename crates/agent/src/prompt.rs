//! System prompts and their layers (loop specification, section 6).

pub(crate) mod base;
mod environment;
mod git;

use pintle_env::Redactions;
use pintle_llm::ToolList;
use serde::{Deserialize, Serialize};

pub use self::environment::{EnvironmentContext, GitContext};
use crate::project_docs::{ProjectDoc, ProjectDocs};
use crate::protocol::Skill;
use crate::sanitize::{escape_end_tag, single_line};

/// One layer of a system prompt. Later layers take precedence over earlier ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptLayer {
    /// Kind of the layer.
    pub kind: LayerKind,
    /// Text of the layer, never empty: empty layers are left out.
    pub text: String,
}

/// Kinds of layers, in the order of the prompt (loop specification, section 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LayerKind {
    /// Base instructions of the profile (section 6.2).
    BaseInstructions,
    /// Environment block (section 6.3), without the facts that change with the work tree. If there is a git layer, that
    /// layer ends the block.
    Environment,
    /// Git snapshot (section 6.4), the last part of the environment block: facts that change with the work tree.
    Git,
    /// List of the tools, with the first sentence of each description.
    Tools,
    /// Project documents (section 6.5).
    ProjectDocuments,
    /// Skills of the project, with name and description.
    Skills,
    /// Additional instructions of the user.
    UserInstructions,
}

/// The parts of a prompt that come from the profile.
#[derive(Debug)]
pub(crate) struct ProfileFacts<'p> {
    pub(crate) base_instructions: &'p str,
    /// Display name of the model, or its identifier.
    pub(crate) model: &'p str,
    pub(crate) knowledge_cutoff: Option<&'p str>,
    /// Tools that the request defines.
    pub(crate) tools: &'p ToolList,
    /// Maximum size of the skill list, in bytes.
    pub(crate) skill_list_budget: usize,
}

/// Start of the list of tools; a blank line follows.
const TOOLS: &str = include_str!("../prompts/sections/tools.md");

/// Start of the project documents; a blank line follows.
const PROJECT_INSTRUCTIONS: &str = include_str!("../prompts/sections/project_instructions.md");

/// Start of the list of skills.
const SKILLS: &str = include_str!("../prompts/sections/skills.md");

/// Returns the non-empty layers in order.
pub(crate) fn layers(
    profile: &ProfileFacts<'_>,
    environment: &EnvironmentContext,
    docs: &ProjectDocs,
    user_instructions: Option<&str>,
) -> Vec<PromptLayer> {
    let layers = [
        (LayerKind::BaseInstructions, profile.base_instructions.trim().to_owned()),
        (LayerKind::Environment, environment_block(profile, environment)),
        (LayerKind::Git, environment.git.as_ref().map(git_facts).unwrap_or_default()),
        (LayerKind::Tools, tool_list(profile.tools)),
        (LayerKind::ProjectDocuments, project_documents(docs)),
        (LayerKind::Skills, skill_list(&docs.skills, profile.skill_list_budget)),
        (LayerKind::UserInstructions, user_section(user_instructions.unwrap_or_default())),
    ];
    let present = layers.into_iter().filter(|(_, text)| !text.is_empty());
    present.map(|(kind, text)| PromptLayer { kind, text }).collect()
}

/// A system prompt, with the length of its part that does not depend on the work tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SystemPrompt {
    pub(crate) text: String,
    /// Length in bytes of the prefix without facts about the work tree; `None` if the prompt has no such facts.
    pub(crate) stable: Option<usize>,
}

impl SystemPrompt {
    /// Joins the layers with blank lines between them. Git facts continue the environment block without one.
    pub(crate) fn from_layers(layers: &[PromptLayer]) -> Self {
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

    /// Replaces the application's secrets, which project documents may contain.
    pub(crate) fn redacted(self, redactions: &Redactions) -> Self {
        let (stable, rest) = self.text.split_at_checked(self.stable.unwrap_or(0)).unwrap_or(("", &self.text));
        let (stable, rest) = (redactions.text(stable), redactions.text(rest));
        Self { text: format!("{stable}{rest}"), stable: self.stable.map(|_| stable.len()) }
    }
}

/// Maximum length of a path, in characters, as on Linux.
const MAX_PATH: usize = 4096;

/// Maximum length of any other fact, in characters.
const MAX_FACT: usize = 200;

/// Maximum length of the restrictions on commands, in characters.
const MAX_LIMITS: usize = 1000;

/// Maximum length of a skill's description, in characters (Agent Skills format).
const MAX_DESCRIPTION: usize = 1024;

/// Maximum size of the skill list: 16 KiB, less in a small window. Skills beyond it are counted instead of listed.
pub(crate) const SKILLS_BUDGET: usize = 16 * 1024;

/// Formats the block of section 6.3, without its end if git facts follow. Unknown facts are left out.
fn environment_block(profile: &ProfileFacts<'_>, environment: &EnvironmentContext) -> String {
    let is_git_repository = if environment.is_git_repository { "true" } else { "false" };
    let facts = [
        ("Working directory", Some(environment.working_directory.as_str()), MAX_PATH),
        ("Is git repository", Some(is_git_repository), MAX_FACT),
        ("Platform", Some(environment.platform.as_str()), MAX_FACT),
        ("OS version", Some(environment.os_version.as_str()), MAX_FACT),
        ("Commands", environment.command_limits.as_deref(), MAX_LIMITS),
        ("Today's date", Some(environment.date.as_str()), MAX_FACT),
        ("Model", Some(profile.model), MAX_FACT),
        ("Knowledge cutoff", profile.knowledge_cutoff, MAX_FACT),
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

/// Formats the snapshot of section 6.4, which is a summary and not the diff, and the end of the environment block.
fn git_facts(git: &GitContext) -> String {
    let mut lines = Vec::new();
    lines.extend(git.branch.as_ref().map(|branch| format!("Git branch: {}", fact(branch, MAX_FACT))));
    lines.push(format!("Git status when the session started: {}", short_status(git)));
    if !git.recent_commits.is_empty() {
        lines.push("Recent commits:".to_owned());
    }
    lines.extend(git.recent_commits.iter().map(|commit| format!("- {}", fact(commit, MAX_FACT))));
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

/// Lists the tools with the first sentence of their descriptions; the definitions have the full text.
fn tool_list(tools: &ToolList) -> String {
    if tools.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = tools
        .iter()
        .map(|tool| format!("- `{}`: {}", tool.name, first_sentence(&tool.description)))
        .collect();
    format!("{TOOLS}\n{}", lines.join("\n"))
}

/// Returns the text up to the first full stop that a space follows, or else the first paragraph, on one line.
fn first_sentence(text: &str) -> String {
    let lines = text.trim().lines().map(str::trim).take_while(|line| !line.is_empty());
    let mut paragraph = lines.collect::<Vec<_>>().join(" ");
    if let Some(stop) = paragraph.find(". ") {
        paragraph.truncate(stop + 1);
    }
    paragraph
}

fn project_documents(docs: &ProjectDocs) -> String {
    if docs.documents.is_empty() {
        return String::new();
    }
    let blocks: Vec<String> =
        docs.documents.iter().map(|document| document_block(document, &docs.truncation_marker())).collect();
    format!("{PROJECT_INSTRUCTIONS}\n{}", blocks.join("\n\n"))
}

fn document_block(document: &ProjectDoc, marker: &str) -> String {
    let path = escape_end_tag(&fact(&document.path, MAX_PATH).replace('"', "'"), "project_document");
    let content = escape_end_tag(&document.content, "project_document");
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
    let mut list = SKILLS.to_owned();
    let mut left_out = 0usize;
    for skill in skills {
        let path = fact(&skill.path, MAX_PATH).replace('`', "'");
        let line = format!("\n- `{}` (`{path}`): {}", skill.name, fact(&skill.description, MAX_DESCRIPTION));
        if left_out == 0 && list.len() + line.len() <= budget {
            list.push_str(&line);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        let are = if left_out == 1 { "skill is" } else { "skills are" };
        list.push_str(&format!("\n- {left_out} more {are} left out here for their length."));
    }
    list
}

fn user_section(instructions: &str) -> String {
    match instructions.trim() {
        "" => String::new(),
        text => format!("# User instructions\n\n{text}"),
    }
}

/// Sanitizes a fact for one line of a block, so that it cannot end the line or the block.
fn fact(text: &str, limit: usize) -> String {
    escape_end_tag(&single_line(text, limit), "environment")
}

#[cfg(test)]
mod tests;
