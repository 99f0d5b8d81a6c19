//! A patch and files, both of any bytes: plans are consistent and can be undone.
//!
//! The input is the patch, then the files, each preceded by a [`SEPARATOR`]: a path, a line feed and the content.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};

use libfuzzer_sys::fuzz_target;
use pintle_patch::{ApplyError, ApplyOptions, Change, ChangeKind, Patch, Plan, parse, plan};

type Files = BTreeMap<String, Vec<u8>>;

/// ASCII record separator.
const SEPARATOR: u8 = 0x1E;

fuzz_target!(|data: &[u8]| {
    let mut parts = data.split(|&byte| byte == SEPARATOR);
    let text = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let Ok(patch) = parse(&text) else { return };
    let files: Files = parts.map(file).collect();
    for options in [ApplyOptions::default(), ApplyOptions::reference()] {
        match plan(&patch, &files, &options) {
            Ok(planned) => check_plan(&planned, &patch, &files, &options),
            Err(error) => check_error(&error, &patch, &files, &options),
        }
    }
});

fn file(part: &[u8]) -> (String, Vec<u8>) {
    let end = part.iter().position(|&byte| byte == b'\n').unwrap_or(part.len());
    let content = part.get(end + 1..).unwrap_or_default();
    (String::from_utf8_lossy(&part[..end]).into_owned(), content.to_vec())
}

fn check_plan(planned: &Plan, patch: &Patch, files: &Files, options: &ApplyOptions) {
    let mut after = files.clone();
    planned.apply_to(&mut after);
    check_changes(planned, patch, files, &after);

    let mut restored = after.clone();
    planned.inverse().apply_to(&mut restored);
    assert_eq!(&restored, files, "the inverse does not restore the files");
    assert_eq!(planned.inverse().inverse().changes, planned.changes);

    assert_eq!(planned.summary().lines().count(), planned.changes.len());
    let _any_text = planned.unified_diff();

    let rendered = parse(&patch.to_string()).expect("a rendered patch parses");
    let again = plan(&rendered, files, options).expect("a rendered patch applies as the patch does");
    assert_eq!(again.changes, planned.changes, "the rendered patch does something else");
    // Planning the patch again may fail, but must not panic.
    let _any_end = plan(patch, &after, options);
}

/// Checks that each change holds the contents at its path before and after, and that nothing else changes.
fn check_changes(planned: &Plan, patch: &Patch, files: &Files, after: &Files) {
    let named: BTreeSet<&str> = patch.paths().into_iter().collect();
    let mut changed = BTreeSet::new();
    for Change { path, old, new, kind, .. } in &planned.changes {
        let (before, now) = (files.get(path), after.get(path));
        assert_eq!(new.as_ref(), now, "{path}");
        assert!(named.contains(path.as_str()) && changed.insert(path), "{path}");
        match kind {
            ChangeKind::Added => assert!(before.is_none() && old.is_none() && now.is_some(), "{path}"),
            ChangeKind::Deleted => {
                assert!(before.is_some() && old.as_ref() == before && now.is_none(), "{path}")
            }
            ChangeKind::Modified => {
                assert!(
                    before.is_some() && old.as_ref() == before && now.is_some() && now != before,
                    "{path}"
                );
            }
            ChangeKind::Renamed { from } => {
                assert!(before.is_none() && now.is_some(), "{path}");
                assert!(files.contains_key(from) && old.as_ref() == files.get(from), "{from}");
                assert!(!after.contains_key(from) && named.contains(from.as_str()), "{from}");
                assert!(changed.insert(from), "{from}");
            }
        }
    }
    for path in files.keys().chain(after.keys()).filter(|path| !changed.contains(path)) {
        assert_eq!(files.get(path), after.get(path), "{path} changes without a change in the plan");
    }
}

/// Checks that errors are deterministic, short, and name a line of the patch.
fn check_error(error: &ApplyError, patch: &Patch, files: &Files, options: &ApplyOptions) {
    assert_eq!(plan(patch, files, options).as_ref(), Err(error), "the error is not deterministic");
    let message = error.to_string();
    assert!(message.chars().count() < 4_000, "{message}");
    assert!(error.line > 0, "{message}");
}
