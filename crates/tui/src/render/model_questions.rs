//! Questions that a model asks with a tool. They end its turn, and the next input is the answer.

use pintle_host::sanitize::sanitize;
use serde_json::Value;

use super::expand_tabs;

/// Tools that ask. Their arguments contain one question or several.
const TOOLS: [&str; 3] = ["ask_user", "AskUserQuestion", "request_user_input"];

/// Returns the lines of the questions in the arguments of a call, with numbered options. Empty if the tool does not ask.
pub(super) fn questions(tool_name: &str, arguments: &Value) -> Vec<String> {
    if !TOOLS.contains(&tool_name) {
        return Vec::new();
    }
    let several = arguments.get("questions").and_then(Value::as_array);
    let questions = several.map_or_else(|| std::slice::from_ref(arguments), Vec::as_slice);
    questions.iter().flat_map(question).collect()
}

fn question(question: &Value) -> Vec<String> {
    let text = question.get("question").and_then(Value::as_str).unwrap_or_default();
    let is_multiple = question.get("multiSelect").and_then(Value::as_bool).unwrap_or(false);
    let several = if is_multiple { " (several may be chosen)" } else { "" };
    let mut lines = lines(&format!("{}{several}", text.trim()));
    let options = question.get("options").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (number, option) in (1..).zip(options) {
        lines.extend(self::lines(&format!("{number}. {}", answer(option))));
    }
    lines
}

/// Returns the label of an option, with its description if present.
fn answer(option: &Value) -> String {
    let field = |name: &str| option.get(name).and_then(Value::as_str).map(str::trim);
    match (option.as_str().map(str::trim).or(field("label")), field("description")) {
        (Some(label), Some(meaning)) if !meaning.is_empty() => format!("{label}: {meaning}"),
        (label, _) => label.unwrap_or_default().to_owned(),
    }
}

fn lines(text: &str) -> Vec<String> {
    sanitize(text).lines().map(expand_tabs).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_tool_asks_in_its_own_form() {
        let option = json!({ "label": "80", "description": "as usual" });
        let several = json!({ "questions": [
            { "question": "Which port?\n", "options": [option, { "label": "81" }], "multiSelect": true },
            { "question": "Why\u{1b}[2J?" },
        ] });
        let cases = [
            (
                "ask_user",
                json!({ "question": "Which port?", "options": ["80", " 81"] }),
                vec!["Which port?", "1. 80", "2. 81"],
            ),
            (
                "AskUserQuestion",
                several,
                vec!["Which port? (several may be chosen)", "1. 80: as usual", "2. 81", "Why[2J?"],
            ),
            ("shell", json!({ "question": "Which port?" }), vec![]),
            ("request_user_input", json!({ "questions": [] }), vec![]),
        ];
        for (tool, arguments, expected) in cases {
            assert_eq!(questions(tool, &arguments), expected, "{tool}");
        }
    }
}
