//! Patches: `apply_patch`, as JSON and as free-form text.

use pintle_testkit::Call;

use super::{CODEX, OPENAI, answer, last_answer, project};
use crate::test_profile::TestProfile;

/// The hunks of an update of the cart.
async fn cart(profile_under_test: TestProfile, hunks: &str) -> String {
    patch(profile_under_test, &format!("*** Update File: src/cart.py\n{hunks}")).await
}

/// The operations of a patch.
async fn patch(profile_under_test: TestProfile, body: &str) -> String {
    text(profile_under_test, &format!("*** Begin Patch\n{body}\n*** End Patch\n")).await
}

async fn text(profile_under_test: TestProfile, text: &str) -> String {
    let answer = answer(profile_under_test, profile_under_test.patch(text)).await;
    // The duration differs each time.
    let timeless =
        |line: &'_ str| if line.starts_with("Wall time: ") { "Wall time: T" } else { line }.to_owned();
    answer.lines().map(timeless).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn the_context_is_from_an_older_state_of_the_file() {
    let hunks = "@@\n     def total(self):\n         total = 0\n-        for item in self.items:\n+        for name, price, count in self.lines:";
    insta::assert_snapshot!(cart(OPENAI, hunks).await, @"
    Tool error (apply_patch): src/cart.py, hunk 1 (patch line 3): the old lines are not in the file
    first difference at line 16:
      expected: `        for item in self.items:`
      found:    `        for name, price, count in self.items:`
    nearest places:
      line 14: `    def total(self):`
      line 20: `    def total_with_tax(self, rate):`
    ");
}

#[tokio::test]
async fn the_context_has_a_twin() {
    let hunks = "@@\n         for name, price, count in self.items:\n-            total += price * count\n+            total += price";
    insta::assert_snapshot!(cart(CODEX, hunks).await, @"
    Exit code: 0
    Wall time: T
    Output:
    Success. Updated the following files:
    M src/cart.py
    Note: src/cart.py, hunk 1, patch line 3: both line 16 and line 22 fit; the first was taken
    ");
    let hunks = "@@\n-for name, price, count in self.items:\n+for name, price, count in self.lines:";
    insta::assert_snapshot!(cart(OPENAI, hunks).await, @"
    Tool error (apply_patch): src/cart.py, hunk 1 (patch line 3): the old lines match several places ignoring leading and trailing blanks; add context lines
    they match:
      line 16: `        for name, price, count in self.items:`
      line 22: `        for name, price, count in self.items:`
    ");
}

#[tokio::test]
async fn the_hint_is_not_in_the_file() {
    let hunks = "@@ def totals(self):\n-        return total\n+        return round(total, 2)";
    insta::assert_snapshot!(cart(OPENAI, hunks).await, @"
    Tool error (apply_patch): src/cart.py, hunk 1 (patch line 3): no line of the file matches the hint `def totals(self):`; the old lines are at line 18: correct or drop the hint
    most like it:
      line 14: `    def total(self):`
      line 5: `    def __init__(self):`
    ");
}

#[tokio::test]
async fn the_indentation_is_of_blanks_where_the_file_has_tabs() {
    let hunks = "*** Update File: src/server.go\n@@\n-    for i := 0; i < 3; i++ {\n+    for i := range 3 {";
    insta::assert_snapshot!(patch(CODEX, hunks).await, @"
    Exit code: 0
    Wall time: T
    Output:
    Success. Updated the following files:
    M src/server.go
    Note: src/server.go, hunk 1, patch line 3: the old lines match at line 11 only ignoring leading and trailing blanks: at line 11, column 1, expected 4 spaces, found 1 tab
    Note: src/server.go, hunk 1, patch line 3: the new lines at line 11 were indented as the file is: 1 tab in place of 4 spaces
    ");
    let hunks = "*** Update File: src/server.go\n@@\n-\tport    = 8080\n+\tport    = 9090";
    insta::assert_snapshot!(patch(OPENAI, hunks).await, @"
    Tool error (apply_patch): src/server.go, hunk 1 (patch line 3): the old lines are not in the file
    first difference at line 6:
      expected: `	port    = 8080`
      found:    `	port	= 8080`
      only blanks differ: at column 6 expected 4 spaces, found 1 tab
    nearest places:
      line 6: `	port	= 8080`
    ");
}

#[tokio::test]
async fn line_numbers_were_copied() {
    let hunks = "@@\n 14 |     def total(self):\n-15 |         total = 0\n+15 |         total = 1";
    insta::assert_snapshot!(cart(OPENAI, hunks).await, @"
    Tool error (apply_patch): src/cart.py, hunk 1 (patch line 3): the old lines are not in the file
    first difference at line 14:
      expected: `14 |     def total(self):`
      found:    `    def total(self):`
      line numbers are not part of the file: quote its lines without them
    nearest places:
      line 14: `    def total(self):`
      line 5: `    def __init__(self):`
    ");
}

#[tokio::test]
async fn an_ellipsis_stands_for_lines() {
    let hunks = "@@\n     def add(self, name, price, count=1):\n         ...\n-        self.items.append((name, price, count))\n+        self.items.append((name, price))";
    insta::assert_snapshot!(cart(CODEX, hunks).await, @"
    Tool error (apply_patch): apply_patch verification failed: src/cart.py, hunk 1 (patch line 3): the old lines are not in the file
    first difference at line 10:
      expected: `        ...`
      found:    `        if count < 1:`
      an ellipsis is not expanded: quote every line as it is in the file
    nearest places:
      line 9: `    def add(self, name, price, count=1):`
      line 10: `        if count < 1:`
    ");
}

#[tokio::test]
async fn additions_have_no_context() {
    insta::assert_snapshot!(cart(CODEX, "@@\n+    def clear(self):\n+        self.items = []").await, @"
    Exit code: 0
    Wall time: T
    Output:
    Success. Updated the following files:
    M src/cart.py
    Note: src/cart.py, hunk 1, patch line 3: nothing says where the new lines go; they were added at the end, below line 24
    ");
}

#[tokio::test]
async fn the_lines_have_no_prefix() {
    let hunks = "@@\ndef total(self):\n-        total = 0\n+        total = 1";
    insta::assert_snapshot!(cart(OPENAI, hunks).await, @"Tool error (apply_patch): patch line 4: expected a line of a hunk to start with ` ` (unchanged), `-` (removed) or `+` (added), `@@` or the next `*** ` marker; found `def total(self):`");
}

#[tokio::test]
async fn the_header_is_another() {
    insta::assert_snapshot!(patch(CODEX, "*** Update: src/cart.py\n@@\n-a\n+b").await, @"Tool error (apply_patch): apply_patch verification failed: patch line 2: expected `*** Add File: `, `*** Delete File: `, `*** Update File: ` or `*** End Patch`; found `*** Update: src/cart.py`");
    insta::assert_snapshot!(patch(OPENAI, "*** Create File: src/a.py\n+x").await, @"Tool error (apply_patch): patch line 2: expected `*** Add File: `, `*** Delete File: `, `*** Update File: ` or `*** End Patch`; found `*** Create File: src/a.py`");
}

#[tokio::test]
async fn the_end_is_missing_and_prose_follows() {
    let patch = "*** Begin Patch\n*** Update File: src/cart.py\n@@\n-        self.discount = 0\n+        self.rebate = 0\n\nThis renames the attribute.";
    insta::assert_snapshot!(text(OPENAI, patch).await, @"Tool error (apply_patch): patch line 7: expected a line of a hunk to start with ` ` (unchanged), `-` (removed) or `+` (added), `@@` or the next `*** ` marker; found `This renames the attribute.`");
}

#[tokio::test]
async fn it_is_a_unified_diff() {
    let diff = "--- a/src/cart.py\n+++ b/src/cart.py\n@@ -7,1 +7,1 @@\n-        self.discount = 0\n+        self.rebate = 0\n";
    insta::assert_snapshot!(text(OPENAI, diff).await, @"Tool error (apply_patch): patch line 1: expected `*** Begin Patch` alone on the first line; found `--- a/src/cart.py`; write `*** Update File: PATH` instead of the `---` and `+++` lines of a unified diff");
    insta::assert_snapshot!(text(CODEX, &format!("*** Begin Patch\n{diff}*** End Patch")).await, @"Tool error (apply_patch): apply_patch verification failed: patch line 2: expected `*** Add File: `, `*** Delete File: `, `*** Update File: ` or `*** End Patch`; found `--- a/src/cart.py`; write `*** Update File: PATH` instead of the `---` and `+++` lines of a unified diff");
}

#[tokio::test]
async fn it_is_a_command_for_the_shell() {
    let patch = "*** Begin Patch\n*** Update File: cart.py\n@@\n-        self.discount = 0\n+        self.rebate = 0\n*** End Patch\n";
    let command = format!("cd src && apply_patch <<'EOF'\n{patch}EOF\n");
    insta::assert_snapshot!(text(CODEX, &command).await, @"Tool error (apply_patch): apply_patch verification failed: patch line 1: the patch is wrapped in a shell command; send the text from `*** Begin Patch` to `*** End Patch` alone; found `cd src && apply_patch <<'EOF'`");
    let run = answer(OPENAI, OPENAI.run(&command)).await;
    insta::assert_snapshot!(run.split("Duration").next().unwrap(), @"
    /bin/bash: line 1: apply_patch: command not found
    [apply_patch is no program here. If you have a tool of that name, call it with the text from `*** Begin Patch` to `*** End Patch`; else edit with the tools that you have.]
    Exit code: 127
    ");
    let run = answer(CODEX, CODEX.run(&command)).await;
    insta::assert_snapshot!(run.split_once("Original token count").unwrap().1, @"
    : 13
    Note: apply_patch is no program here. If you have a tool of that name, call it with the text from `*** Begin Patch` to `*** End Patch`; else edit with the tools that you have.
    Output:
    /bin/bash: line 1: apply_patch: command not found
    ");
}

#[tokio::test]
async fn it_is_wrapped_in_json() {
    let wrapped = r#"{"patch": "*** Begin Patch\n*** Delete File: src/cart.py\n*** End Patch"}"#;
    insta::assert_snapshot!(text(CODEX, wrapped).await, @r#"Tool error (apply_patch): apply_patch verification failed: patch line 1: the patch is wrapped in a JSON object; send the text from `*** Begin Patch` to `*** End Patch` alone; found `{"patch": "*** Begin Patch\n*** Delete File: src/cart.py\n*** End Patch"}`"#);
}

#[tokio::test]
async fn an_added_file_is_there_already() {
    insta::assert_snapshot!(patch(OPENAI, "*** Add File: src/cart.py\n+class Cart:\n+    pass").await, @"Tool error (apply_patch): src/cart.py (patch line 2): cannot add: the file exists; update it, or delete it first in the same patch to replace it");
}

#[tokio::test]
async fn the_lines_of_an_added_file_have_no_plus() {
    insta::assert_snapshot!(patch(CODEX, "*** Add File: src/tax.py\nRATE = 25\n").await, @"Tool error (apply_patch): apply_patch verification failed: patch line 3: expected `+` before every line of an added file, or the next `*** ` marker; found `RATE = 25`");
}

#[tokio::test]
async fn two_hunks_overlap() {
    let hunks = "@@\n-        self.discount = 0\n+        self.rebate = 0\n@@\n         self.items = []\n-        self.discount = 0\n+        self.discount = 1";
    insta::assert_snapshot!(cart(CODEX, hunks).await, @"Tool error (apply_patch): apply_patch verification failed: src/cart.py, hunk 2 (patch line 6): the old lines are not in the file where they must be: they are at line 6, above the end of the previous hunk; merge hunks that overlap, and out of file order each hunk must match in one place only");
}

#[tokio::test]
async fn the_patch_was_applied_before() {
    let hunk = "*** Begin Patch\n*** Update File: src/cart.py\n@@\n-        self.discount = 0\n+        self.rebate = 0\n*** End Patch";
    let call = OPENAI.patch(hunk);
    insta::assert_snapshot!(last_answer(OPENAI, &project(), [call.clone(), call], false).await, @"Tool error (apply_patch): src/cart.py, hunk 1 (patch line 3): already applied: the old lines are not in the file, the new ones are, at line 7");
}

#[tokio::test]
async fn one_of_the_files_was_not_read() {
    let patch = "*** Begin Patch\n*** Update File: src/cart.py\n@@\n-        self.discount = 0\n+        self.rebate = 0\n*** Update File: settings.ini\n@@\n-port = 8080\n+port = 9090\n*** End Patch";
    let read = Call::new("read_file", serde_json::json!({"file_path": "src/cart.py"}));
    insta::assert_snapshot!(last_answer(OPENAI, &project(), [read, OPENAI.patch(patch)], true).await, @"The call of apply_patch was denied: DIR/settings.ini has not been read in this session; read it first");
}
