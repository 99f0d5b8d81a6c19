//! Flags that override flags of weaker sources.

use std::collections::BTreeSet;

/// Groups of flags. A stronger value of the first flag discards weaker values of the whole group.
const GROUPS: &[&[&str]] = &[
    &["provider", "model", "base-url", "script", "dialect", "profile"],
    &["profile", "provider", "model", "base-url", "script", "dialect"],
    &["env", "dir"],
    &["sandbox", "no-sandbox"],
    &["no-sandbox", "sandbox"],
    &["no-session", "wait-approval"],
    &["mcp-config", "no-mcp"],
    &["no-mcp", "mcp-config"],
];

/// Returns the flags whose values from a weaker source have no effect, if a stronger source sets `stronger`.
pub(crate) fn replaced<'f>(stronger: impl IntoIterator<Item = &'f str>) -> BTreeSet<&'f str> {
    let stronger: BTreeSet<&str> = stronger.into_iter().collect();
    let groups = GROUPS.iter().filter(|group| group.first().is_some_and(|first| stronger.contains(first)));
    let members = groups.flat_map(|group| group.iter().copied());
    members.chain(stronger.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stronger_flags_replace_their_group() {
        let cases: [(&[&str], &str, bool); 8] = [
            (&["provider"], "model", true),
            (&["profile"], "provider", true),
            (&["model"], "provider", false),
            (&["model"], "model", true),
            (&["no-sandbox"], "sandbox", true),
            (&["sandbox"], "no-sandbox", true),
            (&["no-session"], "wait-approval", true),
            (&["dir"], "env", false),
        ];
        for (stronger, weaker, is_replaced) in cases {
            assert_eq!(
                replaced(stronger.iter().copied()).contains(weaker),
                is_replaced,
                "{stronger:?} {weaker}"
            );
        }
    }
}
