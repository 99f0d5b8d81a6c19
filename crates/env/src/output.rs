//! Captured output: small outputs in memory, large ones in an unnamed spool file.
#![expect(clippy::disallowed_methods, reason = "spool files are local, not files of the environment")]

mod capture;
mod collector;
mod escapes;
mod frames;
mod redactions;
mod spool;

use std::{
    fmt,
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    ser::{Error as _, SerializeStruct},
};

use self::spool::SpooledOutput;
pub use self::{
    capture::{CapturedOutput, OutputCapture},
    collector::OutputCollector,
    redactions::Redactions,
};

/// An output stream of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    /// The standard output.
    Stdout,
    /// The standard error.
    Stderr,
}

/// A chunk of output as it arrived. It may end in the middle of a character.
///
/// `Debug` shows the length only.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputChunk {
    /// The stream it was written to.
    pub stream: OutputStream,
    /// The bytes written; never empty.
    pub bytes: Vec<u8>,
}

impl OutputChunk {
    /// Creates a chunk of `stream`.
    #[must_use]
    pub fn new(stream: OutputStream, bytes: impl Into<Vec<u8>>) -> Self {
        Self { stream, bytes: bytes.into() }
    }
}

impl fmt::Debug for OutputChunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputChunk").field("stream", &self.stream).field("bytes", &self.bytes.len()).finish()
    }
}

/// Limits on captured output, and its spool directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputLimits {
    /// Number of bytes kept in memory; default 1 MiB.
    pub inline: usize,
    /// Number of bytes kept in total; further bytes are counted and dropped. Default 4 GiB.
    pub total: u64,
    /// The directory for spool files, on the local machine; default `/tmp`.
    pub spool_dir: PathBuf,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self { inline: 1 << 20, total: 4 << 30, spool_dir: PathBuf::from("/tmp") }
    }
}

impl OutputLimits {
    /// Sets the number of bytes kept in memory.
    #[must_use]
    pub fn with_inline(mut self, bytes: usize) -> Self {
        self.inline = bytes;
        self
    }

    /// Sets the number of bytes kept in total.
    #[must_use]
    pub fn with_total(mut self, bytes: u64) -> Self {
        self.total = bytes;
        self
    }

    /// Sets the directory for spool files.
    #[must_use]
    pub fn with_spool_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.spool_dir = directory.into();
        self
    }
}

/// Complete output of a command, cheap to clone.
///
/// Up to 1 MiB is held in memory, anything larger in a spool file. The spool file is unnamed from
/// its creation, so nothing is left behind if the process dies. All outputs share one such file per
/// directory and thus one descriptor; each occupies disk space until its last clone is dropped.
/// Reading a spooled output blocks on the disk.
///
/// `Serialize` writes the text, or for a spooled output its size and both ends:
/// `{"spooled":true,"bytes":n,"dropped":n,"head":"…","tail":"…"}`. `Debug` shows no content.
#[derive(Clone)]
pub struct Output {
    content: Content,
    dropped: u64,
}

/// Bytes serialised for each end of a spooled output.
const SERIALIZED_END: usize = 16 << 10;

/// Block size for copying an output.
const COPY_BLOCK: usize = 1 << 20;

#[derive(Clone)]
enum Content {
    Inline(Arc<Vec<u8>>),
    Spooled {
        file: Arc<SpooledOutput>,
        len: u64,
    },
    /// A spooled output deserialised from a record: its head and tail.
    Recorded(Arc<Ends>),
}

/// A spooled output as it is serialised.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Ends {
    bytes: u64,
    #[serde(default)]
    dropped: u64,
    head: String,
    tail: String,
}

impl Output {
    /// Returns the number of bytes kept.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.content {
            Content::Inline(bytes) => bytes.len() as u64,
            Content::Spooled { len, .. } => *len,
            Content::Recorded(ends) => ends.bytes,
        }
    }

    /// Returns true if no byte is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if the bytes are in a spool file, or were when the output was recorded.
    #[must_use]
    pub fn is_spooled(&self) -> bool {
        match self.content {
            Content::Inline(_) => false,
            Content::Spooled { .. } | Content::Recorded(_) => true,
        }
    }

    /// Returns the number of bytes that were dropped: beyond the total limit, or because the spool
    /// disk was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Reads up to `len` bytes from `offset`; fewer only at the end.
    ///
    /// # Errors
    ///
    /// Those of reading the spool file.
    pub fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let rest = self.len().saturating_sub(offset);
        let len = usize::try_from(rest).unwrap_or(usize::MAX).min(len);
        match &self.content {
            Content::Inline(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let wanted = bytes.get(start..).and_then(|rest| rest.get(..len));
                Ok(wanted.unwrap_or_default().to_vec())
            }
            Content::Spooled { file, .. } => {
                let mut bytes = vec![0; len];
                file.read_exact_at(&mut bytes, offset)?;
                Ok(bytes)
            }
            Content::Recorded(ends) => ends.read_at(offset, len).ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::Unsupported,
                    "the record holds only the two ends of this output",
                )
            }),
        }
    }

    /// Returns the complete output as text, with U+FFFD for invalid UTF-8. As large as the output.
    ///
    /// # Errors
    ///
    /// Those of reading the spool file.
    pub fn to_text_lossy(&self) -> io::Result<String> {
        Ok(match &self.content {
            Content::Inline(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Content::Spooled { .. } | Content::Recorded(_) => lossy(self.read_at(0, usize::MAX)?),
        })
    }

    /// Returns the output as the plain text that a terminal shows: without escape sequences, and with only the last frame of
    /// each line. A carriage return starts a frame, unless it is part of a line end. Returns `None` if nothing changes, or if
    /// there is no room for a copy, which `limits` keeps in memory or on disk.
    ///
    /// Reads and writes a spooled output, which blocks.
    ///
    /// # Errors
    ///
    /// Those of reading the spool file.
    pub fn plain_text(&self, limits: OutputLimits) -> io::Result<Option<Self>> {
        frames::plain_text(self, limits)
    }

    /// Returns the first `max_bytes` as text, dropping a character split by the cut.
    ///
    /// # Errors
    ///
    /// Those of reading the spool file.
    pub fn head_text_lossy(&self, max_bytes: usize) -> io::Result<String> {
        let mut bytes = self.read_at(0, max_bytes)?;
        if (bytes.len() as u64) < self.len() {
            bytes.truncate(bytes.len() - split_character(&bytes));
        }
        Ok(lossy(bytes))
    }

    /// Returns the last `max_bytes` as text, dropping a character split by the cut.
    ///
    /// # Errors
    ///
    /// Those of reading the spool file.
    pub fn tail_text_lossy(&self, max_bytes: usize) -> io::Result<String> {
        let offset = self.len().saturating_sub(max_bytes as u64);
        let mut bytes = self.read_at(offset, max_bytes)?;
        if offset > 0 {
            // A character has at most three continuation bytes.
            let split = bytes.iter().take(3).take_while(|byte| is_continuation(**byte));
            let split = split.count();
            bytes.drain(..split);
        }
        Ok(lossy(bytes))
    }

    /// Copies the output to a file at `path`, replacing an existing one. Returns the number of
    /// bytes copied.
    ///
    /// # Errors
    ///
    /// Those of reading the spool file and of writing the new one.
    pub fn persist(&self, path: &Path) -> io::Result<u64> {
        let mut file = File::create(path)?;
        self.copy_to(&mut file)
    }

    fn copy_to(&self, target: &mut impl Write) -> io::Result<u64> {
        let mut offset = 0;
        loop {
            let block = self.read_at(offset, COPY_BLOCK)?;
            if block.is_empty() {
                return Ok(offset);
            }
            target.write_all(&block)?;
            offset += block.len() as u64;
        }
    }
}

