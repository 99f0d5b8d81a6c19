//! Text replacement: `edit_file`, `Edit` and `replace`.

use pintle_testkit::Call;
use serde_json::json;

use super::{CART, CLAUDE_CODE, GEMINI, GEMINI_CLI, LOCAL, SPEC, answer, last_answer, project};
use crate::test_profile::TestProfile;

async fn cart(profile_under_test: TestProfile, old: &str, new: &str) -> String {
    answer(profile_under_test, profile_under_test.edit("src/cart.py", old, new)).await
}

async fn server(profile_under_test: TestProfile, old: &str, new: &str) -> String {
    answer(profile_under_test, profile_under_test.edit("src/server.go", old, new)).await
}

#[tokio::test]
async fn the_text_is_from_an_older_state_of_the_file() {
    let old = "    def total(self):\n        total = 0\n        for item in self.items:\n            total += item.price";
    insta::assert_snapshot!(cart(CLAUDE_CODE, old, "x").await, @"
    Tool error (Edit): old_string does not occur in src/cart.py
    first difference at line 16:
      expected: `        for item in self.items:`
      found:    `        for name, price, count in self.items:`
    nearest places:
      line 14: `    def total(self):`
      line 20: `    def total_with_tax(self, rate):`
    ");
}

#[tokio::test]
async fn the_indentation_is_wrong() {
    let old = "  def add(self, name, price, count=1):\n    if count < 1:\n";
    let new = "  def add(self, name, price, count=1):\n    if count <= 0:\n";
    insta::assert_snapshot!(cart(LOCAL, old, new).await, @"
    Tool error (edit_file): old_string occurs in src/cart.py only with other indentation, at line 9, and the difference is not the same on every line. Give both with the indentation of the file
      line 9: old_string has 2 spaces, the file 4 spaces
      line 10: old_string has 4 spaces, the file 8 spaces
    ");
}

#[tokio::test]
async fn the_indentation_is_of_blanks_where_the_file_has_tabs() {
    let old = "    for i := 0; i < 3; i++ {\n        fmt.Println";
    insta::assert_snapshot!(server(SPEC, old, "x").await, @"Tool error (edit_file): old_string does not occur in src/server.go; with other blanks it does, at line 11. Give them as the file has them: in line 11, column 1, old_string has 4 spaces, the file 1 tab");
    let old = "    for i := 0; i < 3; i++ {";
    let new = "    for i := range 3 {";
    insta::assert_snapshot!(server(GEMINI_CLI, old, new).await, @"
    Successfully modified file: src/server.go (1 replacements).
    Note: old_string matched only ignoring leading and trailing blanks (line 11, column 1: old_string has 4 spaces, the file 1 tab); check that the result is as you want it
    Note: the new lines at line 11 were indented as the file is: 1 tab in place of 4 spaces
    ");
}

#[tokio::test]
async fn the_indentation_is_wrong_and_two_places_are_alike() {
    let old = "total = 0\nfor name, price, count in self.items:\n";
    insta::assert_snapshot!(cart(GEMINI, old, "x\n").await, @"
    Tool error (edit_file): old_string does not occur in src/cart.py exactly, and ignoring leading and trailing blanks it occurs several times
    it matches:
      line 15: `        total = 0`
      line 21: `        total = 0`
    ");
}

#[tokio::test]
async fn a_tab_inside_a_line_was_taken_for_blanks() {
    insta::assert_snapshot!(server(SPEC, "\tport    = 8080", "\tport    = 9090").await, @"Tool error (edit_file): old_string does not occur in src/server.go; with other blanks it does, at line 6. Give them as the file has them: in line 6, column 6, old_string has 4 spaces, the file 1 tab");
}

#[tokio::test]
async fn a_line_has_a_twin() {
    insta::assert_snapshot!(cart(CLAUDE_CODE, "        total = 0", "        total = 1").await, @"Tool error (Edit): old_string occurs 2 times in src/cart.py, at lines 15, 21. Add neighbouring lines to make it unique, or set replace_all to replace every one");
}

#[tokio::test]
async fn the_text_is_that_of_another_file() {
    insta::assert_snapshot!(server(CLAUDE_CODE, "    def total(self):\n        total = 0", "x").await, @"Tool error (Edit): old_string does not occur in src/server.go, and no line of it is like it; is it the right file?");
}

#[tokio::test]
async fn line_ends_are_written_as_escapes() {
    let call = GEMINI_CLI.edit("settings.ini", "host = localhost\\r\\nport = 8080", "x");
    insta::assert_snapshot!(answer(GEMINI_CLI, call).await, @r"
    Tool error (replace): old_string does not occur in settings.ini
    first difference at line 2:
      expected: `host = localhost\r\nport = 8080`
      found:    `host = localhost`
      escapes are not decoded: write the characters themselves
    nearest places:
      line 2: `host = localhost`
    ");
    insta::assert_snapshot!(cart(LOCAL, "    def total(self):\\n        total = 0", "x").await, @r"
    Tool error (edit_file): old_string does not occur in src/cart.py
    first difference at line 14:
      expected: `    def total(self):\n        total = 0`
      found:    `    def total(self):`
      escapes are not decoded: write the characters themselves
    nearest places:
      line 14: `    def total(self):`
      line 5: `    def __init__(self):`
    ");
}

#[tokio::test]
async fn characters_are_written_as_entities() {
    insta::assert_snapshot!(cart(CLAUDE_CODE, "        if count &lt; 1:", "        if count &lt; 2:").await, @"
    Tool error (Edit): old_string does not occur in src/cart.py
    first difference at line 10:
      expected: `        if count &lt; 1:`
      found:    `        if count < 1:`
      escapes are not decoded: write the characters themselves
    nearest places:
      line 10: `        if count < 1:`
    ");
}

#[tokio::test]
async fn the_text_to_find_is_empty() {
    insta::assert_snapshot!(cart(CLAUDE_CODE, "", "import math\n").await, @"Tool error (Edit): old_string is empty, so it does not say what to replace; to create a file or to replace all of one, write the whole file");
}

#[tokio::test]
async fn both_texts_are_the_same() {
    insta::assert_snapshot!(cart(GEMINI_CLI, "total = 0", "total = 0").await, @"Tool error (replace): old_string and new_string are identical, so there is nothing to change");
}

#[tokio::test]
async fn line_numbers_were_copied() {
    let old = "14 |     def total(self):\n15 |         total = 0\n";
    insta::assert_snapshot!(cart(SPEC, old, "x\n").await, @"
    Tool error (edit_file): old_string does not occur in src/cart.py
    first difference at line 14:
      expected: `14 |     def total(self):`
      found:    `    def total(self):`
      line numbers are not part of the file: quote its lines without them
    nearest places:
      line 14: `    def total(self):`
      line 5: `    def __init__(self):`
    ");
    let old = "    14→    def total(self):\n    15→        total = 0\n    16→        for name";
    insta::assert_snapshot!(cart(CLAUDE_CODE, old, "x").await, @"
    Tool error (Edit): old_string does not occur in src/cart.py
    first difference at line 14:
      expected: `    14→    def total(self):`
      found:    `    def total(self):`
      line numbers are not part of the file: quote its lines without them
    nearest places:
      line 14: `    def total(self):`
      line 5: `    def __init__(self):`
    ");
}

#[tokio::test]
async fn quotes_are_typographic() {
    let old = "            raise ValueError(“count must be at least 1”)";
    let new = "            raise ValueError(\"count must be positive\")";
    insta::assert_snapshot!(cart(GEMINI_CLI, old, new).await, @"
    Successfully modified file: src/cart.py (1 replacements).
    Note: old_string matched only ignoring blanks, typographic punctuation and composed accents; check that the result is as you want it
    ");
}

#[tokio::test]
async fn an_ellipsis_stands_for_lines() {
    let old = "    def add(self, name, price, count=1):\n        ...\n        self.items.append((name, price, count))";
    insta::assert_snapshot!(cart(CLAUDE_CODE, old, "x").await, @"
    Tool error (Edit): old_string does not occur in src/cart.py
    first difference at line 10:
      expected: `        ...`
      found:    `        if count < 1:`
      an ellipsis is not expanded: quote every line as it is in the file
    nearest places:
      line 9: `    def add(self, name, price, count=1):`
      line 10: `        if count < 1:`
    ");
    let old = "class Cart:\n    # ... existing code ...\n    def total(self):\n";
    insta::assert_snapshot!(cart(GEMINI, old, "x\n").await, @"
    Tool error (edit_file): old_string does not occur in src/cart.py
    first difference at line 5:
      expected: `    # ... existing code ...`
      found:    `    def __init__(self):`
      an ellipsis is not expanded: quote every line as it is in the file
    nearest places:
      line 4: `class Cart:`
      line 12: `        self.items.append((name, price, count))`
    ");
}

#[tokio::test]
async fn a_line_has_blanks_at_its_end() {
    let old = "        if count < 1:  \n            raise";
    insta::assert_snapshot!(cart(SPEC, old, "x").await, @"Tool error (edit_file): old_string does not occur in src/cart.py; with other blanks it does, at line 10. Give them as the file has them: in line 10, column 22, old_string has 2 spaces, the file none");
    let old = "        if count < 1:  \n";
    insta::assert_snapshot!(cart(GEMINI_CLI, old, "        if count < 2:\n").await, @"
    Successfully modified file: src/cart.py (1 replacements).
    Note: old_string matched only ignoring trailing blanks (line 10, column 22: old_string has 2 spaces, the file none); check that the result is as you want it
    ");
}

#[tokio::test]
async fn a_letter_is_upper_case() {
    insta::assert_snapshot!(cart(LOCAL, "class cart:", "class Basket:").await, @"
    Tool error (edit_file): old_string does not occur in src/cart.py
    first difference at line 4:
      expected: `class cart:`
      found:    `class Cart:`
      only upper and lower case differ
    nearest places:
      line 4: `class Cart:`
    ");
}

#[tokio::test]
async fn the_number_of_replacements_is_another() {
    insta::assert_snapshot!(cart(GEMINI_CLI, "price * count", "price").await, @"Tool error (replace): old_string occurs 2 times in src/cart.py, at lines 17, 23, and one occurrence was expected. Add neighbouring lines to make it unique, or set expected_replacements to 2 to replace every one");
    let call = |expected: usize| {
        let arguments = json!({
            "file_path": "src/cart.py", "instruction": "Rename it.", "old_string": "self.discount",
            "new_string": "self.rebate", "expected_replacements": expected,
        });
        Call::new("edit_file", arguments)
    };
    insta::assert_snapshot!(answer(GEMINI, call(3)).await, @"Tool error (edit_file): old_string occurs once in src/cart.py, at line 7; expected_replacements is 3");
}

#[tokio::test]
async fn the_arguments_have_other_names() {
    let arguments = json!({"path": "src/cart.py", "old_text": "total = 0", "new_text": "total = 1"});
    insta::assert_snapshot!(answer(CLAUDE_CODE, Call::new("Edit", arguments)).await, @"Tool error (Edit): old_string occurs 2 times in src/cart.py, at lines 15, 21. Add neighbouring lines to make it unique, or set replace_all to replace every one");
    let arguments = json!({"file_path": "src/cart.py", "edits": [{"old_string": "a", "new_string": "b"}]});
    insta::assert_snapshot!(answer(SPEC, Call::new("edit_file", arguments)).await, @"
    Invalid arguments for tool: edit_file
    - `edits`: no such argument
    - `old_string`: required, but missing
    - `new_string`: required, but missing
    ");
}

#[tokio::test]
async fn an_argument_is_missing() {
    let arguments = json!({"file_path": "src/cart.py", "old_string": "        self.discount = 0\n"});
    insta::assert_snapshot!(answer(GEMINI_CLI, Call::new("replace", arguments)).await, @"
    Invalid arguments for tool: replace
    - `instruction`: required, but missing
    - `new_string`: required, but missing
    ");
}

#[tokio::test]
async fn the_change_was_made_before() {
    let first = LOCAL.edit("src/cart.py", "self.discount = 0", "self.rebate = 0");
    let answer = last_answer(LOCAL, &project(), [first.clone(), first], false).await;
    insta::assert_snapshot!(answer, @"
    Tool error (edit_file): old_string does not occur in src/cart.py, but new_string does, at line 7: already applied?
    first difference at line 7:
      expected: `self.discount = 0`
      found:    `        self.rebate = 0`
    nearest places:
      line 7: `        self.rebate = 0`
    ");
}

#[tokio::test]
async fn the_file_was_not_read() {
    let edit = CLAUDE_CODE.edit("src/cart.py", "self.discount = 0", "self.rebate = 0");
    insta::assert_snapshot!(last_answer(CLAUDE_CODE, &project(), [edit], true).await, @"The call of Edit was denied: DIR/src/cart.py has not been read in this session; read it first");
    let write = SPEC.write("src/cart.py", CART);
    insta::assert_snapshot!(last_answer(SPEC, &project(), [write], true).await, @"The call of write_file was denied: DIR/src/cart.py has not been read in this session; read it first");
}

#[tokio::test]
async fn the_file_has_changed_since_it_was_read() {
    let calls = [
        Call::new("read_file", json!({"file_path": "src/cart.py"})),
        GEMINI_CLI.run("sed -i 's/discount/rebate/' src/cart.py"),
        GEMINI_CLI.edit("src/cart.py", "self.rebate = 0", "self.rebate = 5"),
    ];
    insta::assert_snapshot!(last_answer(GEMINI_CLI, &project(), calls, true).await, @"The call of replace was denied: DIR/src/cart.py has changed on disk since it was read; read it again first");
}
