//! One line of a journal: a JSON object that ends with the members of the store.
//!
//! ```json
//! {"at":"2026-01-01T00:00:00.000Z","input":"interrupt","seq":7,"synced":6,"hash":"…"}
//! ```
//!
//! The hash covers the bytes of the line up to `,"hash"`, the hash of the previous line, and the id of the session. A
//! line is therefore verified without parsing it as JSON. Verification fails for a line of another session, for a moved
//! line, and for a line that other software rewrote.

use pintle_agent::SessionId;
use serde::{Deserialize, Serialize};

use crate::hash::Hash;
use crate::store::Position;

/// Context string of the hashes, as BLAKE3 requires it. It separates the hashes of lines from other uses of BLAKE3.
const PURPOSE: &str = "pintle-store 2026-11-23 line of a session's journal";

const HASH_MEMBER: &str = ",\"hash\":\"";
const END: &str = "\"}";

/// Length of the hash member and of the end of the line after it.
const HASH_LEN: usize = HASH_MEMBER.len() + Hash::DIGITS + END.len();

/// The members with the position are within this many bytes before the hash: two numbers of up to 20 digits, and their
/// names.
const POSITION_LEN: usize = 64;

/// Version of the format of journals.
pub const VERSION: u64 = 1;

/// First line of each writer. It names the line that the writer follows.
///
/// ```json
/// {"journal":1,"session":"…","epoch":2,"follows":{"epoch":1,"seq":40,"hash":"…"},"seq":41,"synced":40,"hash":"…"}
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SegmentHeader {
    /// Version of the format, as [`VERSION`].
    pub journal: u64,
    /// Session that the writer writes to.
    pub session: SessionId,
    /// Number of the writer.
    pub epoch: u64,
    /// Last line of the previous writer.
    pub follows: Position,
    /// Session that contains the followed line, if this is the first line of a fork of that session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
}

/// Key of the hashes of one session's lines.
#[derive(Clone, Debug)]
pub struct HashChain {
    session: blake3::Hasher,
}

/// A line in the right format whose hash is not verified yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawLine<'a> {
    /// The bytes that the hash covers.
    covered: &'a [u8],
    /// Number of the line.
    pub seq: u64,
    /// Highest line that was known to survive a crash of the machine when this one was written.
    pub synced: u64,
    /// Hash of the line, as the line contains it.
    pub hash: Hash,
}

impl SegmentHeader {
    /// Creates the first line of writer `epoch`, after line `follows`.
    #[must_use]
    pub fn new(session: SessionId, epoch: u64, follows: Position) -> Self {
        Self { journal: VERSION, session, epoch, follows, forked_from: None }
    }

    /// Makes it the first line of a fork of this session.
    #[must_use]
    pub fn forked_from(mut self, origin: SessionId) -> Self {
        self.forked_from = Some(origin);
        self
    }

    /// Returns the JSON object of the line.
    #[must_use]
    pub fn object(&self) -> String {
        // A header contains no value that JSON cannot represent.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl HashChain {
    /// Creates the key for the lines of a session.
    #[must_use]
    pub fn new(session: &SessionId) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(PURPOSE);
        let id = session.as_str().as_bytes();
        hasher.update(&(id.len() as u64).to_le_bytes()).update(id);
        Self { session: hasher }
    }

    fn hash(&self, before: &Hash, covered: &[u8]) -> Hash {
        let mut hasher = self.session.clone();
        hasher.update(before.as_bytes()).update(covered);
        Hash::from_bytes(*hasher.finalize().as_bytes())
    }

    /// Returns the line with this JSON object, and its hash. The line ends with a line feed.
    #[must_use]
    pub fn line(&self, object: &str, seq: u64, synced: u64, before: &Hash) -> (String, Hash) {
        let members = object.trim_end().strip_suffix('}').unwrap_or(object);
        let comma = if members.trim_end().ends_with('{') { "" } else { "," };
        let mut text = format!("{members}{comma}\"seq\":{seq},\"synced\":{synced}");
        let hash = self.hash(before, text.as_bytes());
        text.push_str(HASH_MEMBER);
        text.push_str(&hash.to_string());
        text.push_str(END);
        text.push('\n');
        (text, hash)
    }

