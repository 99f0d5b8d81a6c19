//! A command line without a subcommand starts a conversation.

use std::ffi::OsString;

use super::definition;

/// Subcommand of a conversation.
const CHAT: &str = "chat";

/// Flags of the command as a whole.
const GLOBAL: [&str; 4] = ["-h", "--help", "-V", "--version"];

/// Returns the arguments with the subcommand of a conversation, if they name no other. A single word that resembles the
/// name of a subcommand is treated as a typing error.
pub(super) fn insert_chat(mut args: Vec<OsString>) -> Vec<OsString> {
    if begins_conversation(args.get(1)) {
        args.insert(args.len().min(1), CHAT.into());
    }
    args
}

fn begins_conversation(first: Option<&OsString>) -> bool {
    let Some(first) = first else { return true };
    let Some(first) = first.to_str() else { return true };
    if first.starts_with('-') {
        return !GLOBAL.contains(&first);
    }
    let mut names = definition::subcommand_names().chain(["help"]);
    let is_close = |name: &str| name == first || strsim::levenshtein(name, first) <= 2;
    !names.any(is_close)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_no_subcommand_begins_a_conversation() {
        let cases = [
            ("", true),
            ("--model x", true),
            ("-c", true),
            ("fix-it", true),
            ("--help", false),
            ("-V", false),
            ("run", false),
            ("help", false),
            ("sesions", false),
        ];
        for (line, expected) in cases {
            let args: Vec<OsString> =
                ["pintle"].into_iter().chain(line.split_whitespace()).map(OsString::from).collect();
            let is_chat = insert_chat(args).get(1).is_some_and(|first| first == CHAT);
            assert_eq!(is_chat, expected, "{line:?}");
        }
        let prompt = insert_chat(vec!["pintle".into(), "fix the tests".into()]);
        assert_eq!(prompt, ["pintle", "chat", "fix the tests"]);
    }
}
