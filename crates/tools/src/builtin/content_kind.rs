//! Detection of the kind of a file by its first bytes.

/// The number of bytes that are examined.
pub(super) const SAMPLE: u64 = 8 << 10;

/// The kind of a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentKind {
    /// An image that models accept, with its media type.
    Image(&'static str),
    /// Other binary data, with its name.
    Binary(&'static str),
    /// Text.
    Text,
}

/// Unambiguous signatures.
const SIGNATURES: [(&[u8], ContentKind); 5] = [
    (b"\x89PNG\r\n\x1a\n", ContentKind::Image("image/png")),
    (b"\xFF\xD8\xFF", ContentKind::Image("image/jpeg")),
    (b"GIF87a", ContentKind::Image("image/gif")),
    (b"GIF89a", ContentKind::Image("image/gif")),
    (b"%PDF-", ContentKind::Binary("PDF document")),
];

/// Signatures with which a text could start. They count only if the sample is not text.
const BINARY_SIGNATURES: [(&[u8], &str); 14] = [
    (b"\xFF\xFE", "UTF-16 text"),
    (b"\xFE\xFF", "UTF-16 text"),
    (b"PK\x03\x04", "ZIP archive, or a document in one"),
    (b"\x1F\x8B", "gzip archive"),
    (b"BZh", "bzip2 archive"),
    (b"\xFD7zXZ\0", "xz archive"),
    (b"\x28\xB5\x2F\xFD", "Zstandard archive"),
    (b"7z\xBC\xAF", "7z archive"),
    (b"\x7FELF", "ELF program"),
    (b"\xCF\xFA\xED\xFE", "Mach-O program"),
    (b"\0asm", "WebAssembly module"),
    (b"\xCA\xFE\xBA\xBE", "Java class or universal program"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"RIFF", "RIFF sound or video"),
];

/// Signatures of two letters. They count only with a zero byte, which these formats contain early.
const SHORT_SIGNATURES: [(&[u8], &str); 2] = [(b"MZ", "Windows program"), (b"BM", "BMP image")];

impl ContentKind {
    /// Returns the kind of a file that starts with `sample`.
    pub(super) fn from_sample(sample: &[u8]) -> Self {
        if let Some((_, kind)) = SIGNATURES.iter().find(|(signature, _)| sample.starts_with(signature)) {
            return *kind;
        }
        if sample.starts_with(b"RIFF") && sample.get(8..12) == Some(b"WEBP") {
            return Self::Image("image/webp");
        }
        let zero = sample.contains(&0);
        // The sample may end inside a character.
        let utf8 = std::str::from_utf8(sample).map_or_else(|error| error.error_len().is_none(), |_| true);
        if utf8 && !zero {
            return Self::Text;
        }
        let short = SHORT_SIGNATURES.iter().filter(|_| zero);
        match BINARY_SIGNATURES.iter().chain(short).find(|(signature, _)| sample.starts_with(signature)) {
            Some((_, name)) => Self::Binary(name),
            None if zero => Self::Binary("binary data"),
            // Probably text in a legacy encoding.
            None => Self::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_identified_by_their_first_bytes() {
        let cases: [(&[u8], ContentKind); 17] = [
            (b"", ContentKind::Text),
            (b"fn main() {}\n", ContentKind::Text),
            (b"BMX and MZ and PK are words", ContentKind::Text),
            ("é".as_bytes(), ContentKind::Text),
            (b"cut in a character \xC3", ContentKind::Text),
            (b"caf\xE9 in Latin-1", ContentKind::Text),
            (b"BM\xDCLLER in Latin-1", ContentKind::Text),
            (b"BM\x8A\x04\0\0\0\0", ContentKind::Binary("BMP image")),
            (b"MZ\x90\0\x03", ContentKind::Binary("Windows program")),
            (b"\x89PNG\r\n\x1a\n\0\0", ContentKind::Image("image/png")),
            (b"\xFF\xD8\xFF\xE0", ContentKind::Image("image/jpeg")),
            (b"GIF89a", ContentKind::Image("image/gif")),
            (b"RIFF\x10\0\0\0WEBPVP8 ", ContentKind::Image("image/webp")),
            (b"%PDF-1.7\n", ContentKind::Binary("PDF document")),
            (b"PK\x03\x04\x14\0", ContentKind::Binary("ZIP archive, or a document in one")),
            (b"\xFF\xFEa\0", ContentKind::Binary("UTF-16 text")),
            (b"a\0b", ContentKind::Binary("binary data")),
        ];
        for (sample, expected) in cases {
            assert_eq!(ContentKind::from_sample(sample), expected, "{sample:?}");
        }
    }
}
