//! Text in `$'…'`.

use std::iter::Peekable;
use std::str::Chars;

/// Reads up to the closing quote, and returns the text with its escapes decoded, as bash does.
pub(super) fn decode(rest: &mut Peekable<Chars<'_>>) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4];
    while let Some(character) = rest.next() {
        match character {
            '\'' => break,
            '\\' => escape(rest, &mut bytes),
            other => bytes.extend_from_slice(other.encode_utf8(&mut buffer).as_bytes()),
        }
    }
    // Bash drops the text after a NUL.
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

fn escape(rest: &mut Peekable<Chars<'_>>, bytes: &mut Vec<u8>) {
    let Some(character) = rest.next() else { return };
    let mut buffer = [0; 4];
    match character {
        'a' => bytes.push(0x07),
        'b' => bytes.push(0x08),
        'e' | 'E' => bytes.push(0x1b),
        'f' => bytes.push(0x0c),
        'n' => bytes.push(b'\n'),
        'r' => bytes.push(b'\r'),
        't' => bytes.push(b'\t'),
        'v' => bytes.push(0x0b),
        '\\' | '\'' | '"' | '?' => bytes.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes()),
        'c' => {
            let control = rest.next().and_then(|next| u8::try_from(next).ok()).unwrap_or_default();
            bytes.push(control & 0x1f);
        }
        'x' => {
            let has_braces = rest.next_if_eq(&'{').is_some();
            match number(rest, 16, if has_braces { 8 } else { 2 }) {
                Some(value) => bytes.push(low_byte(value)),
                None => bytes.extend_from_slice(b"\\x"),
            }
            if has_braces {
                let _closing = rest.next_if_eq(&'}');
            }
        }
        'u' | 'U' => {
            let value = number(rest, 16, if character == 'u' { 4 } else { 8 });
            let decoded = value.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
            bytes.extend_from_slice(decoded.encode_utf8(&mut buffer).as_bytes());
        }
        '0'..='7' => {
            let first = character.to_digit(8).unwrap_or_default();
            let value = (0..2).fold(first, |value, _| match number(rest, 8, 1) {
                Some(digit) => value * 8 + digit,
                None => value,
            });
            bytes.push(low_byte(value));
        }
        other => {
            bytes.push(b'\\');
            bytes.extend_from_slice(other.encode_utf8(&mut buffer).as_bytes());
        }
    }
}

fn low_byte(value: u32) -> u8 {
    u8::try_from(value & 0xff).unwrap_or_default()
}

/// Reads a number with at most `digits` digits; `None` if there is no digit.
fn number(rest: &mut Peekable<Chars<'_>>, radix: u32, digits: usize) -> Option<u32> {
    let mut value = None;
    for _ in 0..digits {
        let Some(digit) = rest.next_if(|next| next.is_digit(radix)).and_then(|next| next.to_digit(radix))
        else {
            break;
        };
        value = Some(value.unwrap_or(0_u32).wrapping_mul(radix).wrapping_add(digit));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_as_bash_does() {
        for (quoted, expected) in [
            (r"push' x", "push"),
            (r"\x70ush'", "push"),
            (r"\x{70}ush'", "push"),
            (r"\160ush'", "push"),
            (r"\u0070\U00000075sh'", "push"),
            (r"pu\x73\150'", "push"),
            (r"a\'b\\c\q'", r"a'b\c\q"),
            (r"a\tb\n'", "a\tb\n"),
            (r"\xc3\xa9'", "é"),
            (r"push\0x'", "push"),
            (r"\cA\x'", "\u{1}\\x"),
            (r"a", "a"),
        ] {
            assert_eq!(decode(&mut quoted.chars().peekable()), expected, "{quoted}");
        }
        let mut rest = r"a\'b' c".chars().peekable();
        decode(&mut rest);
        assert_eq!(rest.collect::<String>(), " c");
    }
}
