//! Bytes of an answer as text.

/// How far into a page a declaration of its encoding is looked for, as browsers do.
const SNIFFED: usize = 1024;

/// What Windows-1252 has where Latin-1 has control characters, from 0x80 on; U+FFFD where it has nothing.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{FFFD}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{FFFD}', 'Ž', '\u{FFFD}',
    '\u{FFFD}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{FFFD}', 'ž', 'Ÿ',
];

/// The text of `bytes`, by the encoding that `content_type` names, else the one that the page declares, else UTF-8.
///
/// Latin-1 is read as Windows-1252, as browsers do. Other encodings are read as UTF-8, with U+FFFD for what does not
/// fit.
pub(crate) fn decode(bytes: &[u8], content_type: &str, is_html: bool) -> String {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let declared = charset(content_type).or_else(|| {
        let head = bytes.get(..SNIFFED.min(bytes.len())).unwrap_or_default();
        is_html.then(|| charset(&String::from_utf8_lossy(head))).flatten()
    });
    match declared.as_deref() {
        Some("iso-8859-1" | "latin1" | "windows-1252" | "cp1252" | "us-ascii" | "iso-8859-15") => {
            bytes.iter().map(|byte| windows_1252(*byte)).collect()
        }
        Some(_) | None => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn windows_1252(byte: u8) -> char {
    match byte {
        0x80..=0x9F => WINDOWS_1252.get(usize::from(byte - 0x80)).copied().unwrap_or('\u{FFFD}'),
        byte => char::from(byte),
    }
}

/// The name after `charset=`, in lower case.
fn charset(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let (_, rest) = text.split_once("charset=")?;
    let name: String = rest
        .trim_start_matches(['"', '\'', ' '])
        .chars()
        .take_while(|character| {
            character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | ':' | '.')
        })
        .collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_comes_before_the_page_and_utf_8_last() {
        let meta = b"<meta charset='ISO-8859-1'>caf\xE9";
        let rows: [(&[u8], &str, bool, &str); 8] = [
            ("café".as_bytes(), "text/plain", false, "café"),
            (b"caf\xE9", "text/plain; charset=ISO-8859-1", false, "café"),
            (b"\x80 \x93a\x94 \x81", "text/plain;charset=\"windows-1252\"", false, "€ “a” \u{FFFD}"),
            (meta, "text/html", true, "<meta charset='ISO-8859-1'>café"),
            (meta, "text/html; charset=utf-8", true, "<meta charset='ISO-8859-1'>caf\u{FFFD}"),
            (meta, "text/plain", false, "<meta charset='ISO-8859-1'>caf\u{FFFD}"),
            (b"\xEF\xBB\xBFa", "", false, "a"),
            (b"a\xFF", "text/plain; charset=klingon", false, "a\u{FFFD}"),
        ];
        for (bytes, content_type, is_html, expected) in rows {
            assert_eq!(decode(bytes, content_type, is_html), expected, "{content_type}");
        }
    }
}
