//! Patches: `apply_patch`, as JSON and as free text.

use pintle_testkit::Call;

use super::{CODEX, OPENAI, answer, last_answer, project};
use crate::kit::Kit;

/// The hunks of an update of the cart.
async fn cart(kit: Kit, hunks: &str) -> String {
    patch(kit, &format!("*** Update File: src/cart.py\n{hunks}")).await
}

/// The operations of a patch.
async fn patch(kit: Kit, body: &str) -> String {
    text(kit, &format!("*** Begin Patch\n{body}\n*** End Patch\n")).await
}

async fn text(kit: Kit, text: &str) -> String {
    let answer = answer(kit, kit.patch(text)).await;
    // The time that it took is of no interest.
    answer.replace("Wall time: 0.1 seconds", "Wall time: 0 seconds")
}

#[tokio::test]
async fn the_context_is_from_an_older_state_of_the_file() {
    let hunks = "@@\n     def total(self):\n         total = 0\n-        for item in self.items:\n+        for name, price, count in self.lines:";
    insta::assert_snapshot!(cart(OPENAI, hunks).await, @"");
}

#[tokio::test]
async fn the_context_has_a_twin() {
    let hunks = "@@\n         for name, price, count in self.items:\n-            total += price * count\n+            total += price";
    insta::assert_snapshot!(cart(CODEX, hunks).await, @"");
    let hunks = "@@\n-for name, price, count in self.items:\n+for name, price, count in self.lines:";
    insta::assert_snapshot!(cart(OPENAI, hunks).await, @"");
}

#[tokio::test]
async fn the_hint_is_not_in_the_file() {
    let hunks = "@@ def totals(self):\n-        return total\n+        return round(total, 2)";
    insta::assert_snapshot!(cart(OPENAI, hunks).await, @"");
}

#[tokio::test]
async fn the_indentation_is_of_blanks_where_the_file_has_tabs() {
    let hunks = "*** Update File: src/server.go\n@@\n-    for i := 0; i < 3; i++ {\n+    for i := range 3 {";
    insta::assert_snapshot!(patch(CODEX, hunks).await, @"");
    let hunks = "*** Update File: src/server.go\n@@\n-\tport    = 8080\n+\tport    = 9090";
    insta::assert_snapshot!(patch(OPENAI, hunks).await, @"");
}

#[tokio::test]
async fn line_numbers_were_copied() {
    let hunks = "@@\n 14 |     def total(self):\n-15 |         total = 0\n+15 |         total = 1";
    insta::assert_snapshot!(cart(OPENAI, hunks).await, @"");
}

#[tokio::test]
async fn an_ellipsis_stands_for_lines() {
    let hunks = "@@\n     def add(self, name, price, count=1):\n         ...\n-        self.items.append((name, price, count))\n+        self.items.append((name, price))";
    insta::assert_snapshot!(cart(CODEX, hunks).await, @"");
}

#[tokio::test]
async fn additions_have_no_context() {
    insta::assert_snapshot!(cart(CODEX, "@@\n+    def clear(self):\n+        self.items = []").await, @"");
}

#[tokio::test]
async fn the_lines_have_no_prefix() {
    let hunks = "@@\ndef total(self):\n-        total = 0\n+        total = 1";
    insta::assert_snapshot!(cart(OPENAI, hunks).await, @"");
}

#[tokio::test]
async fn the_header_is_another() {
    insta::assert_snapshot!(patch(CODEX, "*** Update: src/cart.py\n@@\n-a\n+b").await, @"");
    insta::assert_snapshot!(patch(OPENAI, "*** Create File: src/a.py\n+x").await, @"");
}

#[tokio::test]
async fn the_end_is_missing_and_prose_follows() {
    let patch = "*** Begin Patch\n*** Update File: src/cart.py\n@@\n-        self.discount = 0\n+        self.rebate = 0\n\nThis renames the attribute.";
    insta::assert_snapshot!(text(OPENAI, patch).await, @"");
}

#[tokio::test]
async fn it_is_a_unified_diff() {
    let diff = "--- a/src/cart.py\n+++ b/src/cart.py\n@@ -7,1 +7,1 @@\n-        self.discount = 0\n+        self.rebate = 0\n";
    insta::assert_snapshot!(text(OPENAI, diff).await, @"");
    insta::assert_snapshot!(text(CODEX, &format!("*** Begin Patch\n{diff}*** End Patch")).await, @"");
}

#[tokio::test]
async fn it_is_a_command_for_the_shell() {
    let patch = "*** Begin Patch\n*** Update File: cart.py\n@@\n-        self.discount = 0\n+        self.rebate = 0\n*** End Patch\n";
    let command = format!("cd src && apply_patch <<'EOF'\n{patch}EOF\n");
    insta::assert_snapshot!(text(CODEX, &command).await, @"");
    let run = answer(OPENAI, OPENAI.run(&command)).await;
    insta::assert_snapshot!(run.split("Duration").next().unwrap(), @"");
}

#[tokio::test]
async fn it_is_wrapped_in_json() {
    let wrapped = r#"{"patch": "*** Begin Patch\n*** Delete File: src/cart.py\n*** End Patch"}"#;
    insta::assert_snapshot!(text(CODEX, wrapped).await, @"");
}

#[tokio::test]
async fn an_added_file_is_there_already() {
    insta::assert_snapshot!(patch(OPENAI, "*** Add File: src/cart.py\n+class Cart:\n+    pass").await, @"");
}

#[tokio::test]
async fn the_lines_of_an_added_file_have_no_plus() {
    insta::assert_snapshot!(patch(CODEX, "*** Add File: src/tax.py\nRATE = 25\n").await, @"");
}

#[tokio::test]
async fn two_hunks_overlap() {
    let hunks = "@@\n-        self.discount = 0\n+        self.rebate = 0\n@@\n         self.items = []\n-        self.discount = 0\n+        self.discount = 1";
    insta::assert_snapshot!(cart(CODEX, hunks).await, @"");
}

#[tokio::test]
async fn the_patch_was_applied_before() {
    let hunk = "*** Begin Patch\n*** Update File: src/cart.py\n@@\n-        self.discount = 0\n+        self.rebate = 0\n*** End Patch";
    let call = OPENAI.patch(hunk);
    insta::assert_snapshot!(last_answer(OPENAI, &project(), [call.clone(), call], false).await, @"");
}

#[tokio::test]
async fn one_of_the_files_was_not_read() {
    let patch = "*** Begin Patch\n*** Update File: src/cart.py\n@@\n-        self.discount = 0\n+        self.rebate = 0\n*** Update File: settings.ini\n@@\n-port = 8080\n+port = 9090\n*** End Patch";
    let read = Call::new("read_file", serde_json::json!({"file_path": "src/cart.py"}));
    insta::assert_snapshot!(last_answer(OPENAI, &project(), [read, OPENAI.patch(patch)], true).await, @"");
}
