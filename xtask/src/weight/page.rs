//! The figures in `docs/project/performance.md`.

use std::path::PathBuf;

use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
};

use super::table::Table;

const PATH: &str = "docs/project/performance.md";
const BEGIN: &str = "<!-- weight -->\n";
const END: &str = "<!-- end of weight -->";

/// Fails if the figures on the page differ from the table.
pub(super) fn require(metadata: &Metadata, table: &Table) -> Result<(), Failure> {
    let text = read(metadata)?;
    if text == rewritten(&text, table)? {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the figures in {PATH} are not those of {}; `cargo xtask weight --write` updates them",
        super::table::PATH
    )))
}

pub(super) fn write(metadata: &Metadata, table: &Table) -> Result<(), Failure> {
    let text = rewritten(&read(metadata)?, table)?;
    std::fs::write(path(metadata), text).with_context(|| format!("{PATH} could not be written"))
}

fn path(metadata: &Metadata) -> PathBuf {
    metadata.workspace_root.join(PATH)
}

fn read(metadata: &Metadata) -> Result<String, Failure> {
    std::fs::read_to_string(path(metadata)).with_context(|| format!("{PATH} could not be read"))
}

fn rewritten(text: &str, table: &Table) -> Result<String, Failure> {
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let (before, after) = parts.ok_or_else(|| {
        Failure::new(format!("{PATH} lacks the markers `{}` and `{END}`", BEGIN.trim_end()))
    })?;
    Ok(format!("{before}{BEGIN}\n{}\n{END}{after}", rendered(table)))
}

fn rendered(table: &Table) -> String {
    let mut text = String::from("| layer alone | crates | cold check |\n|---|---|---|\n");
    for (name, crates) in &table.crates {
        let check = table.check.get(name).map_or_else(|| String::from("–"), |ratio| format!("{ratio:.2}"));
        text.push_str(&format!("| `{name}` | {crates} | {check} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Table, rewritten};

    #[test]
    fn the_figures_are_written_between_markers() {
        let table = Table::parse(
            "target = \"t\"\n[crates]\na = 7\nb = 8\n\
             [command]\ndefault_seconds = 1.0\nfull_seconds = 1.0\nshipped_megabytes = 1.0\n\
             [reference]\nlayer = \"a\"\ncrates = []\ntolerance = 1.0\n[check]\na = 2.0\n",
        )
        .unwrap();
        let page = "Before.\n<!-- weight -->\nold\n<!-- end of weight -->\nAfter.\n";
        let written = rewritten(page, &table).unwrap();
        assert_eq!(
            written,
            "Before.\n<!-- weight -->\n\n| layer alone | crates | cold check |\n|---|---|---|\n\
             | `a` | 7 | 2.00 |\n| `b` | 8 | – |\n\n<!-- end of weight -->\nAfter.\n"
        );
        assert_eq!(rewritten(&written, &table).unwrap(), written);
        assert!(rewritten("No marks.\n", &table).is_err());
    }
}
