//! Control sequences that terminals send for keys (ECMA-48).

use super::{Background, ESCAPE, Input, Key, KeyCode, MAX_SEQUENCE, Modifiers, SkippedSequence, Step};

/// Start of the answer to the query for the background colour.
pub(super) const BACKGROUND: &[u8] = b"\x1b]11;";

/// Decodes `ESC [ … final`.
pub(super) fn control_sequence(bytes: &[u8]) -> Step {
    let body = bytes.get(2..).unwrap_or_default();
    // The function keys of the Linux console.
    if let [b'[', rest @ ..] = body {
        return match rest {
            [] => Step::Incomplete,
            [key @ b'A'..=b'E', ..] => {
                Step::Decoded(4, Some(Input::Key(Key::plain(KeyCode::Function(1 + key - b'A')))))
            }
            _ => Step::Decoded(3, None),
        };
    }
    let is_inner = |byte: &&u8| matches!(byte, 0x20..=0x3f);
    let length = body.iter().take(MAX_SEQUENCE).take_while(is_inner).count();
    if length == MAX_SEQUENCE {
        return Step::TooLong(2 + length, SkippedSequence::Control);
    }
    let Some(last) = body.get(length) else { return Step::Incomplete };
    if !matches!(last, 0x40..=0x7e) {
        // Other input starts here.
        return Step::Decoded(2 + length, None);
    }
    let parameters = body.get(..length).unwrap_or_default();
    Step::Decoded(3 + length, meaning(parameters, *last))
}

/// Decodes `ESC O x`, which keypads and function keys send.
pub(super) fn single_shift(bytes: &[u8]) -> Step {
    let Some(last) = bytes.get(2) else { return Step::Incomplete };
    let code = match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'M' => KeyCode::Enter,
        b'P'..=b'S' => KeyCode::Function(1 + last - b'P'),
        &ESCAPE => return Step::Decoded(2, Some(Input::Key(Key::alt('O')))),
        _ => return Step::Decoded(3, None),
    };
    Step::Decoded(3, Some(Input::Key(Key::plain(code))))
}

/// Decodes or skips a string, such as `ESC ] … BEL` or `ESC P … ESC \`.
pub(super) fn string(bytes: &[u8]) -> Step {
    let body = bytes.get(2..).unwrap_or_default();
    for (index, byte) in body.iter().enumerate().take(MAX_SEQUENCE) {
        match (byte, body.get(index + 1)) {
            (0x07, _) => return Step::Decoded(3 + index, background(bytes, 2 + index)),
            (&ESCAPE, Some(b'\\')) => return Step::Decoded(4 + index, background(bytes, 2 + index)),
            (&ESCAPE, None) if index + 1 < MAX_SEQUENCE => return Step::Incomplete,
            (&ESCAPE, None) => return Step::TooLong(2 + index, SkippedSequence::String),
            // The sequence is not a string.
            (&ESCAPE, Some(_)) => return Step::Decoded(2 + index, None),
            _ => {}
        }
    }
    if body.len() > MAX_SEQUENCE {
        Step::TooLong(2 + MAX_SEQUENCE, SkippedSequence::String)
    } else {
        Step::Incomplete
    }
}

/// Returns the background that a string before `end` names, as in `11;rgb:ffff/ffff/ffff`.
fn background(bytes: &[u8], end: usize) -> Option<Input> {
    let colour = std::str::from_utf8(bytes.get(..end)?.strip_prefix(BACKGROUND)?).ok()?;
    let channels = colour.strip_prefix("rgb:").or_else(|| colour.strip_prefix("rgba:"))?;
    let mut channels = channels.split('/').map(channel);
    let (red, green, blue) = (channels.next()??, channels.next()??, channels.next()??);
    // Perceived brightness, in thousandths (ITU-R BT.601).
    let brightness = (299 * red + 587 * green + 114 * blue) / 1_000;
    let background = if brightness < 500 { Background::Dark } else { Background::Light };
    Some(Input::Background(background))
}

/// Returns the value of a channel in thousandths of the largest value with as many digits.
fn channel(digits: &str) -> Option<u32> {
    let largest =
        16_u32.checked_pow(digits.len().try_into().ok().filter(|count| (1..=4).contains(count))?)? - 1;
    Some(u32::from_str_radix(digits, 16).ok()? * 1_000 / largest)
}

