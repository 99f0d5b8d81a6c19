//! Short forms of tool calls, numbers and durations.

use std::time::Duration;

use pintle_agent::{BudgetKind, BudgetScope, Count, GroupedNumber, Money};
use pintle_host::sanitize;
use pintle_llm::Usage;
use serde_json::Value;

/// Maximum length of the summary of a call's arguments, in characters.
pub(super) const MAX_CHARS: usize = 80;

/// Arguments that identify a call, in display order.
pub(super) const KEY_ARGUMENTS: [&str; 12] = [
    "command",
    "cmd",
    "pattern",
    "query",
    "url",
    "file_path",
    "notebook_path",
    "paths",
    "path",
    "dir_path",
    "patch",
    "input",
];

/// Summarises the arguments of a call on one line.
pub fn arguments(arguments: &Value) -> String {
    let parts: Vec<String> =
        KEY_ARGUMENTS.iter().filter_map(|name| Some(argument(name, arguments.get(name)?))).collect();
    let text = match (parts.is_empty(), arguments) {
        (false, _) => parts.join(" "),
        (true, Value::Object(fields)) if fields.is_empty() => String::new(),
        (true, Value::Null) => String::new(),
        // A tool without a schema receives text instead of arguments.
        (true, Value::String(text)) => patch_paths(text),
        (true, other) => other.to_string(),
    };
    one_line(&text, MAX_CHARS)
}

/// Returns the first non-blank line of a text, truncated and without control characters.
pub(crate) fn one_line(text: &str, max_chars: usize) -> String {
    let text = text.trim();
    let first = text.lines().next().unwrap_or_default();
    let is_blank = |character: char| character == '\t' || sanitize::is_control(character);
    let printable: String =
        first.chars().map(|character| if is_blank(character) { ' ' } else { character }).collect();
    let printable = sanitize::sanitize(&printable).replace('\n', " ");
    let mut line: String = printable.chars().take(max_chars).collect();
    if line.len() < printable.len() || first.len() < text.len() {
        line.push('…');
    }
    line
}

/// Truncates a line of output, keeping indentation and tabs. For a line overwritten with carriage returns, such as a
/// progress bar, returns the last state.
pub(super) fn output_line(line: &str, max_chars: usize) -> String {
    let last = line.split('\r').rfind(|part| !part.is_empty()).unwrap_or_default();
    let shown = sanitize::sanitize(last).replace('\n', " ");
    match shown.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", shown.get(..end).unwrap_or_default()),
        None => shown,
    }
}

/// `12 ms`, `1.2 s`, `2 min 5 s`.
pub(super) fn duration(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{:.1} s", duration.as_secs_f64()),
        seconds => self::seconds(seconds),
    }
}

