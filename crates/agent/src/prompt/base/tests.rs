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
    openai, spec: 4101 bytes, feef202deeac42b80063e4b39b54b549
      Autonomy / Exploring / Editing with apply_patch / Commands / Code / Git / Validation / Project instructions / Final message
    openai, native: 4679 bytes, 1f383e6348236cab65f594fd8062f075
      Autonomy / Exploring / Editing with apply_patch / Commands / Code / Git / Validation / Project instructions / Final message
    anthropic, spec: 3290 bytes, 1aecfc6a55e862d8cf7da5e621c0ff97
      Judgement / Choosing a tool / Editing files / Running commands / Writing code / Working through a task / Git / Project instructions / Answering
    anthropic, native: 3268 bytes, 3e32eae3226b7017472848d3198fefe0
      Judgement / Choosing a tool / Editing files / Running commands / Writing code / Working through a task / Git / Project instructions / Answering
    gemini, spec: 4093 bytes, 6ed5035c2a75c0a916e57c8a21169570
      Core mandates / Workflow for software tasks / New applications / Tools / Security / Git / Project instructions / Tone
    gemini, native: 3938 bytes, 217969a9b308195f6833ea16f6d4429a
      Core mandates / Workflow for software tasks / New applications / Tools / Security / Git / Project instructions / Tone
    openai-compatible: 3398 bytes, 9d5345e520fc16e6801b9b58110ac000
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
