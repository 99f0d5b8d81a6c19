//! The table of layers in `docs/project/performance.md`.

use super::table::Table;

/// Name of the markers around the table.
pub(super) const NAME: &str = "weight";

/// Returns the table of crates and checks of each layer.
pub(super) fn rendered(table: &Table) -> String {
    let mut text = String::from("| layer alone | crates | cold check |\n|---|---|---|\n");
    for (name, crates) in &table.crates {
        let check = table.check.get(name).map_or_else(|| String::from("–"), |ratio| format!("{ratio:.2}"));
        text.push_str(&format!("| `{name}` | {crates} | {check} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Table, rendered};

    #[test]
    fn a_layer_without_a_check_has_no_figure() {
        let table = Table::parse(
            "target = \"t\"\n[crates]\na = 7\nb = 8\n\
             [reference]\nlayer = \"a\"\ncrates = []\ntolerance = 1.0\n[check]\na = 2.0\n",
        )
        .unwrap();
        assert_eq!(
            rendered(&table),
            "| layer alone | crates | cold check |\n|---|---|---|\n| `a` | 7 | 2.00 |\n| `b` | 8 | – |\n"
        );
    }
}
