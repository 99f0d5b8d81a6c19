//! Catalog overrides from a file.
#![expect(clippy::disallowed_methods, reason = "reads one file that the application names")]

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::Catalog;
use crate::error::{Error, ErrorKind};

/// Limit on the file size: 8 MiB.
const MAX_BYTES: u64 = 8 << 20;

impl Catalog {
    /// Returns the built-in catalog with the overrides of a file, in the format of `catalog/README.md`.
    ///
    /// Blocks while it reads. The file may have at most 8 MiB.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] for a file that cannot be read, is too large or is not UTF-8, and those of
    /// [`merged_with`](Self::merged_with).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let refused = |why: &str| {
            Error::new(ErrorKind::Configuration, format!("the model catalog {} {why}", path.display()))
        };
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|error| refused("cannot be read").with_source(error))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(refused("is larger than 8 MiB"));
        }
        let text =
            String::from_utf8(bytes).map_err(|error| refused("is not UTF-8 text").with_source(error))?;
        Self::built_in().merged_with(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_overrides_built_in_models() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("models.json");
        let text = r#"[{"id": "gpt-5.2", "provider": "openai", "context_window": 7, "max_output": 1}]"#;
        std::fs::write(&path, text).unwrap();
        let catalog = Catalog::from_file(&path).unwrap();
        assert_eq!(catalog.get("gpt-5.2").unwrap().context_window, 7);
        assert_eq!(catalog.list(None).count(), Catalog::built_in().list(None).count());
    }

    #[test]
    fn an_invalid_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("models.json");
        let refused = || {
            let error = Catalog::from_file(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration);
            error.message().to_owned()
        };
        assert!(refused().ends_with("models.json cannot be read"));
        std::fs::write(&path, b"[]\xFF").unwrap();
        assert!(refused().ends_with("models.json is not UTF-8 text"));
        std::fs::write(&path, vec![b' '; 1 + (8 << 20)]).unwrap();
        assert!(refused().ends_with("models.json is larger than 8 MiB"));
        std::fs::write(&path, "[\n7]").unwrap();
        assert!(refused().starts_with("line 2 of the model catalog"));
    }
}
