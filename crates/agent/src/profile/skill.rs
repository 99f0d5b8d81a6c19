//! `Skill` and `activate_skill`: tools that load the body of an Agent Skill by name.

use std::path::{Path, PathBuf};

use pintle_env::{EnvError, ExecutionEnvironment};
use pintle_llm::ToolDefinition;
use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolErrorKind, ToolOutput, tool_properties};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::project_docs::ProjectDocs;
use crate::protocol::Skill as SkillInfo;
use crate::skills;

/// Maximum number of directories that are searched for the root of the project.
const MAX_DEPTH: usize = 64;

/// Description of both tools.
const DESCRIPTION: &str = include_str!("../../prompts/skill.md");

/// Names of both tools.
const NAMES: [&str; 2] = ["Skill", "activate_skill"];

/// Returns whether this is one of both tools, and not a tool of an application with the same name.
pub(super) fn loads_skills(tool: &ToolDefinition) -> bool {
    NAMES.contains(&tool.name.as_str()) && tool.description == DESCRIPTION.trim_end()
}

/// Creates Claude Code's tool for skills in these directories.
pub(super) fn claude_skill(skill_dirs: &[String]) -> Skill {
    Skill { skill_dirs: skill_dirs.to_vec() }
}

/// Creates gemini-cli's tool for skills in these directories.
pub(super) fn gemini_skill(skill_dirs: &[String]) -> ActivateSkill {
    ActivateSkill { skill_dirs: skill_dirs.to_vec() }
}

pub(super) struct Skill {
    skill_dirs: Vec<String>,
}

/// The arguments of `Skill`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SkillInput {
    /// The name of the skill, as the prompt lists it.
    #[schemars(description = "")]
    skill: String,
    /// Arguments, if the skill takes any.
    args: Option<String>,
}

impl Tool for Skill {
    type Input = SkillInput;

    tool_properties! {
        name: "Skill",
        description: DESCRIPTION,
        effect: Effect::Read,
        kind: "read_file",
    }

    async fn call(&self, input: SkillInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        load(&input.skill, input.args.as_deref(), &self.skill_dirs, cx).await
    }
}

pub(super) struct ActivateSkill {
    skill_dirs: Vec<String>,
}

/// The arguments of `activate_skill`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ActivateSkillInput {
    /// The name of the skill, as the prompt lists it.
    #[schemars(description = "")]
    name: String,
}

impl Tool for ActivateSkill {
    type Input = ActivateSkillInput;

    tool_properties! {
        name: "activate_skill",
        description: DESCRIPTION,
        effect: Effect::Read,
        kind: "read_file",
    }

    async fn call(&self, input: ActivateSkillInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        load(&input.name, None, &self.skill_dirs, cx).await
    }
}

/// Returns the body of a skill, preceded by the path of its directory: skills refer to other files relative to it.
async fn load(
    name: &str,
    args: Option<&str>,
    skill_dirs: &[String],
    cx: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let env = cx.env.as_ref();
    let root = find_git_root(env).await;
    let found = ProjectDocs::default().with_skills_of(env, root.as_deref(), skill_dirs).await.skills;
    let Some(skill) = found.iter().find(|skill| skill.name == name.trim()) else {
        return Err(ToolError::new(ToolErrorKind::NotFound, unknown_skill(name, &found)));
    };
    let path = Path::new(&skill.path);
    let text = env.read_file(path, None, None).await?;
    // The file may have been replaced since it was listed. Only a valid skill is returned to the model.
    if let Err(reason) = skills::expect_skill(&text) {
        let message = format!("{} is no skill any more: {reason}", path.display());
        return Err(ToolError::new(ToolErrorKind::NotFound, message));
    }
    let directory = path.parent().unwrap_or(path).display();
    let mut output = format!("Base directory for this skill: {directory}\n\n{}", body(&text).trim());
    if let Some(args) = args.map(str::trim).filter(|args| !args.is_empty()) {
        output.push_str(&format!("\n\nARGUMENTS: {args}"));
    }
    Ok(ToolOutput::new(output))
}

fn unknown_skill(name: &str, found: &[SkillInfo]) -> String {
    let known: Vec<&str> = found.iter().map(|skill| skill.name.as_str()).collect();
    match known.as_slice() {
        [] => format!("there is no skill {name:?}: the project has none"),
        known => format!("there is no skill {name:?}; there are: {}", known.join(", ")),
    }
}

