//! Files that do not exist at the path of the call.

use super::{CLAUDE_CODE, CODEX, GEMINI, GEMINI_CLI, LOCAL, OPENAI, SPEC, answer};
use crate::test_profile::TestProfile;

async fn edit(profile_under_test: TestProfile, path: &str) -> String {
    answer(profile_under_test, profile_under_test.edit(path, "self.discount = 0", "self.rebate = 0")).await
}

async fn update(profile_under_test: TestProfile, path: &str) -> String {
    let patch = format!("*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch");
    answer(profile_under_test, profile_under_test.patch(&patch)).await
}

#[tokio::test]
async fn the_name_is_misspelt() {
    insta::assert_snapshot!(edit(CLAUDE_CODE, "src/carts.py").await, @"Tool error (Edit): DIR/src/carts.py does not exist. Did you mean src/cart.py?");
    insta::assert_snapshot!(update(OPENAI, "src/carts.py").await, @"Tool error (apply_patch): src/carts.py (patch line 2): cannot update: the file does not exist. Did you mean src/cart.py?");
}

#[tokio::test]
async fn the_path_is_a_directory() {
    insta::assert_snapshot!(edit(SPEC, "src").await, @"Tool error (edit_file): DIR/src is a directory, expected a file");
    insta::assert_snapshot!(update(CODEX, "src").await, @"Tool error (apply_patch): apply_patch verification failed: DIR/src is a directory, expected a file");
}

#[tokio::test]
async fn the_path_has_the_wrong_case() {
    insta::assert_snapshot!(edit(GEMINI_CLI, "Src/Cart.py").await, @"Tool error (replace): DIR/Src/Cart.py does not exist. Did you mean src/cart.py?");
    insta::assert_snapshot!(update(CODEX, "Src/Cart.py").await, @"Tool error (apply_patch): apply_patch verification failed: Src/Cart.py (patch line 2): cannot update: the file does not exist. Did you mean src/cart.py?");
}

#[tokio::test]
async fn the_path_begins_at_the_root() {
    insta::assert_snapshot!(edit(CLAUDE_CODE, "/src/cart.py").await, @"Tool error (Edit): /src/cart.py does not exist. Did you mean src/cart.py?");
    insta::assert_snapshot!(update(OPENAI, "/src/cart.py").await, @"Tool error (apply_patch): /src/cart.py (patch line 2): cannot update: the file does not exist. Did you mean src/cart.py?");
}

#[tokio::test]
async fn the_path_begins_above_the_working_directory() {
    insta::assert_snapshot!(edit(LOCAL, "shop/src/cart.py").await, @"Tool error (edit_file): DIR/shop/src/cart.py does not exist. Did you mean src/cart.py?");
    insta::assert_snapshot!(update(CODEX, "a/src/cart.py").await, @"Tool error (apply_patch): apply_patch verification failed: a/src/cart.py (patch line 2): cannot update: the file does not exist. Did you mean src/cart.py?");
}

#[tokio::test]
async fn the_directory_was_left_out() {
    insta::assert_snapshot!(edit(GEMINI, "cart.py").await, @"Tool error (edit_file): DIR/cart.py does not exist");
}
