//! Truncation of a long output for the model.

use pintle_env::Output;
use pintle_tools::{TruncationRule, truncate_to};

/// Truncates two megabytes by the rule for commands.
pub(crate) fn long_output() {
    let output = Output::from("a line of what a command printed\n".repeat(64_000));
    let whole = output.len();
    let cut = truncate_to(&output, TruncationRule::of_kind("shell"));
    assert!(u64::try_from(cut.len()).is_ok_and(|cut| cut < whole));
}
