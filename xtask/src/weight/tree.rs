//! Dependencies of a layer, from `cargo tree`.

use std::collections::{BTreeMap, BTreeSet};

use crate::{failure::Failure, metadata::Metadata, process};

/// Number of direct dependencies named as the main causes of a layer's size.
const DRIVERS: usize = 4;

/// Returns the dependencies of `package` alone, for `target` and along these kinds of edges.
pub(super) fn tree(metadata: &Metadata, package: &str, target: &str, edges: &str) -> Result<Graph, Failure> {
    tree_with(metadata, package, target, edges, &[])
}

/// As [`tree`], with the features of `package` that these arguments of cargo select.
pub(super) fn tree_of_features(
    metadata: &Metadata,
    package: &str,
    target: &str,
    features: &[String],
) -> Result<Graph, Failure> {
    tree_with(metadata, package, target, "normal", features)
}

fn tree_with(
    metadata: &Metadata,
    package: &str,
    target: &str,
    edges: &str,
    selection: &[String],
) -> Result<Graph, Failure> {
    let mut command = process::cargo(&metadata.workspace_root);
    command.args(["tree", "--package", package, "--edges", edges, "--target", target, "--prefix", "depth"]);
    let text = process::capture(command.args(selection))?;
    let graph = Graph::parse(&text);
    if graph.root.split(' ').next() != Some(package) {
        return Err(Failure::new(format!("`cargo tree` for {package} could not be parsed")));
    }
    Ok(graph)
}

/// Describes the direct dependencies that add the most crates: the crates of each, and those reached only through it.
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

/// Dependencies by `name version`.
#[derive(Debug, Default)]
pub(super) struct Graph {
    root: String,
    edges: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// Parses the output of `cargo tree --prefix depth`: each line is a depth, a name and a version.
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

    /// Returns the root and everything reachable from it, ignoring its direct edge to `without`.
    pub(super) fn reached(&self, without: Option<&str>) -> BTreeSet<&str> {
        let mut found = BTreeSet::from([self.root.as_str()]);
        for dependency in self.direct().filter(|dependency| Some(*dependency) != without) {
            found.extend(self.beneath(dependency));
        }
        found
    }

    /// Returns `from` and everything reachable from it.
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
    fn a_driver_counts_crates_reached_only_through_it() {
        assert_eq!(drivers(&Graph::parse(TREE)), "left 4 (2), right 3 (1)");
    }
}
