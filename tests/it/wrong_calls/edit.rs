//! Replacing one text by another: `edit_file`, `Edit` and `replace`.

use pintle_testkit::Call;
use serde_json::json;

use super::{CART, CLAUDE_CODE, GEMINI, GEMINI_CLI, LOCAL, SPEC, answer, last_answer, project};
use crate::kit::Kit;

async fn cart(kit: Kit, old: &str, new: &str) -> String {
    answer(kit, kit.edit("src/cart.py", old, new)).await
}

async fn server(kit: Kit, old: &str, new: &str) -> String {
    answer(kit, kit.edit("src/server.go", old, new)).await
}

#[tokio::test]
async fn the_text_is_from_an_older_state_of_the_file() {
    let old = "    def total(self):\n        total = 0\n        for item in self.items:\n            total += item.price";
    insta::assert_snapshot!(cart(CLAUDE_CODE, old, "x").await, @"");
}

#[tokio::test]
async fn the_indentation_is_wrong() {
    let old = "  def add(self, name, price, count=1):\n    if count < 1:\n";
    let new = "  def add(self, name, price, count=1):\n    if count <= 0:\n";
    insta::assert_snapshot!(cart(LOCAL, old, new).await, @"");
}

#[tokio::test]
async fn the_indentation_is_of_blanks_where_the_file_has_tabs() {
    let old = "    for i := 0; i < 3; i++ {\n        fmt.Println";
    insta::assert_snapshot!(server(SPEC, old, "x").await, @"");
    let old = "    for i := 0; i < 3; i++ {";
    let new = "    for i := range 3 {";
    insta::assert_snapshot!(server(GEMINI_CLI, old, new).await, @"");
}

#[tokio::test]
async fn the_indentation_is_wrong_and_two_places_are_alike() {
    let old = "total = 0\nfor name, price, count in self.items:\n";
    insta::assert_snapshot!(cart(GEMINI, old, "x\n").await, @"");
}

#[tokio::test]
async fn a_tab_inside_a_line_was_taken_for_blanks() {
    insta::assert_snapshot!(server(SPEC, "\tport    = 8080", "\tport    = 9090").await, @"");
}

#[tokio::test]
async fn a_line_has_a_twin() {
    insta::assert_snapshot!(cart(CLAUDE_CODE, "        total = 0", "        total = 1").await, @"");
}

#[tokio::test]
async fn the_text_is_that_of_another_file() {
    insta::assert_snapshot!(server(CLAUDE_CODE, "    def total(self):\n        total = 0", "x").await, @"");
}

#[tokio::test]
async fn line_ends_are_written_as_escapes() {
    let call = GEMINI_CLI.edit("settings.ini", "host = localhost\\r\\nport = 8080", "x");
    insta::assert_snapshot!(answer(GEMINI_CLI, call).await, @"");
    insta::assert_snapshot!(cart(LOCAL, "    def total(self):\\n        total = 0", "x").await, @"");
}

#[tokio::test]
async fn characters_are_written_as_entities() {
    insta::assert_snapshot!(cart(CLAUDE_CODE, "        if count &lt; 1:", "        if count &lt; 2:").await, @"");
}

#[tokio::test]
async fn the_text_to_find_is_empty() {
    insta::assert_snapshot!(cart(CLAUDE_CODE, "", "import math\n").await, @"");
}

#[tokio::test]
async fn both_texts_are_the_same() {
    insta::assert_snapshot!(cart(GEMINI_CLI, "total = 0", "total = 0").await, @"");
}

#[tokio::test]
async fn line_numbers_were_copied() {
    let old = "14 |     def total(self):\n15 |         total = 0\n";
    insta::assert_snapshot!(cart(SPEC, old, "x\n").await, @"");
    let old = "    14→    def total(self):\n    15→        total = 0\n    16→        for name";
    insta::assert_snapshot!(cart(CLAUDE_CODE, old, "x").await, @"");
}