/// Returns how many of these bytes belong to a sequence of this kind, and whether it ends there. `None` if more bytes are
/// needed.
pub(super) fn rest(skipped: SkippedSequence, bytes: &[u8]) -> Option<(usize, bool)> {
    match skipped {
        SkippedSequence::String => rest_of_string(bytes),
        SkippedSequence::Control => Some(rest_of_control_sequence(bytes)),
    }
}

fn rest_of_control_sequence(bytes: &[u8]) -> (usize, bool) {
    match bytes.iter().position(|byte| !matches!(byte, 0x20..=0x3f)) {
        None => (bytes.len(), false),
        Some(end) if matches!(bytes.get(end), Some(0x40..=0x7e)) => (end + 1, true),
        // Other input starts here.
        Some(end) => (end, true),
    }
}

/// Returns how many of these bytes belong to a string, and whether it ends there. `None` if more bytes are needed.
fn rest_of_string(bytes: &[u8]) -> Option<(usize, bool)> {
    let Some(end) = bytes.iter().position(|byte| matches!(byte, 0x07 | 0x1b)) else {
        return Some((bytes.len(), false));
    };
    match bytes.get(end..)? {
        [0x07, ..] => Some((end + 1, true)),
        [_, b'\\', ..] => Some((end + 2, true)),
        // Other input starts here.
        [_, _, ..] => Some((end, true)),
        _ if end > 0 => Some((end, false)),
        _ => None,
    }
}

/// Returns the meaning of a control sequence.
fn meaning(parameters: &[u8], last: u8) -> Option<Input> {
    let text = std::str::from_utf8(parameters).ok()?;
    let numbers: Vec<Option<u32>> = text.split(';').map(first_number).collect();
    let number = |index: usize| numbers.get(index).copied().flatten();
    let modifiers = modifiers(number(1).unwrap_or(1));
    // The kitty protocol reports a release as event type 3.
    if text.split(';').nth(1).and_then(|field| field.split(':').nth(1)) == Some("3") {
        return None;
    }
    let code = match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'P' | b'Q' | b'S' => KeyCode::Function(1 + last - b'P'),
        b'Z' => return Some(Input::Key(Key::plain(KeyCode::Tab).with_shift())),
        b'~' if number(0) == Some(27) => return character_key(number(2)?, modifiers),
        b'~' => numbered_key(number(0)?)?,
        b'u' => return character_key(number(0)?, modifiers),
        _ => return None,
    };
    Some(Input::Key(Key { code, modifiers }))
}

/// Returns the number before the first colon.
fn first_number(field: &str) -> Option<u32> {
    field.split(':').next().and_then(|number| number.parse().ok())
}

/// Returns the modifiers of a parameter: a bit set, plus one.
fn modifiers(parameter: u32) -> Modifiers {
    let bits = parameter.saturating_sub(1);
    Modifiers { shift: bits & 1 != 0, alt: bits & 2 != 0, ctrl: bits & 4 != 0 }
}

/// Returns the key of `CSI number ~`.
fn numbered_key(number: u32) -> Option<KeyCode> {
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => KeyCode::Function(u8::try_from(number - 10).ok()?),
        17..=21 => KeyCode::Function(u8::try_from(number - 11).ok()?),
        23 | 24 => KeyCode::Function(u8::try_from(number - 12).ok()?),
        _ => return None,
    })
}

/// Returns the key of a code point with modifiers.
fn character_key(code: u32, mut modifiers: Modifiers) -> Option<Input> {
    let code = match code {
        8 | 127 => KeyCode::Backspace,
        9 => KeyCode::Tab,
        // Also the Enter key of the keypad.
        13 | 57_414 => KeyCode::Enter,
        27 => KeyCode::Escape,
        _ => {
            let character = char::from_u32(code).filter(|character| !character.is_control())?;
            // The private use area contains keys without a character.
            if ('\u{e000}'..='\u{f8ff}').contains(&character) {
                return None;
            }
            let shifted = character.to_uppercase().next().filter(|_| modifiers.shift && !modifiers.ctrl);
            modifiers.shift = false;
            KeyCode::Char(shifted.unwrap_or(character))
        }
    };
    Some(Input::Key(Key { code, modifiers }))
}
