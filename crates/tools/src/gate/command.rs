//! A gate with rules by command.

mod computed;
mod connections;
mod line;
mod mention;
mod pattern;
mod programs;
mod scanner;
mod scripts;

use async_trait::async_trait;
use serde_json::Value;

pub use self::line::CommandLine;
pub use self::mention::CommandMention;
pub use self::pattern::{CommandPattern, PatternError, matches_wildcard};
use super::{Gate, Permission, Verdict};
use crate::call::PreparedCall;
use crate::tool::Effect;

/// Rules by command.
///
/// A pattern consists of the words of one command. `*` in a word matches any characters; as the last word it matches
/// any number of words: `git log *`, `npm run test:*`. Rules that deny take precedence over those that ask, and these
/// over those that allow. The gate asks about commands without a rule, unless [`CommandGate::otherwise`] sets another
/// permission.
///
/// * A rule that **denies** or **asks** matches anywhere: in every command of a line, after words such as `sudo` or
///   `xargs`, in a quoted script, and with options before the subcommand as in `git -C dir push`. A word that the shell
///   computes, such as `$x`, `$(cmd)` or `pus{h,}`, matches every word that it may become, also in place of the program. A
///   variable before a path, as in `$HOME/bin/tool`, counts as a directory. Arguments and inputs of programs that only read or
///   print them do not match, such as a message of `git commit`, unless another command of the line may run the output. Such
///   rules catch mistakes but are no security boundary: an encoded script, a script in a file, an alias in a configuration
///   file or a program that runs others are not seen through.
/// * A rule that **allows** is strict: every command of the line must match one, and the line must not contain anything
///   that the shell would expand, substitute or redirect. `2>&1`, `>/dev/null` and `2>/dev/null` are harmless. The `*` at
///   the end of a pattern does not stand for options that write a file, run a program or connect, such as `--output` of
///   `git log`, as far as they are known; a pattern may name them.
///
/// Only calls with [`Effect::Execute`] are judged, by the command alone and not by the directory in which it runs. The
/// command is the argument `command` or `cmd`, as a string or a list of words. In a call with neither or both, rules
/// that deny or ask search every string.
///
/// ```
/// use pintle_tools::gate::{CommandGate, Permission};
///
/// let gate = CommandGate::new()
///     .with("cargo test *", Permission::Allow)?
///     .with("git push *", Permission::Deny)?
///     .otherwise(Permission::Ask);
/// # let _ = gate;
/// # Ok::<(), pintle_tools::gate::PatternError>(())
/// ```
#[derive(Clone, Debug)]
pub struct CommandGate {
    rules: Vec<(CommandPattern, Permission)>,
    otherwise: Permission,
}

impl CommandGate {
    /// A gate that asks about every command.
    #[must_use]
    pub fn new() -> Self {
        Self { rules: Vec::new(), otherwise: Permission::Ask }
    }

    /// Sets the permission of commands that match this pattern.
    ///
    /// # Errors
    ///
    /// A pattern that cannot match any command, because it has no words or contains a command separator.
    pub fn with(mut self, pattern: &str, permission: Permission) -> Result<Self, PatternError> {
        self.rules.push((CommandPattern::parse(pattern)?, permission));
        Ok(self)
    }

    /// Sets the permission of commands without a rule.
    #[must_use]
    pub fn otherwise(mut self, permission: Permission) -> Self {
        self.otherwise = permission;
        self
    }

    fn judge(&self, line: &CommandLine) -> Verdict {
        for permission in [Permission::Deny, Permission::Ask] {
            let mut mentions = self.patterns(permission).filter_map(|pattern| {
                let mention = line.mention(pattern)?;
                Some((pattern, mention))
            });
            if let Some((pattern, mention)) = mentions.next() {
                let reason = || match mention.explanation(permission) {
                    Some(explanation) => format!("the command may match the rule `{pattern}`: {explanation}"),
                    None => format!("the command matches the rule `{pattern}`"),
                };
                return permission.verdict(reason).with_rule(pattern.to_string());
            }
        }
        let allowed: Vec<&CommandPattern> = self.patterns(Permission::Allow).collect();
        if line.is_only(&allowed) {
            return Verdict::ALLOW;
        }
        self.otherwise.verdict(|| "no rule allows this command".to_owned()).by_default()
    }

    fn patterns(&self, of: Permission) -> impl Iterator<Item = &CommandPattern> {
        self.rules.iter().filter(move |(_, permission)| *permission == of).map(|(pattern, _)| pattern)
    }
}

impl Default for CommandGate {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Gate for CommandGate {
    fn name(&self) -> &'static str {
        "command"
    }

    async fn check(&self, call: &PreparedCall) -> Verdict {
        match call.effect() {
            Effect::Execute => self.judge(&CommandLine::of_arguments(call.arguments())),
            Effect::Read | Effect::Write | Effect::Network => Verdict::ALLOW,
        }
    }
}

impl CommandLine {
    /// Finds the commands in the arguments of a call: in `command` or `cmd`, as a string or a list of words. With neither or
    /// both of them, every string is searched, and the result is not [plain](Self::is_plain).
    #[must_use]
    pub fn of_arguments(arguments: &Value) -> Self {
        match (arguments.get("command"), arguments.get("cmd")) {
            (Some(Value::String(line)), None) | (None, Some(Value::String(line))) => CommandLine::parse(line),
            (Some(Value::Array(words)), None) | (None, Some(Value::Array(words)))
                if words.iter().all(Value::is_string) =>
            {
                CommandLine::of_words(words.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            }
            (Some(_) | None, Some(_) | None) => {
                let mut texts = Vec::new();
                collect_texts(arguments, &mut texts);
                CommandLine::parse_unreliable(&texts.join("\n"))
            }
        }
    }
}

fn collect_texts<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(values) => values.iter().for_each(|value| collect_texts(value, texts)),
        Value::Object(fields) => fields.values().for_each(|value| collect_texts(value, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests;
