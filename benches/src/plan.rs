//! Plans of the model server's responses, encoded as the first segment of a base URL's path.

#![expect(clippy::disallowed_methods, reason = "reads recorded responses")]

use std::{fmt, fs, path::Path};

use serde_json::{Value, json};

use crate::dialect::{Dialect, Part};

/// Text of a small event, as long as in real streams.
const TOKEN: &str = " token";

/// Bytes of each piece of long arguments.
const PIECE: usize = 64;

/// The responses of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Responses with `calls` calls of `tool` each, then a text.
    Rounds { tool: String, rounds: usize, calls: usize },
    /// One response of many small events.
    Small { dialect: Dialect, events: usize },
    /// One response with one event of this size.
    Large { dialect: Dialect, bytes: usize },
    /// One response with many calls.
    Calls { dialect: Dialect, count: usize },
    /// One response with one call with arguments of this size, in small pieces.
    Arguments { dialect: Dialect, bytes: usize },
    /// A call of `apply_patch`, as a function or in free form, that adds a file of this size, in small pieces; then a
    /// text.
    Patch { dialect: Dialect, bytes: usize, is_custom: bool },
    /// A recorded response with each small event repeated.
    Recorded { dialect: Dialect, file: String, times: usize },
    /// Concurrent subagents that each respond with a text, and a parent that waits for them.
    Subagents { count: usize },
}

impl Plan {
    /// Parses the `Display` form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split('~');
        let (kind, first) = (words.next()?, words.next()?);
        let (second, third) = (words.next(), words.next());
        let number = |word: Option<&str>| word.and_then(|word| word.parse().ok());
        let dialect = Dialect::of_name(first);
        Some(match kind {
            "rounds" => {
                Self::Rounds { tool: first.to_owned(), rounds: number(second)?, calls: number(third)? }
            }
            "small" => Self::Small { dialect: dialect?, events: number(second)? },
            "large" => Self::Large { dialect: dialect?, bytes: number(second)? },
            "calls" => Self::Calls { dialect: dialect?, count: number(second)? },
            "arguments" => Self::Arguments { dialect: dialect?, bytes: number(second)? },
            "patch" => {
                Self::Patch { dialect: dialect?, bytes: number(second)?, is_custom: third? == "custom" }
            }
            "recorded" => {
                Self::Recorded { dialect: dialect?, file: second?.to_owned(), times: number(third)? }
            }
            "subagents" => Self::Subagents { count: first.parse().ok()? },
            _ => return None,
        })
    }

    /// Returns sequential rounds with one call of `tool` each.
    pub(crate) fn rounds(tool: &str, rounds: usize) -> Self {
        Self::Rounds { tool: tool.to_owned(), rounds, calls: 1 }
    }

    /// Returns a single text.
    pub(crate) fn text() -> Self {
        Self::rounds("none", 0)
    }

    /// Returns whether every response is the same; it may be long.
    pub(crate) fn is_one_answer(&self) -> bool {
        !matches!(self, Self::Rounds { .. } | Self::Patch { .. } | Self::Subagents { .. })
    }

    /// Returns the response number `index`, from 0, to a request with this body.
    pub(crate) fn answer(&self, index: usize, body: &[u8], recordings: Option<&Path>) -> Vec<u8> {
        match self {
            Self::Rounds { tool, rounds, calls } if index < *rounds => {
                let arguments = arguments_of(tool, index);
                let call = |call: usize| Part::call(format!("call_{index}_{call}"), tool, &arguments);
                Dialect::Responses.stream(&(0..*calls).map(call).collect::<Vec<_>>())
            }
            Self::Rounds { .. } => Dialect::Responses.stream(&[Part::text("Done.")]),
            Self::Small { dialect, events } => {
                dialect.stream(&[Part::Text { deltas: vec![TOKEN.to_owned(); *events] }])
            }
            Self::Large { dialect, bytes } => {
                dialect.stream(&[Part::text(&"lorem ipsum ".repeat(bytes / 12))])
            }
            Self::Calls { dialect, count } => {
                let call =
                    |call: usize| Part::call(format!("call_{call}"), "note", &arguments_of("note", call));
                dialect.stream(&(0..*count).map(call).collect::<Vec<_>>())
            }
            Self::Arguments { dialect, bytes } => dialect.stream(&[long_arguments(*bytes)]),
            Self::Patch { dialect, bytes, is_custom } if index == 0 => {
                dialect.stream(&[long_patch(*bytes, *is_custom)])
            }
            Self::Patch { dialect, .. } => dialect.stream(&[Part::text("Done.")]),
            Self::Recorded { dialect, file, times } => {
                let path = recordings.map(|directory| directory.join(dialect.name()).join(file));
                repeat(*dialect, &fs::read(path.unwrap_or_default()).unwrap_or_default(), *times)
            }
            Self::Subagents { count } => subagents(*count, body),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rounds { tool, rounds, calls } => write!(f, "rounds~{tool}~{rounds}~{calls}"),
            Self::Small { dialect, events } => write!(f, "small~{}~{events}", dialect.name()),
            Self::Large { dialect, bytes } => write!(f, "large~{}~{bytes}", dialect.name()),
            Self::Calls { dialect, count } => write!(f, "calls~{}~{count}", dialect.name()),
            Self::Arguments { dialect, bytes } => write!(f, "arguments~{}~{bytes}", dialect.name()),
            Self::Patch { dialect, bytes, is_custom } => {
                let form = if *is_custom { "custom" } else { "function" };
                write!(f, "patch~{}~{bytes}~{form}", dialect.name())
            }
            Self::Recorded { dialect, file, times } => {
                write!(f, "recorded~{}~{file}~{times}", dialect.name())
            }
            Self::Subagents { count } => write!(f, "subagents~{count}"),
        }
    }
}

