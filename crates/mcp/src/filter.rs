//! Filter for the tools that a server offers.

use globset::{Glob, GlobMatcher};

/// Patterns for the names of a server's tools: `*` matches any characters, `?` one character, `[ab]` and `{a,b}`
/// alternatives.
///
/// A tool is offered if a pattern of `allow` matches its name, or `allow` is empty, and no pattern of `deny` matches.
#[derive(Clone, Debug, Default)]
pub struct ToolFilter {
    allow: Vec<ToolPattern>,
    deny: Vec<ToolPattern>,
}

#[derive(Clone, Debug)]
struct ToolPattern {
    text: String,
    matcher: GlobMatcher,
}

/// Text that is not a valid pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid pattern {pattern:?} for tools: {why}")]
pub struct InvalidToolPattern {
    pattern: String,
    why: String,
}

impl ToolFilter {
    /// Creates a filter.
    ///
    /// # Errors
    ///
    /// [`InvalidToolPattern`] for the first invalid pattern.
    pub fn new<'a>(
        allow: impl IntoIterator<Item = &'a str>,
        deny: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, InvalidToolPattern> {
        Ok(Self { allow: patterns(allow)?, deny: patterns(deny)? })
    }

    /// Returns whether the tool is offered.
    #[must_use]
    pub fn allows(&self, tool: &str) -> bool {
        let matches = |pattern: &ToolPattern| pattern.matcher.is_match(tool);
        (self.allow.is_empty() || self.allow.iter().any(matches)) && !self.deny.iter().any(matches)
    }
}

fn patterns<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<ToolPattern>, InvalidToolPattern> {
    texts.into_iter().map(ToolPattern::new).collect()
}

impl ToolPattern {
    fn new(text: &str) -> Result<Self, InvalidToolPattern> {
        let invalid = |error: globset::Error| InvalidToolPattern {
            pattern: text.to_owned(),
            why: error.kind().to_string(),
        };
        Ok(Self { text: text.to_owned(), matcher: Glob::new(text).map_err(invalid)?.compile_matcher() })
    }
}

impl PartialEq for ToolFilter {
    fn eq(&self, other: &Self) -> bool {
        let texts = |patterns: &[ToolPattern]| {
            patterns.iter().map(|pattern| pattern.text.clone()).collect::<Vec<_>>()
        };
        texts(&self.allow) == texts(&other.allow) && texts(&self.deny) == texts(&other.deny)
    }
}

impl Eq for ToolFilter {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deny_comes_before_allow() {
        for (allow, deny, offered, withheld) in [
            (vec![], vec![], vec!["read", "write"], vec![]),
            (vec!["read*"], vec![], vec!["read", "read_all"], vec!["write"]),
            (vec![], vec!["write", "delete_?"], vec!["read", "delete_all"], vec!["write", "delete_1"]),
            (vec!["*"], vec!["{read,write}"], vec!["list"], vec!["read", "write"]),
        ] {
            let filter = ToolFilter::new(allow.iter().copied(), deny.iter().copied()).unwrap();
            assert!(offered.iter().all(|tool| filter.allows(tool)), "{filter:?}");
            assert!(!withheld.iter().any(|tool| filter.allows(tool)), "{filter:?}");
        }
        let error = ToolFilter::new(["a["], []).unwrap_err().to_string();
        assert!(error.starts_with("invalid pattern \"a[\" for tools: "), "{error}");
    }
}
