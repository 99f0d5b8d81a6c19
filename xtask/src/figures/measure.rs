//! Measurements of the figures: builds of the command, and rows of its benchmarks.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::Command,
};

use crate::{
    bench,
    failure::Failure,
    metadata::Metadata,
    process,
    weight::{self, ColdBuild},
};

use super::table::{BuildSelection, Entry, Source, Table};

/// Bytes of a megabyte, as the sizes of downloads count them.
const MEGABYTE: f64 = 1e6;

/// First word of a line with a figure in the output of the benchmarks.
const FIGURE: &str = "figure";

/// Measures figures, and builds each program once.
pub(super) struct Measurements<'a> {
    metadata: &'a Metadata,
    table: &'a Table,
    /// Sizes in bytes of the programs that were built.
    sizes: BTreeMap<BuildSelection, u64>,
    /// The program with the benchmarks.
    benches: Option<PathBuf>,
}

impl<'a> Measurements<'a> {
    pub(super) fn new(metadata: &'a Metadata, table: &'a Table) -> Self {
        Self { metadata, table, sizes: BTreeMap::new(), benches: None }
    }

    /// Measures each of the figures once.
    ///
    /// # Errors
    ///
    /// A build or a benchmark that fails.
    pub(super) fn take(
        &mut self,
        selected: &BTreeMap<&str, &Entry>,
    ) -> Result<BTreeMap<String, f64>, Failure> {
        let mut values = BTreeMap::new();
        let mut rows = BTreeSet::new();
        // Builds from nothing come first: the size of the same program needs no other build.
        for (key, entry) in selected {
            if let Source::BuildTime(build) = &entry.source {
                values.insert((*key).to_owned(), self.build_time(build)?);
            }
        }
        for (key, entry) in selected {
            match &entry.source {
                Source::BuildTime(_) => {}
                Source::Size(build) => {
                    values.insert((*key).to_owned(), self.size(build)?);
                }
                Source::Bench { suite, row } => {
                    rows.insert((suite.as_str(), row.as_str()));
                }
            }
        }
        for (suite, row) in rows {
            let reported = self.bench(suite, row)?;
            values.extend(reported.into_iter().filter(|(key, _)| selected.contains_key(key.as_str())));
        }
        Ok(values)
    }

    /// Returns the CPU seconds of a build from nothing, as on the machine of the goals if its speed is known.
    fn build_time(&mut self, build: &BuildSelection) -> Result<f64, Failure> {
        println!("-- a build from nothing: profile {}, features {}", build.profile, build.features);
        let cold = ColdBuild::run(self.metadata, &build.profile, &build.features)?;
        println!("{:.1} s of CPU; {:.2} s for the reference crates", cold.seconds, cold.reference_seconds);
        self.sizes.insert(build.clone(), cold.bytes);
        let known = self.table.reference_seconds.get(&build.profile);
        Ok(cold.seconds * known.map_or(1.0, |known| known / cold.reference_seconds))
    }

    /// Returns the megabytes of a program.
    fn size(&mut self, build: &BuildSelection) -> Result<f64, Failure> {
        let bytes = match self.sizes.get(build) {
            Some(bytes) => *bytes,
            None => {
                let program = bench::build_command(self.metadata, &build.profile, &build.features)?;
                let bytes = weight::size_of(&program)?;
                self.sizes.insert(build.clone(), bytes);
                bytes
            }
        };
        #[expect(clippy::cast_precision_loss, reason = "a size in megabytes")]
        Ok(bytes as f64 / MEGABYTE)
    }

    /// Runs rows of a suite with the shipped command, and returns the figures that they report.
    fn bench(&mut self, suite: &str, row: &str) -> Result<BTreeMap<String, f64>, Failure> {
        let program = match &self.benches {
            Some(program) => program.clone(),
            None => {
                bench::build_command(self.metadata, bench::SHIPPED_PROFILE, bench::SHIPPED_FEATURES)?;
                self.benches.insert(bench::build_benches(self.metadata, None)?).clone()
            }
        };
        println!("-- {suite}: {row}");
        let mut command = Command::new(program);
        command.current_dir(&self.metadata.workspace_root).args([suite, row, "--figures"]);
        let mut figures = BTreeMap::new();
        process::run_with_lines(&mut command, |line| figures.extend(parse_figure(line)))?;
        Ok(figures)
    }
}

/// Parses `figure NAME VALUE`.
fn parse_figure(line: &str) -> Option<(String, f64)> {
    let mut words = line.split(' ');
    if words.next()? != FIGURE {
        return None;
    }
    let (name, value) = (words.next()?, words.next()?);
    Some((name.to_owned(), value.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::parse_figure;

    #[test]
    fn figures_are_read_from_the_output_of_benchmarks() {
        assert_eq!(parse_figure("figure round-wall 2.5"), Some(("round-wall".to_owned(), 2.5)));
        for line in ["| figure | measured |", "figure round-wall", "figure round-wall many", ""] {
            assert_eq!(parse_figure(line), None, "{line}");
        }
    }
}
