//! The base instructions that come with the crate: one prompt per model family and toolset.
//!
//! A prompt is put together from two files, so that what a family's toolsets have in common stands once: the body, and
//! what is said of the tools, which takes the place of `{{tools}}` in it. What is said of one tool that may be missing
//! stands there between the lines `{{if NAME}}` and `{{end}}`. These three are all the placeholders there are, and the
//! compiler checks them.

use pintle_tools::ToolRegistry;

/// The base instructions for one family and one toolset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BasePrompt {
    body: &'static str,
    tools: &'static str,
}

/// For OpenAI's models with the tools of the loop specification.
pub(crate) const OPENAI_SPEC: BasePrompt = BasePrompt::new(
    include_str!("../../prompts/openai/body.md"),
    include_str!("../../prompts/openai/spec.md"),
);

/// For OpenAI's models with the tools that they know.
pub(crate) const OPENAI_NATIVE: BasePrompt = BasePrompt::new(
    include_str!("../../prompts/openai/body.md"),
    include_str!("../../prompts/openai/native.md"),
);

/// For Claude with the tools of the loop specification.
pub(crate) const ANTHROPIC_SPEC: BasePrompt = BasePrompt::new(
    include_str!("../../prompts/anthropic/body.md"),
    include_str!("../../prompts/anthropic/spec.md"),
);

/// For Claude with the tools that it knows.
pub(crate) const ANTHROPIC_NATIVE: BasePrompt = BasePrompt::new(
    include_str!("../../prompts/anthropic/body.md"),
    include_str!("../../prompts/anthropic/native.md"),
);

/// For Gemini with the tools of the loop specification.
pub(crate) const GEMINI_SPEC: BasePrompt = BasePrompt::new(
    include_str!("../../prompts/gemini/body.md"),
    include_str!("../../prompts/gemini/spec.md"),
);

/// For Gemini with the tools that it knows.
pub(crate) const GEMINI_NATIVE: BasePrompt = BasePrompt::new(
    include_str!("../../prompts/gemini/body.md"),
    include_str!("../../prompts/gemini/native.md"),
);

/// For other models, which were trained on no tools in particular.
pub(crate) const COMPATIBLE: BasePrompt = BasePrompt::new(
    include_str!("../../prompts/compatible/body.md"),
    include_str!("../../prompts/compatible/spec.md"),
);

/// The most bytes that a prompt may have.
const MAX_BYTES: usize = 9_000;

impl BasePrompt {
    /// A prompt of these two files. Evaluated by the compiler, which refuses a wrong placeholder.
    const fn new(body: &'static str, tools: &'static str) -> Self {
        let (in_body, in_tools) = (Placeholders::of(body), Placeholders::of(tools));
        assert!(
            in_body.all == 1 && in_body.tools == 1,
            "the body holds {{tools}} once and no other placeholder"
        );
        assert!(in_tools.tools == 0, "what is said of the tools cannot hold {{tools}}");
        assert!(in_tools.paired && in_tools.ifs == in_tools.ends, "each {{if NAME}} has its {{end}}");
        assert!(
            in_tools.all == in_tools.ifs + in_tools.ends,
            "a placeholder is misspelt or not on a line of its own"
        );
        assert!(body.len() + tools.len() < MAX_BYTES, "the prompt is too long");
        Self { body, tools }
    }

    /// The text for a model that has the tools of `registry`, in Markdown.
    pub(crate) fn text(self, registry: &ToolRegistry) -> String {
        let mut said = String::with_capacity(self.tools.len());
        let mut wanted = true;
        for line in self.tools.lines() {
            match condition(line) {
                Some(tool) => wanted = registry.get(tool).is_some(),
                None if line == END => wanted = true,
                None if wanted => {
                    said.push_str(line);
                    said.push('\n');
                }
                None => {}
            }
        }
        self.body.replace(TOOLS, said.trim_end())
    }
}

const TOOLS: &str = "{{tools}}";
const END: &str = "{{end}}";

/// The tool that must be there for the lines that follow.
fn condition(line: &str) -> Option<&str> {
    line.strip_prefix("{{if ")?.strip_suffix("}}")
}

/// How many placeholders a text has. One that is not known, or not at the start of its line, counts in `all` alone.
struct Placeholders {
    all: usize,
    tools: usize,
    ifs: usize,
    ends: usize,
    /// Whether each `{{end}}` ends an `{{if NAME}}` and none stands within another.
    paired: bool,
}

impl Placeholders {
    const fn of(text: &str) -> Self {
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
                    [b'{', b'{', b'i', b'f', b' ', name @ ..] if closes(name) => found.ifs += 1,
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

/// Whether a tool's name stands there, then the end of the placeholder and of the line.
const fn closes(name: &[u8]) -> bool {
    let mut rest = name;
    while let [b'a'..=b'z' | b'A'..=b'Z' | b'_', after @ ..] = rest {
        rest = after;
    }
    rest.len() < name.len() && matches!(rest, [b'}', b'}', b'\n', ..])
}

#[cfg(test)]
mod tests;