/// `12 s`, `2 min 5 s`.
pub(super) fn seconds(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// `12,345`.
pub(crate) fn count(count: u64) -> String {
    GroupedNumber(count).to_string()
}

/// `1 call`, `2 calls`, `2 entries`.
pub fn plural(count: u64, noun: &str) -> String {
    Count(count, noun).to_string()
}

/// `12,345 tokens`, `$0.5000`, `12 calls`: an amount of a budget.
pub(crate) fn amount_of_budget(kind: BudgetKind, amount: u64) -> String {
    match kind {
        BudgetKind::Tokens => plural(amount, "token"),
        BudgetKind::CostMicros => format_cost(amount),
        BudgetKind::WallTimeMs => duration(Duration::from_millis(amount)),
        BudgetKind::ToolCalls => plural(amount, "tool call"),
        _ => count(amount),
    }
}

/// Parses an amount of a budget in the form that users type: `20,000`, `$2.50`.
pub(crate) fn parse_amount(kind: BudgetKind, text: &str) -> Option<u64> {
    let text = text.trim().replace(',', "");
    match kind {
        BudgetKind::CostMicros => text.parse().ok().map(Money::micros).filter(|amount| *amount > 0),
        BudgetKind::Tokens | BudgetKind::WallTimeMs | BudgetKind::ToolCalls | _ => {
            text.parse().ok().filter(|amount| *amount > 0)
        }
    }
}

fn format_cost(micros: u64) -> String {
    format!("{:.4}", Money::from_micros(micros))
}

/// `12,345 tokens used, the limit is 10,000`, or `9,900 tokens used, the limit is 10,000, and the next call needs at least
/// 350`.
pub(super) fn budget(
    scope: BudgetScope,
    budget: BudgetKind,
    limit: u64,
    spent: u64,
    needed: Option<u64>,
) -> String {
    let of = if scope == BudgetScope::Session { String::new() } else { format!(" of the {scope}") };
    let next = |shown: &dyn Fn(u64) -> String| {
        needed.map_or_else(String::new, |needed| {
            format!(", and the next call needs at least {}", shown(needed))
        })
    };
    match budget {
        BudgetKind::Tokens => {
            let spent = plural(spent, "token");
            format!("{spent} used, the limit{of} is {}{}", count(limit), next(&count))
        }
        BudgetKind::CostMicros => {
            let next = next(&format_cost);
            format!("{} spent, the limit{of} is {}{next}", format_cost(spent), format_cost(limit))
        }
        BudgetKind::WallTimeMs => {
            let [spent, limit] = [spent, limit].map(|millis| duration(Duration::from_millis(millis)));
            format!("{spent} elapsed, the limit{of} is {limit}")
        }
        BudgetKind::ToolCalls => {
            format!("{} made, the limit{of} is {}", plural(spent, "tool call"), count(limit))
        }
        _ => format!("{} used, the limit{of} is {}", count(spent), count(limit)),
    }
}

/// Formats token counts, with the cached part of the input.
pub(super) fn tokens(usage: &Usage) -> String {
    let part = |tokens: Option<u64>, name: &str| {
        let tokens = tokens.filter(|tokens| *tokens > 0)?;
        Some(format!("{} {name}", count(tokens)))
    };
    let parts = [part(usage.cache_read_tokens, "cached"), part(usage.cache_write_tokens, "written to cache")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let cached = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    let input = plural(usage.input_tokens, "token");
    format!("{input} in{cached}, {} out", count(usage.output_tokens))
}

fn argument(name: &str, value: &Value) -> String {
    match (name, value) {
        ("patch" | "input", Value::String(text)) => patch_paths(text),
        (_, Value::String(text)) => text.clone(),
        (_, Value::Array(values)) => values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        (_, other) => other.to_string(),
    }
}

/// Returns the files of a patch, or the text itself if it names no files.
fn patch_paths(text: &str) -> String {
    let paths = pintle_patch::named_paths(text);
    if paths.is_empty() { text.to_owned() } else { paths.join(" ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_summarised_on_one_line() {
        let patch =
            "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-x\n+y\n*** Delete File: b.rs\n*** End Patch\n";
        let cases = [
            (json!({"command": "cargo test", "timeout_ms": 1000, "description": "Run"}), "cargo test"),
            (json!({"command": "\nset -e\ncargo test"}), "set -e…"),
            (json!({"pattern": "fn main", "path": "src"}), "fn main src"),
            (json!({"file_path": "a.rs", "old_string": "x", "new_string": "y"}), "a.rs"),
            (json!({"paths": ["a.rs", "b.rs"]}), "a.rs b.rs"),
            (json!({"pattern": "*.rs", "dir_path": "src"}), "*.rs src"),
            (json!({"prompt": "The price.", "url": "https://example.com/"}), "https://example.com/"),
            (json!({"query": "pintle", "allowed_domains": ["a.org"]}), "pintle"),
            (json!({"notebook_path": "a.ipynb", "new_source": "x = 1"}), "a.ipynb"),
            (json!({"patch": patch}), "src/a.rs b.rs"),
            (json!({"patch": "nonsense"}), "nonsense"),
            (json!(patch), "src/a.rs b.rs"),
            (json!(patch.replace("-x", "x")), "src/a.rs b.rs"),
            (json!("ls \"a\""), "ls \"a\""),
            (json!({"question": "why?"}), r#"{"question":"why?"}"#),
            (json!({}), ""),
            (json!(null), ""),
            (json!({"command": "a\u{1b}[2Jb\tc\u{202e}d"}), "a [2Jb c d"),
        ];
        for (arguments, expected) in cases {
            assert_eq!(super::arguments(&arguments), expected, "{arguments}");
        }
        assert_eq!(super::arguments(&json!({"command": "é".repeat(200)})).chars().count(), MAX_CHARS + 1);
    }

    #[test]
    fn output_lines_keep_indentation() {
        let cases = [
            ("    return 1", "    return 1"),
            ("\tx\t y ", "\tx\t y "),
            ("10%\r 20%\r\u{1b}[K 30%\r", "[K 30%"),
            ("a\u{200b}b\u{2028}c", "ab c"),
            ("   123456789abc", "   123456789…"),
            ("", ""),
        ];
        for (line, expected) in cases {
            assert_eq!(output_line(line, 12), expected, "{line:?}");
        }
    }

    #[test]
    fn durations_are_readable() {
        let cases =
            [(0, "0 ms"), (999, "999 ms"), (1_234, "1.2 s"), (59_900, "59.9 s"), (125_000, "2 min 5 s")];
        for (millis, expected) in cases {
            assert_eq!(duration(Duration::from_millis(millis)), expected);
        }
    }
}
