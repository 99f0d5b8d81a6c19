//! Comparison of the settings that form flags of a command line with the settings that form layers.

mod case;
mod projection;
mod random;

use std::collections::BTreeMap;

use pintle_host::{Origin, Resolved};
use serde_json::Value as Json;

use self::case::{Case, Outcome};

/// An intended difference between the two ways.
struct Difference {
    /// Name in the fixture.
    name: &'static str,
    reason: &'static str,
    /// Returns whether the difference at a path of a case is this one.
    is_it: fn(&str, &Resolved, &Case) -> bool,
}

/// All intended differences between flags, files and variables. There is one more between requests to a server: a client may
/// have its own grant beside the grant of the server if it is narrower.
const INTENDED: &[Difference] = &[
    Difference {
        name: "remembered",
        reason: "a flag of a session of an older version is bounded by the current configuration",
        is_it: |path, resolved, _| {
            is_bounded(path, resolved, |origin| matches!(origin, Origin::Remembered(_)))
        },
    },
    Difference {
        name: "url",
        reason: "a URL that is kept has no user, password and query",
        is_it: |path, _, case| {
            let mut urls = case.remembered.get("base-url").into_iter().flatten();
            path == "model.base_url" && urls.any(|url| url.contains(['@', '?']))
        },
    },
];

fn is_bounded(path: &str, resolved: &Resolved, is_origin: impl Fn(&Origin) -> bool) -> bool {
    resolved.bounded.iter().any(|bounded| bounded.path == path && is_origin(&bounded.origin))
}

/// Compares the outcomes of both ways. Returns the settings of the layers, and the names of the intended differences by path.
fn compare(
    case: &Case,
    flags: Outcome,
    layers: Result<(Resolved, BTreeMap<&'static str, Json>), String>,
) -> (Json, BTreeMap<String, &'static str>) {
    let (old, resolved, run) = match (flags, layers) {
        (Ok(old), Ok((resolved, run))) => (old, resolved, run),
        (old, new) => panic!("{case:?}: {old:?} {new:?}"),
    };
    let new = projection::of_spec(&resolved.spec);
    assert_eq!(run, new, "{case:?}");
    let mut differences = BTreeMap::new();
    for (path, new) in &new {
        let old = old.get(path).unwrap_or_else(|| panic!("{path} is not compared"));
        if old == new {
            continue;
        }
        let found = INTENDED.iter().find(|difference| (difference.is_it)(path, &resolved, case));
        let found = found.unwrap_or_else(|| panic!("{case:?}: {path}: {old} became {new}"));
        assert!(!found.reason.is_empty());
        differences.insert((*path).to_owned(), found.name);
    }
    assert_eq!(old.len(), new.len(), "{case:?}");
    let defaults = projection::of_spec(&pintle_host::SessionSpec::default());
    let changed = new.into_iter().filter(|(path, value)| defaults.get(path) != Some(value));
    (changed.map(|(path, value)| (path.to_owned(), value)).collect(), differences)
}

#[test]
fn cases_have_their_outcomes() {
    let mut seen: Vec<&str> = Vec::new();
    for line in include_str!("tests/outcomes.jsonl").lines() {
        let case: Case = serde_json::from_str(line).unwrap();
        if !case.is_supported() {
            continue;
        }
        let line = case.line();
        let (changed, differences) =
            compare(&case, case.as_flags(&line, &case.old_line(&line)), case.as_layers(&line));
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

#[test]
fn random_cases_have_the_same_outcome_both_ways() {
    let mut random = random::Random::new();
    for _ in 0..200 {
        // The flags are parsed once for ten configurations, because building the parser takes the most time.
        let flags = random.flags();
        let (line, mut old) = (flags.line(), None);
        for _ in 0..10 {
            let case = random.with_configuration(&flags);
            let old = old.get_or_insert_with(|| flags.old_line(&line));
            compare(&case, case.as_flags(&line, old), case.as_layers(&line));
        }
    }
}
