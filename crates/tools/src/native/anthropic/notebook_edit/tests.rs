use serde_json::{Value, json};

use super::*;
use crate::tests::harness::Harness;

/// A notebook as Jupyter writes it, with ids.
const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {},
   "source": [
    "# Title"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 7,
   "id": "c1",
   "metadata": {"weight":  1.50},
   "outputs": [{"output_type": "stream", "name": "stdout", "text": ["é\n"]}],
   "source": [
    "print('é')\n",
    "x = 1"
   ]
  }
 ],
 "metadata": {"z":  0.10, "a": 1},
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

async fn edit(notebook: &str, arguments: Value) -> (String, String) {
    let harness = Harness::new();
    harness.write("n.ipynb", notebook);
    let mut call = json!({"notebook_path": "n.ipynb", "new_source": ""});
    call.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
    let answer = harness.call(NotebookEdit::new(), &call.to_string()).await;
    (answer, harness.text("n.ipynb"))
}

#[tokio::test]
async fn replacing_a_cell_changes_nothing_else() {
    let (answer, after) = edit(NOTEBOOK, json!({"cell_id": "c1", "new_source": "y = 2\nprint(y)\n"})).await;
    assert_eq!(answer, "ok: Updated cell c1 in n.ipynb.");
    let (head, _) = NOTEBOOK.split_once("  {\n   \"cell_type\": \"code\"").unwrap();
    let (_, tail) = NOTEBOOK.split_once("\n ],\n").unwrap();
    let cell = after.strip_prefix(head).unwrap().strip_suffix(tail).unwrap();
    insta::assert_snapshot!(cell, @r#"
     {
      "cell_type": "code",
      "execution_count": null,
      "id": "c1",
      "metadata": {
       "weight": 1.5
      },
      "outputs": [],
      "source": [
       "y = 2\n",
       "print(y)\n"
      ]
     }
    ],
    "#);
}

#[tokio::test]
async fn cells_are_inserted_at_the_given_position() {
    let added = json!({"edit_mode": "insert", "cell_type": "markdown", "new_source": "two\nlines"});
    let sources = |text: &str| -> Vec<String> {
        let notebook: Value = serde_json::from_str(text).unwrap();
        let cells = notebook["cells"].as_array().unwrap();
        cells.iter().map(|cell| cell["source"].to_string()).collect()
    };
    let (title, code, new) = (r##"["# Title"]"##, r#"["print('é')\n","x = 1"]"#, r#"["two\n","lines"]"#);
    for (after, order) in
        [(None, [new, title, code]), (Some("intro"), [title, new, code]), (Some("2"), [title, code, new])]
    {
        let mut call = added.clone();
        if let Some(after) = after {
            call["cell_id"] = after.into();
        }
        let (answer, text) = edit(NOTEBOOK, call).await;
        assert!(
            answer.starts_with("ok: Inserted cell ")
                && answer.len() == "ok: Inserted cell 12345678 in n.ipynb.".len(),
            "{answer}"
        );
        assert_eq!(sources(&text), order);
        // The other cells are unchanged, byte for byte.
        assert!(
            text.contains(r#""metadata": {"weight":  1.50},"#)
                && text.ends_with(&NOTEBOOK[NOTEBOOK.find(" ],\n").unwrap()..]),
            "{text}"
        );
    }
}

#[tokio::test]
async fn inserting_and_deleting_restores_the_bytes() {
    let compact = r#"{"cells":[{"cell_type":"raw","metadata":{},"source":"a"}],"metadata":{},"nbformat":4,"nbformat_minor":2}"#;
    let windows = NOTEBOOK.replace('\n', "\r\n");
    for notebook in [NOTEBOOK, compact, &windows] {
        for after in [None, Some("1")] {
            let mut call = json!({"edit_mode": "insert", "cell_type": "code", "new_source": "x"});
            if let Some(after) = after {
                call["cell_id"] = after.into();
            }
            let (_, with) = edit(notebook, call).await;
            assert_ne!(with, notebook);
            let number = if after.is_some() { "2" } else { "1" };
            let (answer, back) = edit(&with, json!({"edit_mode": "delete", "cell_id": number})).await;
            assert!(answer.starts_with("ok: Deleted cell "), "{answer}");
            assert_eq!(back, notebook);
        }
    }
    let (_, one) = edit(NOTEBOOK, json!({"edit_mode": "delete", "cell_id": "c1"})).await;
    let (_, none) = edit(&one, json!({"edit_mode": "delete", "cell_id": "intro"})).await;
    assert!(none.contains(" \"cells\": [],\n"), "{none}");
    let (_, again) =
        edit(&none, json!({"edit_mode": "insert", "cell_type": "code", "new_source": "x"})).await;
    insta::assert_snapshot!(again, @r#"
    {
     "cells": [
      {
       "cell_type": "code",
       "execution_count": null,
       "id": "5f51019c",
       "metadata": {},
       "outputs": [],
       "source": [
        "x"
       ]
      }
     ],
     "metadata": {"z":  0.10, "a": 1},
     "nbformat": 4,
     "nbformat_minor": 5
    }
    "#);
}

#[tokio::test]
async fn a_cell_can_change_its_kind() {
    let (_, text) =
        edit(NOTEBOOK, json!({"cell_id": "c1", "cell_type": "markdown", "new_source": "text"})).await;
    let notebook: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        notebook["cells"][1],
        json!({"cell_type": "markdown", "id": "c1", "metadata": {"weight": 1.5}, "source": ["text"]})
    );
}

#[tokio::test]
async fn failed_edits_explain_themselves_and_change_nothing() {
    let old = r#"{"cells": [], "nbformat": 3}"#;
    let cases = [
        (NOTEBOOK, json!({}), "`cell_id`: required with edit_mode replace, but missing"),
        (NOTEBOOK, json!({"edit_mode": "delete"}), "`cell_id`: required with edit_mode delete, but missing"),
        (
            NOTEBOOK,
            json!({"edit_mode": "insert"}),
            "`cell_type`: required with edit_mode insert, but missing",
        ),
        (NOTEBOOK, json!({"cell_id": "3"}), r#"there is no cell "3" in the notebook of 2 cells: intro, c1"#),
        (NOTEBOOK, json!({"cell_id": "0"}), r#"there is no cell "0" in the notebook of 2 cells: intro, c1"#),
        (
            old,
            json!({"cell_id": "1"}),
            "n.ipynb is no notebook that can be edited cell by cell: expected nbformat 4, found 3",
        ),
        (
            "{}",
            json!({"cell_id": "1"}),
            "n.ipynb is no notebook that can be edited cell by cell: missing field `cells` at line 1 column 2",
        ),
    ];
    for (notebook, arguments, expected) in cases {
        let (answer, after) = edit(notebook, arguments).await;
        assert_eq!(
            (answer.as_str(), after.as_str()),
            (format!("error: Tool error (NotebookEdit): {expected}").as_str(), notebook)
        );
    }
}
