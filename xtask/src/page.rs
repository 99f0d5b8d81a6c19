//! The tables in `docs/project/performance.md` that commands of this program write between markers.

use std::path::PathBuf;

use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
};

const PATH: &str = "docs/project/performance.md";

/// Fails if the table between the markers `name` differs from `content`, whose figures are in the file `source`.
pub(crate) fn require(metadata: &Metadata, name: &str, content: &str, source: &str) -> Result<(), Failure> {
    let text = read(metadata)?;
    if text == rewritten(&text, name, content)? {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the figures in {PATH} are not those of {source}; `cargo xtask {name} --write` updates them"
    )))
}

/// Replaces the table between the markers `name`.
pub(crate) fn write(metadata: &Metadata, name: &str, content: &str) -> Result<(), Failure> {
    let text = rewritten(&read(metadata)?, name, content)?;
    std::fs::write(path(metadata), text).with_context(|| format!("{PATH} could not be written"))
}

fn path(metadata: &Metadata) -> PathBuf {
    metadata.workspace_root.join(PATH)
}

fn read(metadata: &Metadata) -> Result<String, Failure> {
    std::fs::read_to_string(path(metadata)).with_context(|| format!("{PATH} could not be read"))
}

fn rewritten(text: &str, name: &str, content: &str) -> Result<String, Failure> {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let parts = text.split_once(&begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&end)?;
        Some((before, after))
    });
    let (before, after) = parts.ok_or_else(|| {
        Failure::new(format!("{PATH} lacks the markers `{}` and `{end}`", begin.trim_end()))
    })?;
    Ok(format!("{before}{begin}\n{content}\n{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::rewritten;

    #[test]
    fn only_text_between_the_markers_changes() {
        let page = "Before.\n<!-- a -->\nold\n<!-- end of a -->\nAfter.\n";
        let written = rewritten(page, "a", "| new |\n").unwrap();
        assert_eq!(written, "Before.\n<!-- a -->\n\n| new |\n\n<!-- end of a -->\nAfter.\n");
        assert_eq!(rewritten(&written, "a", "| new |\n").unwrap(), written);
        assert!(rewritten(page, "b", "").is_err());
    }
}