/// Returns the text after the front matter.
fn body(text: &str) -> &str {
    let text = text.trim_start_matches('\u{feff}');
    let Some(rest) = text.strip_prefix("---") else { return text };
    let mut from = 0;
    while let Some(end) = rest.get(from..).and_then(|rest| rest.find("\n---")).map(|end| from + end) {
        let after = rest.get(end + 4..).unwrap_or_default();
        let line_end = after.find('\n').unwrap_or(after.len());
        let (on_line, below) = after.split_at(line_end);
        if on_line.trim().is_empty() {
            return below;
        }
        from = end + 4;
    }
    text
}

/// Returns the nearest directory, from the working directory upwards, that contains `.git`.
async fn find_git_root(env: &dyn ExecutionEnvironment) -> Option<PathBuf> {
    let working = env.resolve(Path::new("."));
    for directory in working.ancestors().take(MAX_DEPTH) {
        match env.metadata(&directory.join(".git")).await {
            Ok(_) => return Some(directory.to_path_buf()),
            Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => {}
            // An unreadable directory is outside of the project.
            Err(_) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pintle_env::MemoryEnvironment;
    use pintle_llm::ToolCall;
    use pintle_tools::pipeline::{JudgedCall, execute, prepare};
    use pintle_tools::{ToolRegistry, TruncationLimits};
    use serde_json::json;

    use super::*;

    async fn call(tool: impl Tool, arguments: serde_json::Value) -> String {
        let env = MemoryEnvironment::new("/p/sub")
            .with_file("/p/.git/HEAD", "ref: refs/heads/main\n")
            .with_file(
                "/p/.agents/skills/forms/SKILL.md",
                "---\nname: forms\ndescription: Fill in forms.\n---\n\n# Forms\n\n---\nRead a.md.\n",
            )
            .with_file(
                "/p/sub/.claude/skills/deploy/SKILL.md",
                "---\nname: deploy\ndescription: Ship it.\n---\nGo.",
            );
        let env = Arc::new(env);
        let mut registry = ToolRegistry::new();
        registry.register(tool).unwrap();
        let name = registry.names().next().unwrap().to_owned();
        let call = ToolCall::from_raw("c1", name, arguments.to_string());
        let JudgedCall::Ready { call, .. } = prepare(&registry, &[], env.as_ref(), &call).await else {
            panic!("the call is valid")
        };
        let execution = execute(&call, &ToolContext::new(env, "c1"), &TruncationLimits::new()).await;
        execution.result.text()
    }

    #[test]
    fn the_tools_have_the_reviewed_description() {
        assert_eq!(
            Tool::description(&claude_skill(&[])),
            "Loads a skill: instructions for one kind of work. Load it before work that its description in the list of \
             skills fits, and follow it."
        );
    }

    #[test]
    fn only_the_built_in_tools_load_skills() {
        let mut registry = ToolRegistry::new();
        registry.register(claude_skill(&[])).unwrap();
        registry.register(gemini_skill(&[])).unwrap();
        assert!(registry.definitions().iter().all(|tool| loads_skills(tool)));
        let schema = json!({"type": "object"});
        for (name, description) in [("Skill", "Ours."), ("Read", DESCRIPTION.trim_end())] {
            let other = ToolDefinition::new(name, description, schema.clone()).unwrap();
            assert!(!loads_skills(&other), "{name}");
        }
    }

    #[tokio::test]
    async fn a_skill_is_loaded_with_its_directory() {
        let dirs = [".agents/skills".to_owned(), ".claude/skills".to_owned()];
        insta::assert_snapshot!(call(claude_skill(&dirs), json!({"skill": "forms", "args": "a.pdf"})).await, @"
        Base directory for this skill: /p/.agents/skills/forms

        # Forms

        ---
        Read a.md.

        ARGUMENTS: a.pdf
        ");
        insta::assert_snapshot!(call(gemini_skill(&dirs), json!({"name": "deploy"})).await, @"
        Base directory for this skill: /p/sub/.claude/skills/deploy

        Go.
        ");
        insta::assert_snapshot!(call(claude_skill(&dirs), json!({"skill": "form"})).await, @r#"Tool error (Skill): there is no skill "form"; there are: deploy, forms"#);
        insta::assert_snapshot!(call(gemini_skill(&[]), json!({"name": "forms"})).await, @r#"Tool error (activate_skill): there is no skill "forms": the project has none"#);
    }
}
