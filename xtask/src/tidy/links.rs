//! Links between pages.

use std::collections::BTreeSet;

use super::{
    Violation,
    tree::{File, Tree},
};

/// Prompts are text for a model; links in them are not ours.
const PROMPTS: &str = "/prompts/";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut linked = BTreeSet::new();
    for page in pages(tree) {
        for (number, target) in links(page) {
            let path = resolve(&page.path, target);
            if exists(tree, &path) {
                linked.insert(path);
            } else {
                let message = format!("broken link to `{target}`");
                violations.push(Violation::at_line(&page.path, number, message));
            }
        }
    }
    for page in pages(tree).filter(|page| page.path.starts_with("docs/")) {
        let is_linked = linked.iter().any(|path| {
            page.path == *path || page.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
        });
        if !is_linked {
            violations.push(Violation::new(&page.path, "no page links to it"));
        }
    }
    violations
}

fn pages(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files.iter().filter(|file| file.path.ends_with(".md") && !file.path.contains(PROMPTS))
}

/// Returns the relative targets of inline links outside of code blocks, without fragments.
fn links(page: &File) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (number, line) in page.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for rest in line.split("](").skip(1) {
            let target = rest.split([')', '#', ' ']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains(':') {
                found.push((number, target));
            }
        }
    }
    found
}

/// Resolves `target` on the page `from` to a path from the root.
fn resolve(from: &str, target: &str) -> String {
    let mut components: Vec<&str> = from.split('/').collect();
    components.pop();
    for component in target.split('/').filter(|component| !component.is_empty()) {
        match component {
            "." => {}
            ".." => {
                components.pop();
            }
            name => components.push(name),
        }
    }
    components.join("/")
}

/// Returns whether `path` exists. Paths of Rust items (`crate::Item`) contain a colon and are filtered out before.
fn exists(tree: &Tree, path: &str) -> bool {
    tree.file(path).is_some() || tree.files_under(path).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::tree::Tree;

    fn shown(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).into_iter().map(|violation| violation.to_string()).collect()
    }

    #[test]
    fn links_to_files_and_directories_are_accepted() {
        let files = [
            ("README.md", "[a](docs/a.md#part) [d](docs/project/decisions/) [w](https://example.org/x)"),
            ("docs/a.md", "[up](../README.md)\n```text\n[not](a/link)\n```\n"),
            ("docs/project/decisions/0001-x.md", ""),
            ("crates/a/prompts/b.md", "[of the model](nowhere.md)"),
        ];
        assert_eq!(shown(&files), [""; 0]);
    }

    #[test]
    fn a_broken_link_and_an_unlinked_page_are_reported() {
        let files = [("README.md", "\n[a](docs/b.md)"), ("docs/a.md", "")];
        assert_eq!(
            shown(&files),
            ["README.md:2: broken link to `docs/b.md`", "docs/a.md: no page links to it"]
        );
    }
}
