//! `cargo xtask weight`: the crates that one layer alone makes a user compile.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::{failure::Failure, metadata::Metadata, process};

/// How far above the table a layer may be before the table has to say so.
const SLACK: usize = 2;
/// How many of a layer's direct dependencies are named as its drivers.
const DRIVERS: usize = 4;

/// `xtask/weight.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// The target that is counted for, so that every machine counts the same.
    target: String,
    crates: BTreeMap<String, usize>,
}

/// Prints each layer's count with what drives it, and fails where one is above the table.
pub(crate) fn run(metadata: &Metadata, _arguments: &[String]) -> Result<(), Failure> {
    let table = Table::load(metadata)?;
    table.require_every_library(metadata)?;
    let mut grown = Vec::new();
    println!(
        "{:<18} {:>6} {:>6} {:>8}  driven by (crates beneath, of which by it alone)",
        "alone", "crates", "table", "+ build"
    );
    for (name, allowed) in &table.crates {
        let graph = tree(metadata, name, &table.target, "normal")?;
        let built = tree(metadata, name, &table.target, "normal,build")?;
        let count = graph.reached(None).len();
        println!(
            "{name:<18} {count:>6} {allowed:>6} {:>8}  {}",
            built.reached(None).len().saturating_sub(count),
            drivers(&graph)
        );
        if count > allowed + SLACK {
            grown.push(format!("{name} compiles {count} crates, the table says {allowed}"));
        }
    }
    if grown.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} (drop a dependency, or state the growth in xtask/weight.toml)",
        grown.join("; ")
    )))
}

fn tree(metadata: &Metadata, package: &str, target: &str, edges: &str) -> Result<Graph, Failure> {
    let text = process::capture(process::cargo(&metadata.workspace_root).args([
        "tree",
        "--package",
        package,
        "--edges",
        edges,
        "--target",
        target,
        "--prefix",
        "depth",
    ]))?;
    let graph = Graph::parse(&text);
    if graph.root.split(' ').next() != Some(package) {
        return Err(Failure::new(format!("`cargo tree` for {package} was not understood")));
    }
    Ok(graph)
}

fn drivers(graph: &Graph) -> String {
    let all = graph.reached(None).len();
    let mut direct: Vec<(usize, usize, &str)> = graph
        .direct()
        .map(|dependency| {
            let alone = all - graph.reached(Some(dependency)).len();
            (alone, graph.beneath(dependency).len(), dependency)
        })
        .collect();
    direct.sort_by(|left, right| right.cmp(left));
    let named: Vec<String> = direct
        .iter()
        .take(DRIVERS)
        .map(|(alone, beneath, name)| {
            format!("{} {beneath} ({alone})", name.split(' ').next().unwrap_or(name))
        })
        .collect();
    named.join(", ")
}

impl Table {
    fn load(metadata: &Metadata) -> Result<Self, Failure> {
        let path = metadata.workspace_root.join("xtask/weight.toml");
        let text = std::fs::read_to_string(&path)
            .map_err(|cause| Failure::new("xtask/weight.toml could not be read").because(cause))?;
        toml::from_str(&text)
            .map_err(|cause| Failure::new("xtask/weight.toml was not understood").because(cause))
    }

    fn require_every_library(&self, metadata: &Metadata) -> Result<(), Failure> {
        match metadata.libraries().find(|library| !self.crates.contains_key(&library.name)) {
            Some(library) => Err(Failure::new(format!("xtask/weight.toml has no row for {}", library.name))),
            None => Ok(()),
        }
    }
}

/// What depends on what, by `name version`.
#[derive(Debug, Default)]
struct Graph {
    root: String,
    edges: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// Reads `cargo tree --prefix depth`: each line is a depth, a name and a version.
    fn parse(text: &str) -> Self {
        let mut graph = Self::default();
        let mut path: Vec<String> = Vec::new();
        for line in text.lines() {
            let digits = line.bytes().take_while(u8::is_ascii_digit).count();
            let Some((depth, rest)) = line.split_at_checked(digits) else { continue };
            let Ok(depth) = depth.parse::<usize>() else { continue };
            let name: Vec<&str> = rest.split(' ').take(2).collect();
            let name = name.join(" ");
            path.truncate(depth);
            match path.last() {
                Some(parent) => {
                    graph.edges.entry(parent.clone()).or_default().insert(name.clone());
                }
                None => graph.root.clone_from(&name),
            }
            path.push(name);
        }
        graph
    }

    fn direct(&self) -> impl Iterator<Item = &str> {
        self.edges.get(&self.root).into_iter().flatten().map(String::as_str)
    }

    /// The root and all that it reaches without the root's own edge to `without`.
    fn reached(&self, without: Option<&str>) -> BTreeSet<&str> {
        let mut found = BTreeSet::from([self.root.as_str()]);
        for dependency in self.direct().filter(|dependency| Some(*dependency) != without) {
            found.extend(self.beneath(dependency));
        }
        found
    }

    /// `from` and all that it reaches.
    fn beneath<'a>(&'a self, from: &'a str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut open = vec![from];
        while let Some(next) = open.pop() {
            if found.insert(next) {
                open.extend(self.edges.get(next).into_iter().flatten().map(String::as_str));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::{Graph, drivers};

    const TREE: &str = "\
0top v0.1.0 (path)
1left v1.0.0
2shared v1.0.0
3deep v2.0.0
2only-left v1.0.0 (proc-macro)
1right v1.0.0
2shared v1.0.0 (*)
";

    #[test]
    fn a_tree_counts_each_crate_once() {
        let graph = Graph::parse(TREE);
        assert_eq!(graph.reached(None).len(), 6);
        assert_eq!(graph.direct().collect::<Vec<_>>(), ["left v1.0.0", "right v1.0.0"]);
    }

    #[test]
    fn a_driver_is_charged_with_what_nobody_else_needs() {
        assert_eq!(drivers(&Graph::parse(TREE)), "left 4 (2), right 3 (1)");
    }
}