/// Returns the arguments of a call in this round. The shipped command recognizes equal calls as a loop.
fn arguments_of(tool: &str, round: usize) -> String {
    match tool {
        "exec_command" => json!({"cmd": format!("true {round}")}).to_string(),
        "shell" => r#"{"command":"true"}"#.to_owned(),
        _ => r#"{"text":"noted"}"#.to_owned(),
    }
}

fn long_arguments(bytes: usize) -> Part {
    let mut deltas = vec![r#"{"text":""#.to_owned()];
    deltas.extend(std::iter::repeat_n("0123456789abcdef".repeat(PIECE / 16), bytes / PIECE));
    deltas.push(r#""}"#.to_owned());
    Part::Call { id: "call_0".to_owned(), name: "note".to_owned(), deltas }
}

fn long_patch(bytes: usize, is_custom: bool) -> Part {
    const LINE: &str = "+the quick brown fox jumps over the lazy dog, line by line by line\n";
    let lines = LINE.repeat(bytes / LINE.len());
    let patch = format!("*** Begin Patch\n*** Add File: long.txt\n{lines}*** End Patch\n");
    let input = if is_custom { patch } else { json!({"patch": patch}).to_string() };
    // All of it is ASCII.
    let pieces = input.as_bytes().chunks(PIECE).map(|piece| String::from_utf8_lossy(piece).into_owned());
    let (id, name, deltas) = ("call_0".to_owned(), "apply_patch".to_owned(), pieces.collect());
    if is_custom { Part::Custom { id, name, deltas } } else { Part::Call { id, name, deltas } }
}

/// Repeats the repeatable events of a recorded stream `times` times each.
fn repeat(dialect: Dialect, stream: &[u8], times: usize) -> Vec<u8> {
    let text = String::from_utf8_lossy(stream).replace("\r\n", "\n");
    let mut longer = String::new();
    for event in text.split_inclusive("\n\n") {
        let data = event.lines().find_map(|line| line.strip_prefix("data: "));
        let payload = data.and_then(|data| serde_json::from_str::<Value>(data).ok());
        let repeats = payload.is_some_and(|payload| dialect.may_repeat(&payload));
        longer.push_str(&event.repeat(if repeats { times } else { 1 }));
    }
    longer.into_bytes()
}

/// Returns the response for a parent, which spawns subagents and waits for them, or for a subagent.
fn subagents(count: usize, body: &[u8]) -> Vec<u8> {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let input = request.get("input").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let outputs: Vec<&str> =
        input.iter().filter_map(|item| item.get("output").and_then(Value::as_str)).collect();
    let is_parent = input.first().is_some_and(|first| first.to_string().contains(PARENT));
    let parts: Vec<Part> = match (is_parent, outputs.len()) {
        (true, 0) => (0..count)
            .map(|index| {
                let task = json!({"task": format!("Say what {index} is.")});
                Part::call(format!("spawn_{index}"), "spawn_agent", &task.to_string())
            })
            .collect(),
        (true, spawned) if spawned == count => outputs
            .iter()
            .enumerate()
            .map(|(index, output)| {
                let id = agent_id(output);
                Part::call(format!("wait_{index}"), "wait", &json!({"agent_id": id}).to_string())
            })
            .collect(),
        _ => vec![Part::text("Done.")],
    };
    Dialect::Responses.stream(&parts)
}

/// Prompt of the parent session.
pub(crate) const PARENT: &str = "Start your subagents.";

/// Returns the id in the output of `spawn_agent`.
fn agent_id(output: &str) -> &str {
    output.lines().find_map(|line| line.strip_prefix("agent_id: ")).unwrap_or_default()
}
