//! Directories of manifests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pintle_env::ExecutionEnvironment;
use pintle_store::Hash;

use super::manifest::ToolManifest;
use crate::config_file::problem::Problem;

/// Largest manifest, in bytes.
const MAX_FILE: usize = 64 << 10;

/// Maximum number of manifests in a directory.
const MAX_FILES: usize = 100;

/// Manifests in one directory, in the state in which they were read.
#[derive(Clone, Debug, Default)]
pub struct ToolDirectory {
    /// The directory, with all links resolved if it exists.
    pub path: PathBuf,
    /// Its manifests without mistakes, in the order of their file names.
    pub tools: Vec<LoadedManifest>,
    /// Mistakes. Each disables one tool, or the directory if it cannot be read.
    pub problems: Vec<Problem>,
    /// Text of each manifest, with or without mistakes.
    texts: BTreeMap<PathBuf, String>,
}

/// Manifest without mistakes.
#[derive(Clone, Debug)]
pub struct LoadedManifest {
    /// The tool.
    pub manifest: ToolManifest,
    /// Hashes of the files below its directory that it runs.
    pub programs: ProgramHashes,
}

/// Hashes of files.
#[derive(Clone, Debug, Default)]
pub struct ProgramHashes(BTreeMap<PathBuf, Hash>);

impl ToolDirectory {
    /// Reads the manifests of a directory: its files `*.toml`.
    ///
    /// `root` is a directory that it has to be below. Dropping the future stops reading. Nothing is changed.
    pub async fn read(path: &Path, root: Option<&Path>, environment: &dyn ExecutionEnvironment) -> Self {
        let mut directory = Self { path: path.to_path_buf(), ..Self::default() };
        if let Err(message) = directory.read_files(root, environment).await {
            directory.problems.push(Problem { origin: path.display().to_string(), message });
        }
        directory
    }

    /// Creates a directory that cannot be used.
    pub(super) fn wrong(path: PathBuf, message: &str) -> Self {
        let problem = Problem { origin: path.display().to_string(), message: message.to_owned() };
        Self { path, problems: vec![problem], ..Self::default() }
    }

