//! Output of `git diff-tree --raw --numstat -z`.

use pintle_evidence::diff::{ChangeKind, ChangedFile};

use super::{REPOSITORY, RepositoryError, nested_repository_error};

/// Mode of a symbolic link.
const LINK: &str = "120000";

/// Changed files, and the links among them with the hash of their targets.
type ParsedChanges = (Vec<ChangedFile>, Vec<(String, String)>);

/// Parses the changes of files.
///
/// # Errors
///
/// [`RepositoryError::Unfit`] for a nested repository, whose files git would not show.
pub(super) fn parse(listing: &[u8]) -> Result<ParsedChanges, RepositoryError> {
    let mut links = Vec::new();
    let mut fields = listing.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let mut files: Vec<ChangedFile> = Vec::new();
    while let Some(field) = fields.next() {
        if let Some(change) = field.strip_prefix(':') {
            let words: Vec<&str> = change.split(' ').collect();
            let (Some(path), Some(new_mode), Some(letter)) = (fields.next(), words.get(1), words.get(4))
            else {
                return Err(unreadable());
            };
            if *new_mode == REPOSITORY {
                return Err(nested_repository_error(&path));
            }
            if *new_mode == LINK {
                links.push((path.to_string(), words.get(3).copied().unwrap_or_default().to_owned()));
            }
            let kind = match *letter {
                "A" => ChangeKind::Added,
                "D" => ChangeKind::Deleted,
                _ => ChangeKind::Modified,
            };
            files.push(ChangedFile { path: path.into_owned(), kind, added: 0, removed: 0 });
        } else if !field.is_empty() {
            let mut counts = field.splitn(3, '\t');
            let (Some(added), Some(removed), Some(path)) = (counts.next(), counts.next(), counts.next())
            else {
                return Err(unreadable());
            };
            let file = files.iter_mut().find(|file| file.path == path).ok_or_else(unreadable)?;
            // Binary files have `-`.
            file.added = added.parse().unwrap_or(0);
            let at_least = u64::from(file.kind != ChangeKind::Added && removed == "-");
            file.removed = removed.parse().unwrap_or(at_least);
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok((files, links))
}

/// Returns whether a link at `path` leads out of its tree.
pub(super) fn is_link_outside(path: &str, target: &str) -> bool {
    let parts = || target.split('/').filter(|part| !matches!(*part, "" | "."));
    let above = parts().take_while(|part| *part == "..").count();
    // A later part may be a link itself, and `..` after it could lead anywhere.
    let later = parts().skip(above).any(|part| part == "..");
    target.starts_with('/') || later || above >= path.split('/').count()
}

fn unreadable() -> RepositoryError {
    RepositoryError::Unfit("its changes cannot be read".to_owned())
}
