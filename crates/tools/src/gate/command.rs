//! By command.

mod line;
mod pattern;

use async_trait::async_trait;
use serde_json::Value;

use self::line::CommandLine;
use self::pattern::Pattern;
pub use self::pattern::PatternError;
use super::{Gate, Ruling, Verdict};
use crate::pipeline::PreparedCall;
use crate::tool::Effect;

/// Rules by the command that a call runs.
///
/// A pattern is the words of one command. `*` in a word stands for any characters, and as the last word for any
/// words or none: `git log *`, `npm run test:*`. Rules that deny come first, then those that ask, then those that
/// allow; what no rule names is asked about, unless [`CommandGate::otherwise`] says something else.
///
/// * A rule that **denies** or **asks** looks everywhere: in every command of a line, behind words such as `sudo` or
///   `xargs`, in a quoted script. It is a net for mistakes and not a wall, since there are endless ways to write a
///   command.
/// * A rule that **allows** is careful: every command of the line must have one, and the line may hold nothing that
///   the shell would expand, substitute or redirect. `2>&1`, `>/dev/null` and `2>/dev/null` are harmless.
///
/// Only calls with the effect [`Effect::Execute`] are judged, and by the command alone, not by where it runs. The
/// command is their argument `command` or `cmd`, as a text or as a list of words; in a call that has neither or both,
/// rules that deny or ask look into every text.
///
/// ```
/// use pintle_tools::gate::{CommandGate, Ruling};
///
/// let gate = CommandGate::new()
///     .with("cargo test *", Ruling::Allow)?
///     .with("git push *", Ruling::Deny)?
///     .otherwise(Ruling::Ask);
/// # let _ = gate;
/// # Ok::<(), pintle_tools::gate::PatternError>(())
/// ```
#[derive(Clone, Debug)]
pub struct CommandGate {
    rules: Vec<(Pattern, Ruling)>,
    otherwise: Ruling,
}

impl CommandGate {
    /// A gate that asks about every command.
    #[must_use]
    pub fn new() -> Self {
        Self { rules: Vec::new(), otherwise: Ruling::Ask }
    }

    /// With this ruling on commands of this pattern.
    ///
    /// # Errors
    ///
    /// A pattern that could not match any command, because it has no words or holds what separates commands.
    pub fn with(mut self, pattern: &str, ruling: Ruling) -> Result<Self, PatternError> {
        self.rules.push((Pattern::parse(pattern)?, ruling));
        Ok(self)
    }

    /// With this ruling on commands that no rule names.
    #[must_use]
    pub fn otherwise(mut self, ruling: Ruling) -> Self {
        self.otherwise = ruling;
        self
    }

    fn judge(&self, line: &CommandLine) -> Verdict {
        for ruling in [Ruling::Deny, Ruling::Ask] {
            if let Some(pattern) = self.patterns(ruling).find(|pattern| line.mentions(pattern)) {
                return ruling.verdict(|| format!("the command matches the rule `{pattern}`"));
            }
        }
        if line.is_plain() && line.commands().all(|words| self.allows(words)) {
            return Verdict::Allow;
        }
        self.otherwise.verdict(|| "no rule allows this command".to_owned())
    }

    fn allows(&self, words: &[String]) -> bool {
        self.patterns(Ruling::Allow).any(|pattern| pattern.matches(words))
    }

    fn patterns(&self, of: Ruling) -> impl Iterator<Item = &Pattern> {
        self.rules.iter().filter(move |(_, ruling)| *ruling == of).map(|(pattern, _)| pattern)
    }
}

impl Default for CommandGate {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Gate for CommandGate {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        match call.effect() {
            Effect::Execute => self.judge(&line_of(call.arguments())),
            Effect::Read | Effect::Write | Effect::Network => Verdict::Allow,
        }
    }
}

fn line_of(arguments: &Value) -> CommandLine {
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
            CommandLine::parse(&texts.join("\n")).unreliable()
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