#[tokio::test]
async fn quotes_are_typographic() {
    let old = "            raise ValueError(“count must be at least 1”)";
    let new = "            raise ValueError(\"count must be positive\")";
    insta::assert_snapshot!(cart(GEMINI_CLI, old, new).await, @"");
}

#[tokio::test]
async fn an_ellipsis_stands_for_lines() {
    let old = "    def add(self, name, price, count=1):\n        ...\n        self.items.append((name, price, count))";
    insta::assert_snapshot!(cart(CLAUDE_CODE, old, "x").await, @"");
    let old = "class Cart:\n    # ... existing code ...\n    def total(self):\n";
    insta::assert_snapshot!(cart(GEMINI, old, "x\n").await, @"");
}

#[tokio::test]
async fn a_line_has_blanks_at_its_end() {
    let old = "        if count < 1:  \n            raise";
    insta::assert_snapshot!(cart(SPEC, old, "x").await, @"");
    let old = "        if count < 1:  \n";
    insta::assert_snapshot!(cart(GEMINI_CLI, old, "        if count < 2:\n").await, @"");
}

#[tokio::test]
async fn a_letter_is_upper_case() {
    insta::assert_snapshot!(cart(LOCAL, "class cart:", "class Basket:").await, @"");
}

#[tokio::test]
async fn the_number_of_replacements_is_another() {
    insta::assert_snapshot!(cart(GEMINI_CLI, "price * count", "price").await, @"");
    let call = |expected: usize| {
        let arguments = json!({
            "file_path": "src/cart.py", "instruction": "Rename it.", "old_string": "self.discount",
            "new_string": "self.rebate", "expected_replacements": expected,
        });
        Call::new("edit_file", arguments)
    };
    insta::assert_snapshot!(answer(GEMINI, call(3)).await, @"");
}

#[tokio::test]
async fn the_arguments_have_other_names() {
    let arguments = json!({"path": "src/cart.py", "old_text": "total = 0", "new_text": "total = 1"});
    insta::assert_snapshot!(answer(CLAUDE_CODE, Call::new("Edit", arguments)).await, @"");
    let arguments = json!({"file_path": "src/cart.py", "edits": [{"old_string": "a", "new_string": "b"}]});
    insta::assert_snapshot!(answer(SPEC, Call::new("edit_file", arguments)).await, @"");
}

#[tokio::test]
async fn an_argument_is_missing() {
    let arguments = json!({"file_path": "src/cart.py", "old_string": "        self.discount = 0\n"});
    insta::assert_snapshot!(answer(GEMINI_CLI, Call::new("replace", arguments)).await, @"");
}

#[tokio::test]
async fn the_change_was_made_before() {
    let first = LOCAL.edit("src/cart.py", "self.discount = 0", "self.rebate = 0");
    let answer = last_answer(LOCAL, &project(), [first.clone(), first], false).await;
    insta::assert_snapshot!(answer, @"");
}

#[tokio::test]
async fn the_file_was_not_read() {
    let edit = CLAUDE_CODE.edit("src/cart.py", "self.discount = 0", "self.rebate = 0");
    insta::assert_snapshot!(last_answer(CLAUDE_CODE, &project(), [edit], true).await, @"");
    let write = SPEC.write("src/cart.py", CART);
    insta::assert_snapshot!(last_answer(SPEC, &project(), [write], true).await, @"");
}

#[tokio::test]
async fn the_file_has_changed_since_it_was_read() {
    let calls = [
        Call::new("read_file", json!({"file_path": "src/cart.py"})),
        GEMINI_CLI.run("sed -i 's/discount/rebate/' src/cart.py"),
        GEMINI_CLI.edit("src/cart.py", "self.rebate = 0", "self.rebate = 5"),
    ];
    insta::assert_snapshot!(last_answer(GEMINI_CLI, &project(), calls, true).await, @"");
}
