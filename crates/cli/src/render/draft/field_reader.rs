//! JSON that is not complete yet: the texts in the fields of an object, as they grow.

use std::mem;

/// The longest name of a field that is told apart, in bytes.
const LONGEST_NAME: usize = 64;

/// Part of a field whose value is a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The name of the field.
    pub(super) name: String,
    /// What the text goes on with.
    pub(super) text: String,
    /// Whether the text ends with it.
    pub(super) ends: bool,
}

/// Reads an object in pieces, cut anywhere. What is not an object, or no JSON, has no fields from there on.
#[derive(Debug, Default)]
pub(super) struct FieldReader {
    place: Place,
    name: String,
    escape: Option<Escape>,
    /// The first half of a character that takes two escapes.
    surrogate: Option<u32>,
}

/// Where in the object the reader stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    BeforeObject,
    BeforeName,
    Name,
    BeforeValue,
    Text,
    /// A value that is no text: brackets that are open, and whether a text is open in it.
    Other {
        depth: usize,
        in_text: bool,
    },
    End,
}

/// What follows a backslash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    Begun,
    Unicode { digits: u8, code: u32 },
}

impl FieldReader {
    /// Takes in the next piece of the JSON and gives what it adds to the fields.
    pub(super) fn read(&mut self, json: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        for character in json.chars() {
            match self.place {
                Place::Text => {
                    if self.text(character, &mut text) {
                        self.place = Place::BeforeName;
                        let (name, text) = (mem::take(&mut self.name), mem::take(&mut text));
                        pieces.push(Piece { name, text, ends: true });
                    }
                }
                Place::Name => self.in_name(character),
                Place::Other { depth, in_text } => self.other(character, depth, in_text),
                Place::BeforeObject => match character {
                    '{' => self.place = Place::BeforeName,
                    character if character.is_whitespace() => {}
                    _ => self.place = Place::End,
                },
                Place::BeforeName => match character {
                    '"' => self.place = Place::Name,
                    '}' => self.place = Place::End,
                    _ => {}
                },
                Place::BeforeValue => self.before_value(character),
                Place::End => break,
            }
        }
        if !text.is_empty() {
            pieces.push(Piece { name: self.name.clone(), text, ends: false });
        }
        pieces
    }

    fn in_name(&mut self, character: char) {
        let mut name = mem::take(&mut self.name);
        if self.text(character, &mut name) {
            self.place = Place::BeforeValue;
        }
        if name.len() <= LONGEST_NAME {
            self.name = name;
        } else {
            // Only that it is none of the known names counts.
            self.name = "…".to_owned();
        }
    }

    fn before_value(&mut self, character: char) {
        self.place = match character {
            '"' => Place::Text,
            '{' | '[' => Place::Other { depth: 1, in_text: false },
            character if character == ':' || character.is_whitespace() => return,
            _ => Place::Other { depth: 0, in_text: false },
        };
    }

    fn other(&mut self, character: char, depth: usize, in_text: bool) {
        if in_text {
            if self.text(character, &mut String::new()) {
                self.place = Place::Other { depth, in_text: false };
            }
            return;
        }
        self.place = match (character, depth) {
            ('"', _) => Place::Other { depth, in_text: true },
            ('{' | '[', _) => Place::Other { depth: depth + 1, in_text },
            (',', 0) => Place::BeforeName,
            ('}' | ']', 0) => Place::End,
            ('}' | ']', 1) => Place::BeforeName,
            ('}' | ']', _) => Place::Other { depth: depth - 1, in_text },
            _ => return,
        };
        if self.place == Place::BeforeName {
            self.name.clear();
        }
    }

    /// Adds a character of a text to `out`; whether the text ends with it.
    fn text(&mut self, character: char, out: &mut String) -> bool {
        match (self.escape, character) {
            (None, '"') => return true,
            (None, '\\') => self.escape = Some(Escape::Begun),
            (None, character) => out.push(character),
            (Some(Escape::Begun), 'u') => self.escape = Some(Escape::Unicode { digits: 0, code: 0 }),
            (Some(Escape::Begun), character) => {
                self.escape = None;
                out.push(unescaped(character));
            }
            (Some(Escape::Unicode { digits, code }), character) => {
                let code = code << 4 | character.to_digit(16).unwrap_or_default();
                if digits < 3 {
                    self.escape = Some(Escape::Unicode { digits: digits + 1, code });
                } else {
                    self.escape = None;
                    out.extend(self.unicode(code));
                }
            }
        }
        false
    }

    /// The character that a number stands for, together with the number before it if that was half of one.
    fn unicode(&mut self, code: u32) -> Option<char> {
        match (code, self.surrogate.take()) {
            (0xD800..=0xDBFF, _) => {
                self.surrogate = Some(code);
                None
            }
            (0xDC00..=0xDFFF, Some(high)) => {
                char::from_u32(0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00))
            }
            (code, _) => Some(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)),
        }
    }
}

fn unescaped(character: char) -> char {
    match character {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    /// The text fields of an object that is fed in pieces of so many characters.
    fn read(json: &str, size: usize) -> Vec<(String, String)> {
        let mut reader = FieldReader::default();
        let mut fields: Vec<(String, String)> = Vec::new();
        let mut is_open = false;
        let characters: Vec<char> = json.chars().collect();
        for piece in characters.chunks(size).flat_map(|chunk| reader.read(&chunk.iter().collect::<String>()))
        {
            if !is_open {
                fields.push((piece.name, String::new()));
            }
            fields.last_mut().unwrap().1.push_str(&piece.text);
            is_open = !piece.ends;
        }
        fields
    }

    #[test]
    fn texts_grow_as_they_are_written() {
        let mut reader = FieldReader::default();
        let piece =
            |name: &str, text: &str, ends| Piece { name: name.to_owned(), text: text.to_owned(), ends };
        assert_eq!(reader.read("{\"patch\": \"*** Beg"), [piece("patch", "*** Beg", false)]);
        assert_eq!(reader.read("in\\"), [piece("patch", "in", false)]);
        assert_eq!(reader.read("n\\u00"), [piece("patch", "\n", false)]);
        assert_eq!(reader.read("e9\", \"x\": \""), [piece("patch", "é", true)]);
    }

    #[test]
    fn what_is_no_object_has_no_fields() {
        for text in [
            "",
            "not json",
            "[\"a\"]",
            "\"a\"",
            "{",
            "{}",
            "{\"a\" 1}",
            "{} {\"a\": \"b\"}",
            "}{\"a\":\"b\"}",
        ] {
            assert_eq!(read(text, 3), [], "{text}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<String>().prop_map(Value::from),
            "[\\PC\"\\\\\n]{0,12}".prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            Just(Value::Null),
            Just(json!({"a": ["}", {"b": "]\"\\"}], "c": {}})),
        ];
        leaf.boxed()
    }

    proptest! {
        #[test]
        fn the_fields_are_those_of_the_json_however_it_is_cut(
            fields in proptest::collection::btree_map("[a-z_\"\\\\é]{1,6}", value(), 0..5),
            size in 1_usize..9,
            pretty in any::<bool>(),
        ) {
            let object: Map<String, Value> = fields.into_iter().collect();
            let json = if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) };
            let texts: Vec<(String, String)> = object
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                .collect();
            let found = read(&json.unwrap(), size);
            prop_assert_eq!(found, texts);
        }

        #[test]
        fn no_text_panics(text in any::<String>(), size in 1_usize..5) {
            read(&text, size);
        }
    }
}
