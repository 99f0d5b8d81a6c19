//! Builds of the command from nothing: their CPU time, and the size of what is shipped.

use std::path::PathBuf;

use nix::sys::resource::UsageWho;
use serde::Deserialize;

use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
    process,
};

/// Bytes of a megabyte, as the sizes of downloads count them.
const MEGABYTE: f64 = 1e6;

/// Limits of the command.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    /// CPU seconds of a release build with the default features.
    default_seconds: f64,
    /// CPU seconds of one with everything that is shipped.
    full_seconds: f64,
    /// Megabytes of the program that is shipped.
    shipped_megabytes: f64,
}

/// One figure beside its limit.
#[derive(Debug, PartialEq)]
struct Figure {
    name: &'static str,
    unit: &'static str,
    measured: f64,
    limit: f64,
}

/// Builds the command in fresh directories and compares it with the limits. Takes about half an hour of CPU time.
///
/// # Errors
///
/// A figure above its limit, or a build that fails.
pub(super) fn run(metadata: &Metadata, limits: &Limits) -> Result<(), Failure> {
    let stage = Stage { directory: metadata.target_directory.join("weight-command") };
    let figures = [
        Figure {
            name: "default features, profile release",
            unit: "s of CPU",
            measured: stage.cold(metadata, "release", "default")?,
            limit: limits.default_seconds,
        },
        Figure {
            name: "feature full, profile release",
            unit: "s of CPU",
            measured: stage.cold(metadata, "release", "full")?,
            limit: limits.full_seconds,
        },
        Figure {
            name: "feature full, profile dist",
            unit: "MB",
            measured: stage.size(metadata)?,
            limit: limits.shipped_megabytes,
        },
    ];
    stage.clear()?;
    for Figure { name, unit, measured, limit } in &figures {
        println!("{name:<36} {measured:>7.1} {unit}, of at most {limit}");
    }
    match exceeded(&figures) {
        exceeded if exceeded.is_empty() => Ok(()),
        exceeded => Err(Failure::new(format!("the command weighs too much: {}", exceeded.join(", ")))),
    }
}

fn exceeded(figures: &[Figure]) -> Vec<&'static str> {
    figures.iter().filter(|figure| figure.measured > figure.limit).map(|figure| figure.name).collect()
}

/// A target directory for these builds alone.
struct Stage {
    directory: PathBuf,
}

impl Stage {
    fn clear(&self) -> Result<(), Failure> {
        match std::fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed.context("the directory of the builds could not be removed"),
        }
    }

    /// Builds from nothing. Returns the CPU seconds that took.
    fn cold(&self, metadata: &Metadata, profile: &str, features: &str) -> Result<f64, Failure> {
        self.clear()?;
        let before = process::cpu_time(UsageWho::RUSAGE_CHILDREN)?;
        self.build(metadata, profile, features)?;
        Ok(process::cpu_time(UsageWho::RUSAGE_CHILDREN)?.saturating_sub(before).as_secs_f64())
    }

    /// Returns the megabytes of the program that is shipped.
    fn size(&self, metadata: &Metadata) -> Result<f64, Failure> {
        self.build(metadata, "dist", "full")?;
        let program = self.directory.join("dist/pintle");
        let size = std::fs::metadata(&program).context("the program was not built")?.len();
        #[expect(clippy::cast_precision_loss, reason = "a size in megabytes")]
        Ok(size as f64 / MEGABYTE)
    }

    fn build(&self, metadata: &Metadata, profile: &str, features: &str) -> Result<(), Failure> {
        let mut build = process::cargo(&metadata.workspace_root);
        build
            .args(["build", "--locked", "--quiet", "--package", "pintle-cli"])
            .args(["--profile", profile, "--features", features, "--target-dir"])
            .arg(&self.directory);
        process::run(&mut build)
    }
}

#[cfg(test)]
mod tests {
    use super::{Figure, exceeded};

    #[test]
    fn a_figure_above_its_limit_is_named() {
        let figure = |name, measured| Figure { name, unit: "s", measured, limit: 10.0 };
        assert_eq!(exceeded(&[figure("a", 9.9), figure("b", 10.1), figure("c", 10.0)]), ["b"]);
    }
}
