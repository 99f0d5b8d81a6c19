//! Goals of the headline figures, from `xtask/figures.toml`.

use std::{collections::BTreeMap, time::Duration};

use serde::Deserialize;

const TABLE: &str = include_str!("../../xtask/figures.toml");

#[derive(Deserialize)]
struct Table {
    figures: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    goal: f64,
}

/// Returns the goal of a figure. Panics if the table does not contain the figure.
pub(crate) fn goal(name: &str) -> f64 {
    let table: Table = toml::from_str(TABLE).expect("the table of figures is valid");
    table.figures.get(name).expect("the table contains the figure").goal
}

/// Returns the goal of a figure in milliseconds.
pub(crate) fn goal_time(name: &str) -> Duration {
    Duration::from_secs_f64(goal(name) / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::{goal, goal_time};

    #[test]
    fn goals_are_those_of_the_table() {
        assert!(goal("run-wall") > 1.0);
        assert!(!goal_time("first-byte-known").is_zero());
    }
}