impl Default for Output {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl From<Vec<u8>> for Output {
    fn from(bytes: Vec<u8>) -> Self {
        Self { content: Content::Inline(Arc::new(bytes)), dropped: 0 }
    }
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        Self::from(text.into_bytes())
    }
}

impl Ends {
    /// Returns the bytes if the range lies within one end.
    fn read_at(&self, offset: u64, len: usize) -> Option<Vec<u8>> {
        let start = usize::try_from(offset).ok()?;
        if let Some(found) = self.head.as_bytes().get(start..start.checked_add(len)?) {
            return Some(found.to_vec());
        }
        let tail_start = self.bytes.checked_sub(self.tail.len() as u64)?;
        let start = usize::try_from(offset.checked_sub(tail_start)?).ok()?;
        self.tail.as_bytes().get(start..start.checked_add(len)?).map(<[u8]>::to_vec)
    }
}

/// Outputs in memory are equal if their bytes are; a spooled output equals only its clones.
impl PartialEq for Output {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.content, &other.content) {
            (Content::Inline(a), Content::Inline(b)) => a == b,
            (Content::Spooled { file: a, .. }, Content::Spooled { file: b, .. }) => Arc::ptr_eq(a, b),
            (Content::Recorded(a), Content::Recorded(b)) => a == b,
            (Content::Inline(_) | Content::Spooled { .. } | Content::Recorded(_), _) => false,
        };
        same && self.dropped == other.dropped
    }
}

/// Reads what `Serialize` wrote. Of a spooled output only head and tail are restored.
impl<'de> Deserialize<'de> for Output {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Record {
            Text(String),
            Ends(Ends),
        }
        Ok(match Record::deserialize(deserializer)? {
            Record::Text(text) => Self::from(text),
            Record::Ends(ends) => Self { dropped: ends.dropped, content: Content::Recorded(Arc::new(ends)) },
        })
    }
}

impl From<&str> for Output {
    fn from(text: &str) -> Self {
        Self::from(text.as_bytes().to_vec())
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("bytes", &self.len())
            .field("spooled", &self.is_spooled())
            .field("dropped", &self.dropped)
            .finish()
    }
}

impl Serialize for Output {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Content::Inline(bytes) = &self.content
            && self.dropped == 0
        {
            return serializer.serialize_str(&String::from_utf8_lossy(bytes));
        }
        let (head, tail) = match &self.content {
            Content::Recorded(ends) => (ends.head.clone(), ends.tail.clone()),
            Content::Inline(_) | Content::Spooled { .. } => (
                self.head_text_lossy(SERIALIZED_END).map_err(S::Error::custom)?,
                self.tail_text_lossy(SERIALIZED_END).map_err(S::Error::custom)?,
            ),
        };
        let mut fields = serializer.serialize_struct("Output", 5)?;
        fields.serialize_field("spooled", &true)?;
        fields.serialize_field("bytes", &self.len())?;
        fields.serialize_field("dropped", &self.dropped)?;
        fields.serialize_field("head", &head)?;
        fields.serialize_field("tail", &tail)?;
        fields.end()
    }
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Returns how many bytes at the end of `bytes` are the start of an incomplete character.
fn split_character(bytes: &[u8]) -> usize {
    let end = bytes.len().saturating_sub(3);
    let Some(tail) = bytes.get(end..) else {
        return 0;
    };
    match std::str::from_utf8(skip_continuations(tail)) {
        Err(error) if error.error_len().is_none() => skip_continuations(tail).len() - error.valid_up_to(),
        Ok(_) | Err(_) => 0,
    }
}

fn skip_continuations(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().take_while(|byte| is_continuation(**byte)).count();
    bytes.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests;
