//! Rules of the host in the form of ours.

use pintle_compat::claude::{RuleBehavior, ToolRule};

/// Kind of tools that run commands.
const COMMANDS: &str = "shell";

/// Returns the rules of a session for a rule of the host; `None` if there are none that mean the same. `known` is whether a
/// name is that of a tool: a rule about others names no call.
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
