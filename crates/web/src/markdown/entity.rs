//! Character references: `&amp;`, `&#233;`, `&#xE9;`.

use std::borrow::Cow;

/// The longest reference that is looked for, in bytes between `&` and `;`.
const LONGEST: usize = 10;

/// The names that pages really use. Another one stays as it is written.
const NAMES: [(&str, &str); 72] = [
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("quot", "\""),
    ("apos", "'"),
    ("nbsp", " "),
    ("ndash", "–"),
    ("mdash", "—"),
    ("hellip", "…"),
    ("lsquo", "‘"),
    ("rsquo", "’"),
    ("sbquo", "‚"),
    ("ldquo", "“"),
    ("rdquo", "”"),
    ("bdquo", "„"),
    ("laquo", "«"),
    ("raquo", "»"),
    ("lsaquo", "‹"),
    ("rsaquo", "›"),
    ("bull", "•"),
    ("middot", "·"),
    ("copy", "©"),
    ("reg", "®"),
    ("trade", "™"),
    ("sect", "§"),
    ("para", "¶"),
    ("deg", "°"),
    ("plusmn", "±"),
    ("times", "×"),
    ("divide", "÷"),
    ("frac12", "½"),
    ("frac14", "¼"),
    ("frac34", "¾"),
    ("micro", "µ"),
    ("larr", "←"),
    ("uarr", "↑"),
    ("rarr", "→"),
    ("darr", "↓"),
    ("harr", "↔"),
    ("rArr", "⇒"),
    ("ne", "≠"),
    ("le", "≤"),
    ("ge", "≥"),
    ("infin", "∞"),
    ("minus", "−"),
    ("euro", "€"),
    ("pound", "£"),
    ("yen", "¥"),
    ("cent", "¢"),
    ("auml", "ä"),
    ("ouml", "ö"),
    ("uuml", "ü"),
    ("Auml", "Ä"),
    ("Ouml", "Ö"),
    ("Uuml", "Ü"),
    ("szlig", "ß"),
    ("eacute", "é"),
    ("egrave", "è"),
    ("ecirc", "ê"),
    ("agrave", "à"),
    ("aacute", "á"),
    ("acirc", "â"),
    ("ccedil", "ç"),
    ("ntilde", "ñ"),
    ("oacute", "ó"),
    ("iacute", "í"),
    ("uacute", "ú"),
    ("aring", "å"),
    ("oslash", "ø"),
    ("aelig", "æ"),
    ("shy", ""),
    ("zwj", ""),
];

/// The text with its character references replaced.
pub(super) fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut decoded = String::with_capacity(text.len());
    let mut parts = text.split('&');
    decoded.push_str(parts.next().unwrap_or_default());
    for part in parts {
        match reference(part) {
            Some((character, rest)) => {
                character.push_to(&mut decoded);
                decoded.push_str(rest);
            }
            None => {
                decoded.push('&');
                decoded.push_str(part);
            }
        }
    }
    Cow::Owned(decoded)
}

enum Character {
    Named(&'static str),
    Numbered(char),
}

impl Character {
    fn push_to(&self, text: &mut String) {
        match self {
            Self::Named(named) => text.push_str(named),
            Self::Numbered(character) => text.push(*character),
        }
    }
}

/// The character that a text after `&` begins with, and what follows it.
fn reference(text: &str) -> Option<(Character, &str)> {
    let end = text.bytes().take(LONGEST + 1).position(|byte| byte == b';')?;
    let (name, rest) = (text.get(..end)?, text.get(end + 1..)?);
    let character = match name.strip_prefix('#') {
        None => Character::Named(NAMES.iter().find(|(known, _)| *known == name)?.1),
        Some(digits) => {
            let (digits, radix) = digits.strip_prefix(['x', 'X']).map_or((digits, 10), |digits| (digits, 16));
            let number = u32::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with('+'))?;
            let character = char::from_u32(number).filter(|c| !c.is_control() || c.is_ascii_whitespace());
            Character::Numbered(character.unwrap_or('\u{FFFD}'))
        }
    };
    Some((character, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_replaced_and_the_rest_stays() {
        let rows = [
            ("a &amp; b &lt;c&gt;", "a & b <c>"),
            ("&#233;&#xE9;&#XE9;", "ééé"),
            ("&#0;&#xD800;&#9999999;&#27;", "\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}"),
            ("AT&T; R&D &unknown; &", "AT&T; R&D &unknown; &"),
            ("&amp;lt;", "&lt;"),
            ("&#;&#x;&;&#+5;", "&#;&#x;&;&#+5;"),
            ("&é;", "&é;"),
        ];
        for (text, expected) in rows {
            assert_eq!(decode(text), expected, "{text}");
        }
    }
}
