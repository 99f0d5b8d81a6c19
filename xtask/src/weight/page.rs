//! The tables of layers and of sets of features in `docs/project/performance.md`.

use super::table::Table;

/// Name of the markers around the table.
pub(super) const NAME: &str = "weight";

/// Returns the table of the layers, and the table of the sets of features, with their crates and cold checks.
pub(super) fn rendered(table: &Table) -> String {
    let mut text = String::from("| layer alone | crates | cold check |\n|---|---|---|\n");
    let check = |name: Option<&String>| {
        let ratio = name.and_then(|name| table.check.get(name));
        ratio.map_or_else(|| String::from("–"), |ratio| format!("{ratio:.2}"))
    };
    for (name, crates) in &table.crates {
        text.push_str(&format!("| `{name}` | {crates} | {} |\n", check(Some(name))));
    }
    if !table.sets.is_empty() {
        text.push_str(
            "\n| features of `pintle`, without the default ones | crates | cold check |\n|---|---|---|\n",
        );
    }
    for set in &table.sets {
        let features = set.features.as_ref().map_or_else(|| String::from("all"), |features| quoted(features));
        text.push_str(&format!("| {features} | {} | {} |\n", set.crates, check(set.name.as_ref())));
    }
    text
}

fn quoted(features: &[String]) -> String {
    let features: Vec<String> = features.iter().map(|feature| format!("`{feature}`")).collect();
    features.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{Table, rendered};

    #[test]
    fn layers_and_sets_of_features_have_their_figures() {
        let table = Table::parse(
            "target = \"t\"\n[crates]\na = 7\nb = 8\n[[sets]]\nfeatures = [\"x\", \"y\"]\ncrates = 9\n\
             [[sets]]\nname = \"everything\"\ncrates = 11\n\
             [reference]\nlayer = \"a\"\ncrates = []\ntolerance = 1.0\n\
             [check]\na = 2.0\neverything = 3.0\n",
        )
        .unwrap();
        assert_eq!(
            rendered(&table),
            "| layer alone | crates | cold check |\n|---|---|---|\n| `a` | 7 | 2.00 |\n| `b` | 8 | – |\n\
             \n| features of `pintle`, without the default ones | crates | cold check |\n|---|---|---|\n\
             | `x`, `y` | 9 | – |\n| all | 11 | 3.00 |\n"
        );
    }
}