    /// Returns whether the hash of the line is right, if the previous line has the hash `before`.
    #[must_use]
    pub fn verifies(&self, line: &RawLine<'_>, before: &Hash) -> bool {
        self.hash(before, line.covered) == line.hash
    }
}

impl<'a> RawLine<'a> {
    /// Parses a line without its line feed. Returns `None` for other bytes.
    #[must_use]
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let (covered, hash) = line.split_at_checked(line.len().checked_sub(HASH_LEN)?)?;
        let hash = hash.strip_prefix(HASH_MEMBER.as_bytes())?.strip_suffix(END.as_bytes())?;
        let hash: Hash = std::str::from_utf8(hash).ok()?.parse().ok()?;
        let tail = covered.get(covered.len().saturating_sub(POSITION_LEN)..)?;
        // The tail may start in the middle of a multi-byte character of the object.
        let tail = String::from_utf8_lossy(tail);
        let (_, position) = tail.rsplit_once("\"seq\":")?;
        let (seq, synced) = position.split_once(",\"synced\":")?;
        Some(Self { covered, seq: seq.parse().ok()?, synced: synced.parse().ok()?, hash })
    }

    /// Returns the JSON object, which ends with the members for the position.
    #[must_use]
    pub fn object(&self) -> Option<String> {
        let mut text = std::str::from_utf8(self.covered).ok()?.to_owned();
        text.push('}');
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIRST: Hash = Hash::START;

    fn chain() -> HashChain {
        HashChain::new(&SessionId::new("s"))
    }

    fn parsed(text: &str) -> RawLine<'_> {
        RawLine::parse(text.strip_suffix('\n').unwrap().as_bytes()).unwrap()
    }

    #[test]
    fn members_follow_those_of_the_object() {
        for (object, expected) in [
            ("{}", "{\"seq\":1,\"synced\":0,\"hash\":"),
            ("{\"a\":[{}]}", "{\"a\":[{}],\"seq\":1,\"synced\":0,\"hash\":"),
            ("{\"a\":\"}\"}\n", "{\"a\":\"}\",\"seq\":1,\"synced\":0,\"hash\":"),
        ] {
            let (text, hash) = chain().line(object, 1, 0, &FIRST);
            assert!(text.starts_with(expected), "{text}");
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value["hash"], hash.to_string());
        }
    }

    #[test]
    fn hash_binds_session_predecessor_and_text() {
        let (text, hash) = chain().line("{\"a\":\"ü\"}", 3, 2, &FIRST);
        let line = parsed(&text);
        assert_eq!((line.seq, line.synced, line.hash), (3, 2, hash));
        assert!(chain().verifies(&line, &FIRST));
        assert!(!chain().verifies(&line, &hash));
        assert!(!HashChain::new(&SessionId::new("t")).verifies(&line, &FIRST));
        let object: serde_json::Value = serde_json::from_str(&line.object().unwrap()).unwrap();
        assert_eq!(object, serde_json::json!({"a": "ü", "seq": 3, "synced": 2}));
    }

    /// An id that continues like a line of another session does not make a line of it.
    #[test]
    fn session_and_text_do_not_run_into_each_other() {
        let (text, _) = HashChain::new(&SessionId::new("ab")).line("{}", 1, 0, &FIRST);
        assert!(!HashChain::new(&SessionId::new("a")).verifies(&parsed(&text), &FIRST));
    }

    #[test]
    fn every_changed_byte_is_found() {
        let (text, _) = chain().line("{\"text\":\"some text\"}", 12, 11, &FIRST);
        let bytes = text.strip_suffix('\n').unwrap().as_bytes();
        for at in 0..bytes.len() {
            for flip in [0x01, 0x20, 0x80] {
                let mut changed = bytes.to_vec();
                changed[at] ^= flip;
                let verified = RawLine::parse(&changed).is_some_and(|line| chain().verifies(&line, &FIRST));
                assert!(!verified, "byte {at}, {flip:#x}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = RawLine::parse(&bytes);
        }

        #[test]
        fn written_lines_are_read(text in ".*", seq: u64, synced: u64) {
            let object = serde_json::json!({"text": text}).to_string();
            let (line, hash) = chain().line(&object, seq, synced, &FIRST);
            let line = parsed(&line);
            prop_assert!(chain().verifies(&line, &FIRST));
            prop_assert_eq!((line.seq, line.synced, line.hash), (seq, synced, hash));
        }
    }
}
