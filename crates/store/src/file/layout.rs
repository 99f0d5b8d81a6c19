//! Names of the files of a store.
//!
//! ```text
//! blobs/3f/3f9a…                 values of all sessions, by their hash
//! sessions/ID/lock               locked by the writer, whose process it names
//! sessions/ID/summary.json       what lists show; a cache
//! sessions/ID/0000000001.jsonl   the journal: one segment per writer, by its epoch
//! sessions/ID/inherited/…        segments of the sessions that this one is a fork of: other names of the same files
//! sessions/ID/blobs/3f9a…        the values of this session: other names of the same files
//! sessions/ID/inbox/…            posted inputs
//! ledgers/NAME.json              texts that an application keeps
//! ledgers/lock                   locked by a process that replaces one
//! ```

use std::path::{Path, PathBuf};

use pintle_agent::SessionId;

use crate::error::StoreError;
use crate::format::MAX_ID;
use crate::hash::Hash;

/// Files of one store.
#[derive(Clone, Debug)]
pub(super) struct StoreLayout {
    root: PathBuf,
}

/// Files of one session.
#[derive(Clone, Debug)]
pub(super) struct SessionFiles {
    pub(super) directory: PathBuf,
}

impl StoreLayout {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn sessions(&self) -> PathBuf {
        self.root.join("sessions")
    }

    pub(super) fn blobs(&self) -> PathBuf {
        self.root.join("blobs")
    }

    pub(super) fn ledgers(&self) -> PathBuf {
        self.root.join("ledgers")
    }

    pub(super) fn ledger(&self, name: &str) -> PathBuf {
        self.ledgers().join(format!("{name}.json"))
    }

    pub(super) fn ledger_lock(&self) -> PathBuf {
        self.ledgers().join("lock")
    }

    pub(super) fn blob(&self, hash: &Hash) -> PathBuf {
        let name = hash.to_string();
        let mut path = self.blobs();
        path.push(name.get(..2).unwrap_or_default());
        path.push(name);
        path
    }

    pub(super) fn session(&self, id: &SessionId) -> Result<SessionFiles, StoreError> {
        let name = encode_id(id).ok_or_else(|| StoreError::InvalidId(id.clone()))?;
        Ok(SessionFiles { directory: self.sessions().join(name) })
    }
}

impl SessionFiles {
    pub(super) fn lock(&self) -> PathBuf {
        self.directory.join("lock")
    }

    pub(super) fn summary(&self) -> PathBuf {
        self.directory.join("summary.json")
    }

    pub(super) fn segment(&self, epoch: u64) -> PathBuf {
        self.directory.join(segment_name(epoch))
    }

    pub(super) fn inherited(&self) -> PathBuf {
        self.directory.join("inherited")
    }

    pub(super) fn inherited_segment(&self, epoch: u64) -> PathBuf {
        self.inherited().join(segment_name(epoch))
    }

    pub(super) fn blobs(&self) -> PathBuf {
        self.directory.join("blobs")
    }

    pub(super) fn blob(&self, hash: &Hash) -> PathBuf {
        self.blobs().join(hash.to_string())
    }

    pub(super) fn inbox(&self) -> PathBuf {
        self.directory.join("inbox")
    }
}

fn segment_name(epoch: u64) -> String {
    format!("{epoch:010}.jsonl")
}

/// Returns the epoch of a segment with this name.
pub(super) fn epoch_of(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".jsonl")?;
    let is_number = number.len() >= 10 && number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|epoch| is_number && *epoch > 0)
}

/// Encodes an id as a file name: letters, digits, `-`, `_` and inner `.` stay, other bytes become `%` and two digits.
fn encode_id(id: &SessionId) -> Option<String> {
    let id = id.as_str();
    if id.is_empty() || id.len() > MAX_ID {
        return None;
    }
    let mut name = String::new();
    for (index, byte) in id.bytes().enumerate() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || (byte == b'.' && index > 0) {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02x}"));
        }
    }
    // On common file systems, a file name has at most 255 bytes.
    (name.len() <= 255).then_some(name)
}

/// Returns the id of the session whose directory has this name; `None` for other names.
pub(super) fn id_of(name: &str) -> Option<SessionId> {
    let mut parts = name.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    let id = String::from_utf8(bytes).ok().map(SessionId::new)?;
    (encode_id(&id).as_deref() == Some(name)).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_names_in_one_directory() {
        for (id, expected) in [
            ("0198c5f0-6b5e-7cc1", Some("0198c5f0-6b5e-7cc1")),
            ("a.b_c", Some("a.b_c")),
            ("..", Some("%2e.")),
            (".deleted", Some("%2edeleted")),
            ("a/b", Some("a%2fb")),
            ("%2f", Some("%252f")),
            ("ü\0", Some("%c3%bc%00")),
            ("", None),
        ] {
            assert_eq!(encode_id(&SessionId::new(id)).as_deref(), expected, "{id:?}");
            assert_eq!(expected.and_then(id_of), expected.map(|_| SessionId::new(id)));
        }
        assert_eq!(encode_id(&SessionId::new("a".repeat(201))), None);
        assert_eq!(encode_id(&SessionId::new("/".repeat(100))), None);
        for name in [".deleted-1", "%2F", "%2", "a b", "%ff", ""] {
            assert_eq!(id_of(name), None, "{name:?}");
        }
    }

    #[test]
    fn segments_are_named_by_their_epoch() {
        let files = StoreLayout::new(PathBuf::from("/s")).session(&SessionId::new("x")).unwrap();
        assert_eq!(files.segment(12), Path::new("/s/sessions/x/0000000012.jsonl"));
        for (name, expected) in [
            ("0000000012.jsonl", Some(12)),
            ("12345678901.jsonl", Some(12_345_678_901)),
            ("12.jsonl", None),
            ("0000000000.jsonl", None),
            ("+000000001.jsonl", None),
            ("summary.json", None),
        ] {
            assert_eq!(epoch_of(name), expected, "{name}");
        }
    }
}
