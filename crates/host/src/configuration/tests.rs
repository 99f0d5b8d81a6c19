//! The settings that given settings, files and variables form.

mod case;
mod projection;
mod resolving;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value as Json;

use self::case::Case;
use super::{Configuration, Source, Value};
use crate::config_file::File;
use crate::config_file::keys::{self, Key};
use crate::layers::{Resolved, ValueOrigin};
use crate::spec::SessionSpec;

/// An intended difference from earlier versions.
struct Difference {
    /// Name in the fixture.
    name: &'static str,
    reason: &'static str,
    /// Returns whether the value at a path of a case differs for this reason.
    is_it: fn(&str, &Resolved, &Case) -> bool,
}

/// All intended differences from versions that formed flags of the values of files and variables, and parsed these.
const INTENDED: &[Difference] = &[
    Difference {
        name: "remembered",
        reason: "a flag of a session of an older version is bounded by the current configuration",
        is_it: |path, resolved, _| {
            let is_remembered = |origin: &ValueOrigin| matches!(origin, ValueOrigin::Remembered(_));
            resolved.bounded.iter().any(|bounded| bounded.path == path && is_remembered(&bounded.origin))
        },
    },
    Difference {
        name: "url",
        reason: "a URL that is kept has no user, password and query",
        is_it: |path, resolved, case| {
            let mut urls = case.remembered.get("base-url").into_iter().flatten();
            let is_remembered = matches!(resolved.origin(path), ValueOrigin::Remembered(_));
            path == "model.base_url" && is_remembered && urls.any(|url| url.contains(['@', '?']))
        },
    },
];

/// Returns the settings that are not the defaults, and the names of the intended differences by path.
fn outcome(
    case: &Case,
    resolved: &Resolved,
    received: &BTreeMap<&'static str, Json>,
) -> (Json, BTreeMap<String, &'static str>) {
    let settings = projection::of_spec(&resolved.spec);
    assert_eq!(*received, settings, "{case:?}");
    let mut differences = BTreeMap::new();
    for path in settings.keys() {
        if let Some(found) = INTENDED.iter().find(|difference| (difference.is_it)(path, resolved, case)) {
            assert!(!found.reason.is_empty());
            differences.insert((*path).to_owned(), found.name);
        }
    }
    let defaults = projection::of_spec(&SessionSpec::default());
    let changed = settings.into_iter().filter(|(path, value)| defaults.get(path) != Some(value));
    (changed.map(|(path, value)| (path.to_owned(), value)).collect(), differences)
}

#[test]
fn cases_have_their_outcomes() {
    let mut seen: Vec<&str> = Vec::new();
    for line in include_str!("tests/outcomes.jsonl").lines() {
        let case: Case = serde_json::from_str(line).unwrap();
        let (resolved, received) = case.resolve().unwrap_or_else(|problem| panic!("{case:?}: {problem}"));
        let (changed, differences) = outcome(&case, &resolved, &received);
        assert_eq!(changed, case.expected, "{}", case.about);
        let expected: BTreeMap<String, &str> =
            case.differs.iter().map(|(path, name)| (path.clone(), name.as_str())).collect();
        assert_eq!(differences, expected, "{}", case.about);
        seen.extend(differences.into_values());
    }
    for difference in INTENDED {
        assert!(seen.contains(&difference.name), "no case shows {}: {}", difference.name, difference.reason);
    }
}

fn file(name: &str, text: &str) -> File {
    let file = File::parse(name, Path::new("/c"), text);
    assert_eq!(file.problems, [], "{text}");
    file
}

/// Returns the values of the files and of a variable `KEY=VALUE` with `--profile`, as `key=value`.
fn values(user: &str, project: &str, variable: &str, profile: &str) -> String {
    let mut configuration = Configuration {
        user: file("user", user),
        project: file("project", project),
        is_project_trusted: true,
        ..Configuration::default()
    };
    if let Some((name, text)) = variable.split_once('=') {
        let key = Key::find(name).unwrap();
        let value = Value { text: text.to_owned(), source: Source::Variable(key.variable()) };
        configuration.variables.insert(key.name, value);
    }
    let settings = configuration.settings(Some(profile).filter(|profile| !profile.is_empty()));
    let value = |key: Key| settings.values.get(key.name).map(|value| format!("{}={}", key.name, value.text));
    keys::all().filter_map(value).collect::<Vec<_>>().join(" ")
}

#[test]
fn stronger_sources_win() {
    let plan = "mode = \"plan\"";
    let ask = "mode = \"ask\"";
    let profiles = "mode = \"plan\"\n[profiles.p]\nmode = \"auto\"";
    let cases = [
        [plan, "", "", "", "mode=plan"],
        [ask, plan, "", "", "mode=plan"],
        // A project does not allow more than the user.
        [plan, ask, "", "", "mode=plan"],
        [plan, ask, "mode=edit", "", "mode=edit"],
        [profiles, "", "", "", "mode=plan"],
        [profiles, "", "", "p", "mode=auto"],
        [profiles, "", "", "q", "mode=plan"],
        [profiles, ask, "", "p", "mode=ask"],
        [profiles, "", "mode=edit", "p", "mode=edit"],
        ["theme = \"dark\"", "theme = \"light\"", "", "", "theme=light"],
    ];
    for case in cases {
        let [user, project, variable, profile, expected] = case;
        assert_eq!(values(user, project, variable, profile), expected, "{case:?}");
    }
}

#[test]
fn a_provider_is_not_used_with_weaker_urls_and_models() {
    let user = "provider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://h\"\ntimeout = \"9s\"";
    let cases = [
        ["", "", "", "model=m provider=openai base_url=http://h timeout=9s"],
        ["provider = \"gemini\"", "", "", "provider=gemini timeout=9s"],
        ["model = \"n\"", "", "", "model=n provider=openai base_url=http://h timeout=9s"],
        ["", "provider=anthropic", "", "provider=anthropic timeout=9s"],
        ["", "profile=f.toml", "", "profile=f.toml timeout=9s"],
    ];
    for case in cases {
        let [project, variable, profile, expected] = case;
        let found = values(user, project, variable, profile);
        let sorted = |text: &str| {
            let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            words.sort();
            words
        };
        assert_eq!(sorted(&found), sorted(expected), "{case:?}");
    }
}

#[test]
fn the_strongest_profile_is_the_only_one() {
    let user = "profile = \"own.toml\"\n[profiles.p]\nmax_turns = 3\n";
    assert_eq!(values(user, "", "", ""), "profile=/c/own.toml");
    assert_eq!(values(user, "profile = \"p\"", "", ""), "profile=p max_turns=3");
    assert_eq!(values(user, "profile = \"p\"", "profile=x.toml", ""), "profile=x.toml");
    assert_eq!(values(user, "", "", "p"), "max_turns=3");
}
