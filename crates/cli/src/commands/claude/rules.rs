//! Translates rules of the host to our rules.

use pintle_compat::claude::{RuleBehavior, ToolRule};

/// Kind of tools that run commands.
const COMMANDS: &str = "shell";

/// Returns the equivalent session rules of a host rule; `None` without equivalents. `known` returns whether a tool has
/// the given name: a rule about any other name matches no call.
pub(super) fn own_rules(
    rule: &ToolRule,
    behavior: RuleBehavior,
    known: impl Fn(&str) -> bool,
) -> Option<Vec<String>> {
    let Some(scope) = &rule.scope else {
        let is_meant = |name: &String| name.starts_with("mcp__") || known(name);
        return Some(rule.own_tool_names(behavior).into_iter().filter(is_meant).collect());
    };
    // Patterns of paths have another meaning here.
    if rule.tool != "Bash" {
        return None;
    }
    match scope.strip_suffix(":*") {
        Some(prefix) => Some(vec![format!("{COMMANDS}({prefix})"), format!("{COMMANDS}({prefix} *)")]),
        None => Some(vec![format!("{COMMANDS}({scope})")]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_of_commands_are_translated_and_others_are_not() {
        let rules = |text: &str| own_rules(&ToolRule::parse(text).unwrap(), RuleBehavior::Deny, |_| true);
        assert_eq!(rules("Bash(rm:*)").unwrap(), ["shell(rm)", "shell(rm *)"]);
        assert_eq!(rules("Bash(git push *)").unwrap(), ["shell(git push *)"]);
        assert_eq!(rules("mcp__web").unwrap(), ["mcp__web__*"]);
        assert!(rules("Read").unwrap().contains(&"read_file".to_owned()));
        assert_eq!(rules("Read(.env)"), None);
    }

    #[test]
    fn tools_that_do_not_exist_have_no_rules() {
        let rule = ToolRule::parse("Skill").unwrap();
        assert_eq!(own_rules(&rule, RuleBehavior::Deny, |_| false), Some(Vec::new()));
    }
}
