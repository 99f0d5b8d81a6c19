//! Writes results to the performance page.
#![expect(clippy::disallowed_methods, reason = "the page and its drawings are files of the repository")]

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::report::Report;

/// Replaces the text between the markers of this suite and draws its curves.
pub(crate) fn write(suite: &str, report: &Report) -> io::Result<()> {
    let docs = docs();
    let page = docs.join("performance.md");
    let text = fs::read_to_string(&page)?;
    let text = replaced(&text, suite, &report.markdown()).ok_or_else(|| {
        io::Error::other(format!("docs/project/performance.md has no markers for the suite `{suite}`"))
    })?;
    fs::write(&page, text)?;
    report
        .curves
        .iter()
        .try_for_each(|curve| fs::write(docs.join(format!("{}.svg", curve.file)), curve.svg()))
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/project")
}

/// Replaces the text between the markers; `None` if one is missing.
fn replaced(text: &str, suite: &str, found: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- bench {suite} -->\n"), format!("<!-- end of {suite} -->"));
    let (before, rest) = text.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{}\n\n{end}{after}", found.trim()))
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn only_text_between_the_markers_changes() {
        let page = "a\n<!-- bench x -->\nold\n<!-- end of x -->\nb\n";
        let new = "a\n<!-- bench x -->\n\nnew\n\n<!-- end of x -->\nb\n";
        assert_eq!(replaced(page, "x", "\nnew\n").as_deref(), Some(new));
        assert_eq!(replaced(new, "x", "new").as_deref(), Some(new));
        assert_eq!(replaced(page, "y", "new"), None);
    }
}
