//! Built-in base instructions: one prompt per model family and toolset.
//!
//! A prompt consists of two files: a body, which the toolsets of a family share, and a text about the tools, which
//! replaces `{{tools}}` in the body. Lines about an optional tool are enclosed in `{{if NAME}}` and `{{end}}`. There
//! are no other placeholders; they are checked at compile time.

use pintle_tools::ToolRegistry;

/// Base instructions for one family and one toolset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BasePrompt {
    body: &'static str,
    tools: &'static str,
}

/// OpenAI's models with the tools of the loop specification.
pub(crate) const OPENAI_SPEC: BasePrompt = BasePrompt::new(
    include_str!("../../prompts/openai/body.md"),
    include_str!("../../prompts/openai/spec.md"),
);

/// OpenAI's models with the tools of codex.
pub(crate) const OPENAI_NATIVE: BasePrompt = BasePrompt::new(
    include_str!("../../prompts/openai/body.md"),
    include_str!("../../prompts/openai/native.md"),
);

/// Claude with the tools of the loop specification.
pub(crate) const ANTHROPIC_SPEC: BasePrompt = BasePrompt::new(
    include_str!("../../prompts/anthropic/body.md"),
    include_str!("../../prompts/anthropic/spec.md"),
);

/// Claude with the tools of Claude Code.
pub(crate) const ANTHROPIC_NATIVE: BasePrompt = BasePrompt::new(
    include_str!("../../prompts/anthropic/body.md"),
    include_str!("../../prompts/anthropic/native.md"),
);

/// Gemini with the tools of the loop specification.
pub(crate) const GEMINI_SPEC: BasePrompt = BasePrompt::new(
    include_str!("../../prompts/gemini/body.md"),
    include_str!("../../prompts/gemini/spec.md"),
);

/// Gemini with the tools of gemini-cli.
pub(crate) const GEMINI_NATIVE: BasePrompt = BasePrompt::new(
    include_str!("../../prompts/gemini/body.md"),
    include_str!("../../prompts/gemini/native.md"),
);

/// Other models, which were not trained on particular tools.
pub(crate) const COMPATIBLE: BasePrompt = BasePrompt::new(
    include_str!("../../prompts/compatible/body.md"),
    include_str!("../../prompts/compatible/spec.md"),
);

/// Maximum size of a prompt, in bytes.
const MAX_BYTES: usize = 5_500;

impl BasePrompt {
    /// Creates a prompt from its two files. Evaluated at compile time, where a wrong placeholder is an error.
    const fn new(body: &'static str, tools: &'static str) -> Self {
        let (in_body, in_tools) = (Placeholders::scan(body), Placeholders::scan(tools));
        assert!(
            in_body.all == 1 && in_body.tools == 1,
            "the body holds {{tools}} once and no other placeholder"
        );
        assert!(in_tools.tools == 0, "the text about the tools cannot hold {{tools}}");
        assert!(in_tools.paired && in_tools.ifs == in_tools.ends, "each {{if NAME}} has its {{end}}");
        assert!(
            in_tools.all == in_tools.ifs + in_tools.ends,
            "a placeholder is misspelled or not on a line of its own"
        );
        assert!(body.len() + tools.len() < MAX_BYTES, "the prompt is too long");
        Self { body, tools }
    }

    /// Returns the prompt for the tools of `registry`, in Markdown.
    pub(crate) fn text(self, registry: &ToolRegistry) -> String {
        let mut tools = String::with_capacity(self.tools.len());
        let mut included = true;
        for line in self.tools.lines() {
            match condition(line) {
                Some(tool) => included = registry.get(tool).is_some(),
                None if line == END => included = true,
                None if included => {
                    tools.push_str(line);
                    tools.push('\n');
                }
                None => {}
            }
        }
        self.body.replace(TOOLS, tools.trim_end())
    }
}

const TOOLS: &str = "{{tools}}";
const END: &str = "{{end}}";

/// Returns the tool on which the following lines depend, if `line` is `{{if NAME}}`.
fn condition(line: &str) -> Option<&str> {
    line.strip_prefix("{{if ")?.strip_suffix("}}")
}

/// Numbers of placeholders in a text. Placeholders that are unknown or not at the start of a line count only in `all`.
struct Placeholders {
    all: usize,
    tools: usize,
    ifs: usize,
    ends: usize,
    /// Whether each `{{end}}` ends an `{{if NAME}}`, without nesting.
    paired: bool,
}

impl Placeholders {
    const fn scan(text: &str) -> Self {
        let mut found = Self { all: 0, tools: 0, ifs: 0, ends: 0, paired: true };
        let mut rest = text.as_bytes();
        let mut starts_line = true;
        while let [first, after @ ..] = rest {
            if let [b'{', b'{', ..] = rest {
                found.all += 1;
            }
            if starts_line {
                match rest {
                    [b'{', b'{', b't', b'o', b'o', b'l', b's', b'}', b'}', b'\n', ..] => found.tools += 1,
                    [b'{', b'{', b'e', b'n', b'd', b'}', b'}', b'\n', ..] => found.ends += 1,
                    [b'{', b'{', b'i', b'f', b' ', name @ ..] if ends_if(name) => found.ifs += 1,
                    _ => {}
                }
            }
            found.paired = found.paired && (found.ifs == found.ends || found.ifs == found.ends + 1);
            starts_line = *first == b'\n';
            rest = after;
        }
        found
    }
}

/// Returns whether `name` starts with a tool's name, followed by the end of the placeholder and of the line.
const fn ends_if(name: &[u8]) -> bool {
    let mut rest = name;
    while let [b'a'..=b'z' | b'A'..=b'Z' | b'_', after @ ..] = rest {
        rest = after;
    }
    rest.len() < name.len() && matches!(rest, [b'}', b'}', b'\n', ..])
}

#[cfg(test)]
mod tests;
