use async_trait::async_trait;
use pintle_llm::{Fingerprint, ToolDefinition};
use pintle_tools::{DefinitionError, DynTool, Effect, ToolContext, ToolError, ToolOutput};
use serde_json::{Value, json};

use super::*;

const ALL: [(&str, BasePrompt); 7] = [
    ("openai, spec", OPENAI_SPEC),
    ("openai, native", OPENAI_NATIVE),
    ("anthropic, spec", ANTHROPIC_SPEC),
    ("anthropic, native", ANTHROPIC_NATIVE),
    ("gemini, spec", GEMINI_SPEC),
    ("gemini, native", GEMINI_NATIVE),
    ("openai-compatible", COMPATIBLE),
];

/// A tool with this name.
#[derive(Debug)]
struct Named(String);

#[async_trait]
impl DynTool for Named {
    fn definition(&self) -> Result<ToolDefinition, DefinitionError> {
        ToolDefinition::new(&self.0, "Does it.", json!({"type": "object"}))
            .map_err(|source| DefinitionError::refused(&self.0, source))
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    async fn call_json(&self, _arguments: Value, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new("done"))
    }
}

fn registry<'n>(names: impl IntoIterator<Item = &'n str>) -> ToolRegistry {
    let mut registry = ToolRegistry::new();
    for name in names {
        registry.register(Named(name.to_owned())).unwrap();
    }
    registry
}

/// Names of the optional tools in a prompt.
fn optional(prompt: BasePrompt) -> Vec<&'static str> {
    prompt.tools.lines().filter_map(condition).collect()
}

/// Text with all optional parts.
fn complete(prompt: BasePrompt) -> String {
    prompt.text(&registry(optional(prompt)))
}

/// The texts are in `prompts/`. A change shows here as another size and hash.
#[test]
fn prompts_match_their_reviewed_hashes() {
    let shown: Vec<String> = ALL
        .into_iter()
        .map(|(name, prompt)| {
            let text = complete(prompt);
            let headings = text.lines().filter_map(|line| line.strip_prefix("# "));
            let headings = headings.collect::<Vec<_>>().join(" / ");
            format!(
                "{name}: {} bytes, {}\n  {headings}",
                text.len(),
                Fingerprint::from_bytes(text.as_bytes())
            )
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    openai, spec: 7453 bytes, 1a8ae775dd374aef2cfe8efe47f67852
      Autonomy / Exploring / Editing with apply_patch / Commands / Planning / Asking / Code / Git / Validation / Project instructions / Final message
    openai, native: 7546 bytes, d6382864389d5a56cfb75053a21266ba
      Autonomy / Exploring / Editing with apply_patch / Commands / Planning / Asking / Code / Git / Validation / Project instructions / Final message
    anthropic, spec: 7882 bytes, 53c4707480bdf09504cf62e47aca8f0d
      Judgement / Choosing a tool / Editing files / Running commands / Planning / Asking / Writing code / Working through a task / Git / Project instructions / Answering
    anthropic, native: 8009 bytes, aa30dda2394015c3343a018f60281a6b
      Judgement / Choosing a tool / Keeping track / Editing files / Running commands / Writing code / Working through a task / Git / Project instructions / Answering
    gemini, spec: 8379 bytes, a24ce8c8419fc5f3bb68c59cec2db921
      Core mandates / Workflow for software tasks / New applications / Tools / Security / Git / Project instructions / Tone
    gemini, native: 8427 bytes, c40fab07ee1396d8c38bc00c5b52f444
      Core mandates / Workflow for software tasks / New applications / Tools / Security / Git / Project instructions / Tone
    openai-compatible: 6117 bytes, 79a1bd8d2a3aa78f725ea3f7fc596abf
      How a turn works / Steps for a task / The tools / Rules for code / Rules for git / Instructions from others / The final answer
    ");
}

#[test]
fn optional_parts_depend_on_their_tool() {
    for (name, prompt) in ALL {
        let without = prompt.text(&ToolRegistry::new());
        for tool in optional(prompt) {
            let named = format!("`{tool}`");
            assert!(!without.contains(&named), "{tool} in {name}");
            assert!(prompt.text(&registry([tool])).contains(&named), "{tool} is missing in {name}");
        }
    }
}

/// Returns the fence of a code block that is not closed.
fn open_fence(text: &str) -> Option<&str> {
    let mut open = None;
    for line in text.lines().map(str::trim) {
        let fence = |mark| line.split_at_checked(line.len() - line.trim_start_matches(mark).len());
        let mut fences = [fence('`'), fence('~')].into_iter().flatten();
        let Some((fence, rest)) = fences.find(|(fence, _)| fence.len() >= 3) else { continue };
        open = match open {
            None => Some(fence),
            Some(opening) if rest.is_empty() && fence.starts_with(opening) => None,
            opening => opening,
        };
    }
    open
}

#[test]
fn open_fence_pairs_fences_of_a_kind() {
    for (text, expected) in [
        ("a\n```\nb\n```\n", None),
        ("a\n~~~text\n```\n~~~~\n", None),
        ("```\n~~~\n", Some("```")),
        ("````\n```\n", Some("````")),
        ("```\n``` x\n", Some("```")),
        ("``a`` ~~b~~\n", None),
    ] {
        assert_eq!(open_fence(text), expected, "{text:?}");
    }
}

#[test]
fn prompts_are_clean_markdown() {
    for (name, prompt) in ALL {
        for text in [complete(prompt), prompt.text(&ToolRegistry::new())] {
            assert!(text.starts_with("You are a coding agent run by Pintle"), "{name}");
            assert!(!text.contains("{{") && !text.contains("}}"), "a placeholder is left in {name}");
            assert!(!text.contains("\n\n\n"), "two blank lines in {name}");
            assert!(text.len() < MAX_BYTES, "{name} has {} bytes", text.len());
            assert_eq!(open_fence(&text), None, "an open code block in {name}");
            let lines: Vec<&str> = text.lines().collect();
            for (before, heading) in lines.iter().zip(lines.iter().skip(1)) {
                let is_heading = heading.starts_with("# ") || heading.starts_with("## ");
                assert!(!is_heading || before.is_empty(), "no blank line before {heading:?} in {name}");
            }
        }
    }
}

#[test]
fn placeholders_are_counted_by_kind() {
    let count = |text: &str| {
        let found = Placeholders::scan(text);
        (found.all, found.tools, found.ifs, found.ends, found.paired)
    };
    for (text, expected) in [
        ("plain { text }\n", (0, 0, 0, 0, true)),
        ("a\n{{tools}}\nb\n", (1, 1, 0, 0, true)),
        ("a {{tools}}\n", (1, 0, 0, 0, true)),
        ("{{tool}}\n", (1, 0, 0, 0, true)),
        ("{{if a_B}}\nx\n{{end}}\n", (2, 0, 1, 1, true)),
        ("{{if a}} x\n{{end}}\n", (2, 0, 0, 1, false)),
        ("{{if }}\n", (1, 0, 0, 0, true)),
        ("{{end}}\n{{if a}}\n", (2, 0, 1, 1, false)),
        ("{{if a}}\n{{if b}}\n{{end}}\n{{end}}\n", (4, 0, 2, 2, false)),
        ("{{end}}", (1, 0, 0, 0, true)),
    ] {
        assert_eq!(count(text), expected, "{text:?}");
    }
}
