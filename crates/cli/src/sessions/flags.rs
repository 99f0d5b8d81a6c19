//! Flags of a run that its session remembers: environment, model and tools, but no keys.

use std::collections::BTreeSet;

use pintle_store::Summary;

use crate::args::{Command, Flags, RunArgs};
use crate::command_line;
use crate::failure::{Failure, OrFailure as _};
use crate::model::Model;

/// Property of a summary with the flags as a JSON object.
const FLAGS: &str = "flags";

/// Flags that are forgotten together when the first one of them is given anew.
const GROUPS: &[&[&str]] = &[
    &["provider", "model", "base-url", "script", "dialect", "profile"],
    &["profile", "provider", "model", "base-url", "script", "dialect"],
    &["env", "dir"],
];

/// Adds the flags of a new session, and the model that was chosen without them.
pub(super) fn describe(summary: Summary, args: &RunArgs, model: &Model) -> Summary {
    let mut flags = args.session.given.clone();
    flags.remove("dir");
    // The record has it as it was.
    flags.remove("grant");
    if !flags.contains_key("profile") && !flags.contains_key("script") {
        let route = &model.route;
        let chosen = [
            ("provider", Some(route.provider.name().to_owned())),
            ("model", Some(route.model.clone())),
            ("base-url", route.base_url.as_ref().map(|url| url.redacted())),
        ];
        for (name, value) in chosen {
            if let Some(value) = value {
                flags.insert(name.to_owned(), vec![value]);
            }
        }
    }
    let text = serde_json::to_string(&flags).unwrap_or_default();
    summary
        .with_property(FLAGS, text)
        .with_property("provider", model.route.provider.name())
        .with_property("model", model.route.model.as_str())
}

/// Parses the command line again, together with the flags of a session that were not given anew.
pub(super) fn apply(summary: &Summary, given: &Flags) -> Result<RunArgs, Failure> {
    let text = summary.properties.get(FLAGS).map_or("{}", String::as_str);
    let mut flags: Flags = serde_json::from_str(text).or_failed("the flags of the session cannot be read")?;
    let place = super::Place::of_summary(summary);
    if !place.directory().is_empty() {
        flags.insert("dir".to_owned(), vec![place.directory().to_owned()]);
    }
    let mut forgotten: BTreeSet<&str> = given.keys().map(String::as_str).collect();
    for group in GROUPS {
        if group.first().is_some_and(|first| given.contains_key(*first)) {
            forgotten.extend(*group);
        }
    }
    let mut words = Vec::new();
    for (name, values) in flags.iter().filter(|(name, _)| !forgotten.contains(name.as_str())) {
        if values.is_empty() {
            words.push(format!("--{name}"));
        }
        words.extend(values.iter().map(|value| format!("--{name}={value}")));
    }
    let (Command::Chat(args) | Command::Run(args)) = command_line::parse_with(words)?.command else {
        return Err(Failure::usage("a session goes on with `pintle run` or in a conversation"));
    };
    Ok(*args)
}