    async fn read_files(
        &mut self,
        root: Option<&Path>,
        environment: &dyn ExecutionEnvironment,
    ) -> Result<(), String> {
        let real = environment.canonicalize(&self.path).await.map_err(|error| error.to_string())?;
        if let Some(root) = root
            && (!real.starts_with(root) || real == root)
        {
            return Err(format!(
                "`tool_dirs`: expected a directory below {}, the root of the project",
                root.display()
            ));
        }
        let entries = environment.list(&real).await.map_err(|error| error.to_string())?;
        self.path = real;
        let is_manifest = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "toml");
        let mut names: Vec<PathBuf> = entries
            .into_iter()
            .filter(|entry| !entry.is_dir)
            .map(|entry| entry.name)
            .filter(is_manifest)
            .collect();
        names.sort();
        if names.len() > MAX_FILES {
            return Err(format!("found {} manifests, expected at most {MAX_FILES}", names.len()));
        }
        for name in names {
            let file = self.path.join(name);
            match self.read_file(&file, environment).await {
                Ok(tool) => self.tools.push(tool),
                Err(problems) => self.problems.extend(problems),
            }
        }
        Ok(())
    }

    async fn read_file(
        &mut self,
        file: &Path,
        environment: &dyn ExecutionEnvironment,
    ) -> Result<LoadedManifest, Vec<Problem>> {
        let name = file.display().to_string();
        let wrong = |message: String| vec![Problem { origin: name.clone(), message }];
        let text = read_text(file, &self.path, environment).await.map_err(wrong)?;
        self.texts.insert(file.to_path_buf(), text.clone());
        let manifest = ToolManifest::parse(&name, &self.path, &text)?;
        let programs = ProgramHashes::read(&manifest, &self.path, environment).await;
        let programs = programs.map_err(wrong)?;
        Ok(LoadedManifest { manifest, programs })
    }

    /// Returns the manifest in a file without mistakes, for a check of this file alone.
    ///
    /// # Errors
    ///
    /// The mistakes, each with the file, its line and the expectation.
    pub async fn check_file(
        file: &Path,
        environment: &dyn ExecutionEnvironment,
    ) -> Result<LoadedManifest, Vec<Problem>> {
        let parent = file.parent().unwrap_or(Path::new("/"));
        let real = environment.canonicalize(parent).await.map_err(|error| {
            vec![Problem { origin: file.display().to_string(), message: error.to_string() }]
        })?;
        let file = real.join(file.file_name().unwrap_or_default());
        let mut directory = Self { path: real, ..Self::default() };
        let loaded = directory.read_file(&file, environment).await?;
        super::check_name(&loaded, &file.display().to_string()).map_err(|problem| vec![problem])?;
        Ok(loaded)
    }

    /// Appends the state of the manifests and of the files that they run, for a hash.
    pub(crate) fn append_state(&self, state: &mut Vec<u8>) {
        for (file, text) in &self.texts {
            // The lengths prevent one file from hashing like two.
            state.extend_from_slice(format!("\ntool {} {}\n", file.display(), text.len()).as_bytes());
            state.extend_from_slice(text.as_bytes());
        }
        for (path, hash) in self.tools.iter().flat_map(|tool| &tool.programs.0) {
            state.extend_from_slice(format!("\n{} {hash}", path.display()).as_bytes());
        }
    }

    /// Returns a line for each tool: its name, its program and its effect.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.tools.iter().map(|LoadedManifest { manifest, .. }| {
            let effect = format!("{:?}", manifest.effect).to_lowercase();
            format!("{} ({}, {effect})", manifest.definition.name, manifest.program)
        })
    }
}

impl ProgramHashes {
    /// Reads the files that a manifest in `directory` runs. The error is a file that is missing or is a link to a path
    /// outside of the directory.
    async fn read(
        manifest: &ToolManifest,
        directory: &Path,
        environment: &dyn ExecutionEnvironment,
    ) -> Result<Self, String> {
        let mut hashes = BTreeMap::new();
        for path in &manifest.programs {
            require_inside(path, directory, environment).await?;
            let bytes = environment.read(path, None).await;
            let bytes = bytes.map_err(|error| format!("cannot read its program: {error}"))?;
            hashes.insert(path.clone(), Hash::of(&bytes));
        }
        Ok(Self(hashes))
    }

    /// Returns the first file that has changed.
    pub(super) async fn changed(&self, environment: &dyn ExecutionEnvironment) -> Option<&Path> {
        for (path, hash) in &self.0 {
            let now = environment.read(path, None).await.ok().map(|bytes| Hash::of(&bytes));
            if now != Some(*hash) {
                return Some(path);
            }
        }
        None
    }
}

async fn read_text(
    file: &Path,
    directory: &Path,
    environment: &dyn ExecutionEnvironment,
) -> Result<String, String> {
    require_inside(file, directory, environment).await?;
    let bytes = environment.read(file, None).await.map_err(|error| error.to_string())?;
    if bytes.len() > MAX_FILE {
        return Err(format!("found {} bytes, expected at most {} KiB", bytes.len(), MAX_FILE >> 10));
    }
    String::from_utf8(bytes).map_err(|_| "expected text in UTF-8".to_owned())
}

/// Fails if a file is a link to a path outside of a directory.
async fn require_inside(
    file: &Path,
    directory: &Path,
    environment: &dyn ExecutionEnvironment,
) -> Result<(), String> {
    let real = environment.canonicalize(file).await.map_err(|error| error.to_string())?;
    if real.starts_with(directory) {
        return Ok(());
    }
    Err(format!(
        "{} is a link to {}, expected a file in the directory of the manifest",
        file.display(),
        real.display()
    ))
}
