//! What a layer depends on, as `cargo tree` tells it.

use std::collections::{BTreeMap, BTreeSet};

use crate::{failure::Failure, metadata::Metadata, process};

/// How many of a layer's direct dependencies are named as its drivers.
const DRIVERS: usize = 4;

/// What `package` alone depends on, for `target` and along these kinds of edges.
pub(super) fn tree(metadata: &Metadata, package: &str, target: &str, edges: &str) -> Result<Graph, Failure> {
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

/// The direct dependencies that bring most, with what is beneath each and beneath it alone.
pub(super) fn drivers(graph: &Graph) -> String {
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

/// What depends on what, by `name version`.
#[derive(Debug, Default)]
pub(super) struct Graph {
    root: String,
    edges: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// Reads `cargo tree --prefix depth`: each line is a depth, a name and a version.
    pub(super) fn parse(text: &str) -> Self {
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
    pub(super) fn reached(&self, without: Option<&str>) -> BTreeSet<&str> {
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
