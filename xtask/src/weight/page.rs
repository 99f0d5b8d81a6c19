//! The tables of layers and of sets of features in `docs/project/performance.md`.

use super::table::Table;

/// Name of the markers around the table.
pub(super) const NAME: &str = "weight";

/// Returns the table of crates and checks of each layer, and the table of the crates of each set of features.
pub(super) fn rendered(table: &Table) -> String {
    let mut text = String::from("| layer alone | crates | cold check |\n|---|---|---|\n");
    for (name, crates) in &table.crates {
        let check = table.check.get(name).map_or_else(|| String::from("–"), |ratio| format!("{ratio:.2}"));
        text.push_str(&format!("| `{name}` | {crates} | {check} |\n"));
    }
    if !table.sets.is_empty() {
        text.push_str("\n| features of `pintle`, without the default ones | crates |\n|---|---|\n");
    }
    for set in &table.sets {
        let features: Vec<String> = set.features.iter().map(|feature| format!("`{feature}`")).collect();
        text.push_str(&format!("| {} | {} |\n", features.join(", "), set.crates));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Table, rendered};

    #[test]
    fn layers_and_sets_of_features_have_their_figures() {
        let table = Table::parse(
            "target = \"t\"\n[crates]\na = 7\nb = 8\n[[sets]]\nfeatures = [\"x\", \"y\"]\ncrates = 9\n\
             [reference]\nlayer = \"a\"\ncrates = []\ntolerance = 1.0\n[check]\na = 2.0\n",
        )
        .unwrap();
        assert_eq!(
            rendered(&table),
            "| layer alone | crates | cold check |\n|---|---|---|\n| `a` | 7 | 2.00 |\n| `b` | 8 | – |\n\
             \n| features of `pintle`, without the default ones | crates |\n|---|---|\n| `x`, `y` | 9 |\n"
        );
    }
}
