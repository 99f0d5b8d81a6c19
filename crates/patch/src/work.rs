//! A counter of the work done, for tests of its growth. It compiles to nothing outside of tests.
//!
//! A unit is one access to a line of the file, one comparison of lines, or one byte that is examined. The count grows
//! like the run time, and does not depend on the machine.

#[cfg(test)]
use std::cell::Cell;

#[cfg(test)]
thread_local! {
    static UNITS: Cell<usize> = const { Cell::new(0) };
}

/// Counts units of work.
#[cfg(test)]
pub(crate) fn count(units: usize) {
    UNITS.with(|counted| counted.set(counted.get().saturating_add(units)));
}

/// Counts units of work.
#[cfg(not(test))]
pub(crate) fn count(_units: usize) {}

/// Returns the units of work that `run` needs on this thread.
#[cfg(test)]
pub(crate) fn units_of<T>(run: impl FnOnce() -> T) -> usize {
    let before = UNITS.with(Cell::get);
    let _result = std::hint::black_box(run());
    UNITS.with(Cell::get) - before
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::units_of;
    use crate::{ApplyOptions, parse, plan};

    /// A file and the hunks of an update, both proportional to a size.
    type Input = fn(usize) -> (String, String);

    const INPUTS: [(&str, Input); 5] = [
        ("every hint is a prefix of the last line only", |size| {
            (format!("{}foo\n", "bar\n".repeat(4 * size)), "@@ fo\n+y\n".repeat(size))
        }),
        ("every hint is a prefix of one very long line", |size| {
            let wide = format!("{}é{}\n", " ".repeat(20 * size), "x".repeat(20 * size));
            (format!("{wide}a\n"), "@@ é\n a\n+y\n".repeat(size))
        }),
        ("every hunk ends the file with one very long line", |size| {
            let content = format!("a\n{}é\n", " ".repeat(20 * size));
            (content, "@@\n a\n+x\n é\n*** End of File\n".repeat(size))
        }),
        ("every loose match has an exact one above, which an earlier hunk has taken", |size| {
            let lines = |indent: &str| (0..size).map(|line| format!("{indent}l{line}\n")).collect::<String>();
            let hunks =
                |new: &str| (0..size).map(|line| format!("@@\n-l{line}\n+{new}\n")).collect::<String>();
            (lines("") + &lines(" "), hunks("x") + &hunks("y"))
        }),
        ("every hunk repeats the same lines", |size| {
            ("    same\n".repeat(4 * size), "@@\n     same\n-    same\n+    other\n".repeat(size))
        }),
    ];

    /// Returns the work of planning, and whether the patch applies.
    fn work(input: Input, size: usize) -> (usize, bool) {
        let (content, hunks) = input(size);
        let patch = parse(&format!("*** Begin Patch\n*** Update File: f\n{hunks}*** End Patch\n")).unwrap();
        let files = BTreeMap::from([("f".to_owned(), content.into_bytes())]);
        let mut applies = false;
        let units = units_of(|| applies = plan(&patch, &files, &ApplyOptions::default()).is_ok());
        (units, applies)
    }

    /// Linear work, or linear with a logarithmic factor, grows by 8 to 12; quadratic work grows by 64.
    #[test]
    fn the_work_of_planning_is_not_quadratic() {
        for (name, input) in INPUTS {
            let ((small, applies), (large, _)) = (work(input, 250), work(input, 2_000));
            println!("{small:>9} {large:>9} applies: {applies} {name}");
            assert!(small > 1_000, "{name}: {small} units are too few to compare");
            assert!(large < 16 * small, "{name}: {small} units became {large}");
        }
    }
}
