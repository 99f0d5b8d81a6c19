//! Jupyter notebooks as text.

use serde::Deserialize;
use serde_json::Value;

/// Maximum size of a rendered notebook, in bytes. A larger one is shown as JSON.
pub(super) const MAX_NOTEBOOK: u64 = 16 << 20;

/// Maximum number of lines shown of one output.
const OUTPUT_LINES: usize = 50;

/// The extension of notebook files.
const EXTENSION: &str = "ipynb";

/// A notebook in format 4.
#[derive(Deserialize)]
struct Notebook {
    cells: Vec<Cell>,
    nbformat: u64,
    #[serde(default)]
    metadata: Value,
}

#[derive(Deserialize)]
struct Cell {
    cell_type: String,
    #[serde(default)]
    source: Text,
    execution_count: Option<u64>,
    #[serde(default)]
    outputs: Vec<CellOutput>,
}

#[derive(Deserialize)]
struct CellOutput {
    output_type: String,
    #[serde(default)]
    text: Text,
    #[serde(default)]
    data: serde_json::Map<String, Value>,
    #[serde(default)]
    ename: String,
    #[serde(default)]
    evalue: String,
}

/// A text, or a list of lines with their line ends.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Whole(String),
    Lines(Vec<String>),
}

/// Returns whether a file has the name of a notebook.
pub(super) fn is_notebook(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case(EXTENSION))
}

/// Renders the cells of a notebook and their outputs, each below a line that starts with `%%`. Returns `None` if the
/// file is not a notebook in format 4.
pub(super) fn render(json: &[u8]) -> Option<String> {
    let notebook: Notebook = serde_json::from_slice(json).ok()?;
    if notebook.nbformat < 4 {
        return None;
    }
    let language = notebook.metadata.pointer("/language_info/name").and_then(Value::as_str);
    let mut lines = Vec::new();
    for (at, cell) in notebook.cells.iter().enumerate() {
        cell.render(at + 1, language.unwrap_or_default(), &mut lines);
    }
    Some(lines.join("\n"))
}

impl Cell {
    fn render(&self, number: usize, language: &str, lines: &mut Vec<String>) {
        let kind = match (self.cell_type.as_str(), language) {
            ("code", "") => "code".to_owned(),
            ("code", language) => format!("code, {language}"),
            (other, _) => other.to_owned(),
        };
        let run = self.execution_count.map_or_else(String::new, |count| format!(" [{count}]"));
        lines.push(format!("%% cell {number} ({kind}){run}"));
        lines.extend(self.source.joined().lines().map(str::to_owned));
        for output in &self.outputs {
            lines.push(format!("%% output of cell {number} ({})", output.output_type));
            output.render(lines);
        }
    }
}

impl CellOutput {
    fn render(&self, lines: &mut Vec<String>) {
        let before = lines.len();
        if self.output_type == "error" {
            lines.push(format!("{}: {}", self.ename, self.evalue));
            return;
        }
        let text = match self.data.get("text/plain").and_then(text_of) {
            Some(text) => text,
            None => self.text.joined(),
        };
        let total = text.lines().count();
        lines.extend(text.lines().take(OUTPUT_LINES).map(str::to_owned));
        if total > OUTPUT_LINES {
            lines.push(format!("[{} more lines of this output]", total - OUTPUT_LINES));
        }
        let others = self.data.iter().filter(|(kind, _)| kind.as_str() != "text/plain");
        lines.extend(others.map(|(kind, value)| format!("[{kind}, {} characters, not shown]", size(value))));
        if lines.len() == before {
            lines.push("[empty]".to_owned());
        }
    }
}

impl Text {
    fn joined(&self) -> String {
        match self {
            Self::Whole(text) => text.clone(),
            Self::Lines(lines) => lines.concat(),
        }
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::Whole(String::new())
    }
}

fn text_of(value: &Value) -> Option<String> {
    Text::deserialize(value).ok().map(|text| text.joined())
}

fn size(value: &Value) -> usize {
    text_of(value).unwrap_or_else(|| value.to_string()).chars().count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_are_shown_with_their_outputs() {
        let notebook = json!({
            "nbformat": 4, "nbformat_minor": 5,
            "metadata": {"language_info": {"name": "python"}},
            "cells": [
                {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "text"]},
                {
                    "cell_type": "code", "metadata": {}, "execution_count": 3, "source": "print(1)\nplot()",
                    "outputs": [
                        {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
                        {
                            "output_type": "display_data", "metadata": {},
                            "data": {"text/plain": "<Figure>", "image/png": "iVBORw0="}
                        },
                        {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": []},
                        {"output_type": "stream", "name": "stdout", "text": []},
                    ]
                },
                {"cell_type": "code", "metadata": {}, "execution_count": null, "source": [], "outputs": []}
            ]
        });
        insta::assert_snapshot!(render(notebook.to_string().as_bytes()).unwrap(), @"
        %% cell 1 (markdown)
        # Title
        text
        %% cell 2 (code, python) [3]
        print(1)
        plot()
        %% output of cell 2 (stream)
        1
        %% output of cell 2 (display_data)
        <Figure>
        [image/png, 8 characters, not shown]
        %% output of cell 2 (error)
        KeyError: 'x'
        %% output of cell 2 (stream)
        [empty]
        %% cell 3 (code, python)
        ");
    }

    #[test]
    fn a_long_output_is_cut_and_counted() {
        let text = "x\n".repeat(60);
        let outputs = json!([{"output_type": "stream", "name": "stdout", "text": text}]);
        let cell = json!({"cell_type": "code", "source": "", "outputs": outputs});
        let shown = render(json!({"nbformat": 4, "cells": [cell]}).to_string().as_bytes()).unwrap();
        assert!(shown.ends_with("x\n[10 more lines of this output]"), "{shown}");
        assert_eq!(shown.matches('x').count(), OUTPUT_LINES);
    }

    #[test]
    fn other_files_are_not_notebooks() {
        let cases = [
            "",
            "{}",
            "[]",
            "{\"cells\": []}",
            "{\"cells\": 1, \"nbformat\": 4}",
            "{\"nbformat\": 3, \"cells\": []}",
        ];
        for text in cases {
            assert_eq!(render(text.as_bytes()), None, "{text}");
        }
        assert!(is_notebook("a/b.ipynb") && is_notebook("B.IPYNB"));
        assert!(!is_notebook("ipynb") && !is_notebook("a.ipynb.txt"));
    }
}
