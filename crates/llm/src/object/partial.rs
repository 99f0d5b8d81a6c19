//! JSON that is still being written (client specification, section 4.6).

use serde_json::{Map, Value};

/// How deep values may nest, as with whole texts.
const MAX_DEPTH: usize = 128;

/// The longest key, in bytes. Keys lead to what grows, so that each piece costs a look at those of its containers.
const MAX_KEY: usize = 4 * 1024;

/// Reads JSON as it comes, in pieces, and has at any time the value as far as it is certain.
///
/// That value is a *prefix* of the final one: a text may be cut at its end, a list and an object may lack their last
/// elements, and only the last element of each may itself be such a prefix. A number, `true`, `false` or `null` is there
/// once what follows shows that it is whole, and a member of an object once its value begins. Each byte is looked at
/// once: the cost grows with the length of the text.
///
/// It is lenient where it does no harm: whether the whole text is JSON is for a parser to say. After what cannot be JSON,
/// nests deeper than 128 levels or has a key of more than 4 KiB, the value stays as it was.
///
/// ```
/// use pintle_llm::PartialJson;
/// use serde_json::json;
///
/// let mut partial = PartialJson::new();
/// partial.push(r#"{"recipes": [{"name": "Ome"#);
/// assert_eq!(partial.value(), Some(&json!({"recipes": [{"name": "Ome"}]})));
/// partial.push(r#"let", "eggs": 3"#);
/// assert_eq!(partial.value(), Some(&json!({"recipes": [{"name": "Omelet"}]})));
/// partial.push("}]}");
/// assert_eq!(partial.value(), Some(&json!({"recipes": [{"name": "Omelet", "eggs": 3}]})));
/// assert!(partial.is_complete());
/// ```
#[derive(Clone, Debug)]
pub struct PartialJson {
    root: Option<Value>,
    /// The containers that are open, the outermost first.
    open: Vec<Open>,
    state: State,
    /// The piece that is read at the moment, while it means nothing in parts: a key, an escape, a number, a word.
    piece: String,
    /// The key beside an escape within it.
    key: String,
}

#[derive(Clone, Debug)]
enum Open {
    /// With the key of the member that is being read.
    Object(String),
    List,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A value must come.
    Value,
    /// A value, or the end of a list.
    FirstElement,
    /// A key, or the end of an object.
    FirstKey,
    /// A key must come.
    Key,
    InKey,
    EscapeInKey,
    Colon,
    InText,
    EscapeInText,
    /// In a number or a word.
    InScalar,
    /// A comma, or the end of the container.
    AfterValue,
    Complete,
    /// What came cannot be JSON.
    Broken,
}

impl PartialJson {
    /// Before the first piece.
    #[must_use]
    pub fn new() -> Self {
        Self { root: None, open: Vec::new(), state: State::Value, piece: String::new(), key: String::new() }
    }

    /// Takes the next piece and says whether the value has grown.
    pub fn push(&mut self, text: &str) -> bool {
        let mut rest = text;
        let mut grown = false;
        while let Some(next) = rest.chars().next() {
            match self.state {
                State::InText => {
                    let run = plain_run(rest);
                    grown |= self.extend_text(run);
                    rest = rest.get(run.len()..).unwrap_or_default();
                    self.after_run(rest, State::EscapeInText);
                }
                State::InKey => {
                    let run = plain_run(rest);
                    self.key.push_str(run);
                    rest = rest.get(run.len()..).unwrap_or_default();
                    if self.key.len() > MAX_KEY {
                        self.state = State::Broken;
                        return grown;
                    }
                    self.after_run(rest, State::EscapeInKey);
                }
                // This one looks at the character, and the state that follows takes it.
                State::InScalar if !is_scalar(next) => {
                    grown |= self.end_scalar();
                    continue;
                }
                State::Broken => return grown,
                State::Value
                | State::FirstElement
                | State::FirstKey
                | State::Key
                | State::EscapeInKey
                | State::Colon
                | State::EscapeInText
                | State::InScalar
                | State::AfterValue
                | State::Complete => grown |= self.step(next),
            }
            // After a run, what ended it has been taken as well.
            rest = rest.get(rest.chars().next().map_or(0, char::len_utf8)..).unwrap_or_default();
        }
        grown
    }

    /// The value as far as it has come; `None` before it begins.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        self.root.as_ref()
    }

    /// Whether the object, list or text has come to its end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// Takes one character that is not part of a run.
    fn step(&mut self, next: char) -> bool {
        match (self.state, next) {
            (State::EscapeInText, _) => return self.escape(next),
            (State::EscapeInKey, _) => {
                self.escape(next);
            }
            (State::InScalar, _) => self.piece.push(next),
            (_, ' ' | '\n' | '\r' | '\t') => {}
            (State::FirstElement, ']') => self.close(),
            (State::Value | State::FirstElement, _) => return self.begin_value(next),
            (State::FirstKey, '}') => self.close(),
            (State::FirstKey | State::Key, '"') => {
                self.key.clear();
                self.state = State::InKey;
            }
            (State::Colon, ':') => self.state = State::Value,
            (State::AfterValue, _) => match (self.open.last(), next) {
                (Some(Open::Object(_)), ',') => self.state = State::Key,
                (Some(Open::List), ',') => self.state = State::Value,
                (Some(Open::Object(_)), '}') | (Some(Open::List), ']') => self.close(),
                (Some(Open::Object(_) | Open::List) | None, _) => self.state = State::Broken,
            },
            (
                State::FirstKey
                | State::Key
                | State::Colon
                | State::InKey
                | State::InText
                | State::Complete
                | State::Broken,
                _,
            ) => self.state = State::Broken,
        }
        false
    }

    fn begin_value(&mut self, next: char) -> bool {
        let (value, open, state) = match next {
            '"' => (Value::String(String::new()), None, State::InText),
            '{' => (Value::Object(Map::new()), Some(Open::Object(String::new())), State::FirstKey),
            '[' => (Value::Array(Vec::new()), Some(Open::List), State::FirstElement),
            '-' | '0'..='9' | 't' | 'f' | 'n' => {
                self.piece.clear();
                self.piece.push(next);
                self.state = State::InScalar;
                return false;
            }
            _ => {
                self.state = State::Broken;
                return false;
            }
        };
        if self.open.len() >= MAX_DEPTH || !self.place(value) {
            self.state = State::Broken;
            return false;
        }
        self.open.extend(open);
        self.state = state;
        true
    }

    /// What ends a run of plain characters: the closing quote, or the beginning of an escape.
    fn after_run(&mut self, rest: &str, escape: State) {
        match rest.chars().next() {
            None => {}
            Some('\\') => {
                self.piece.clear();
                self.piece.push('\\');
                self.state = escape;
            }
            Some('"') if escape == State::EscapeInText => self.end_value(),
            Some('"') => {
                let key = std::mem::take(&mut self.key);
                if let Some(Open::Object(current)) = self.open.last_mut() {
                    *current = key;
                }
                self.state = State::Colon;
            }
            // Control characters must be escaped.
            Some(_) => self.state = State::Broken,
        }
    }

    /// Takes one character of an escape, and decodes it once it is whole.
    fn escape(&mut self, next: char) -> bool {
        self.piece.push(next);
        let whole = match self.piece.as_bytes() {
            [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a'..=b'b' | b'A'..=b'B', ..] => 12,
            [b'\\', b'u', ..] => 6,
            _ => 2,
        };
        if self.piece.len() < whole {
            return false;
        }
        let Ok(decoded) = serde_json::from_str::<String>(&format!("\"{}\"", self.piece)) else {
            self.state = State::Broken;
            return false;
        };
        if self.state == State::EscapeInKey {
            self.key.push_str(&decoded);
            self.state = State::InKey;
            return false;
        }
        self.state = State::InText;
        self.extend_text(&decoded)
    }

    fn end_scalar(&mut self) -> bool {
        let placed = serde_json::from_str(&self.piece).is_ok_and(|value| self.place(value));
        if placed {
            self.end_value();
        } else {
            self.state = State::Broken;
        }
        placed
    }

    fn end_value(&mut self) {
        self.state = if self.open.is_empty() { State::Complete } else { State::AfterValue };
    }

    fn close(&mut self) {
        self.open.pop();
        self.end_value();
    }

    /// Puts a value where one is due; `false` only if there is no such place.
    fn place(&mut self, value: Value) -> bool {
        let Some(inner) = self.open.len().checked_sub(1) else {
            self.root = Some(value);
            return true;
        };
        let key = match self.open.last_mut() {
            Some(Open::Object(key)) => Some(key.clone()),
            Some(Open::List) | None => None,
        };
        match (self.node(inner), key) {
            (Some(Value::Object(members)), Some(key)) => {
                members.insert(key, value);
                true
            }
            (Some(Value::Array(elements)), None) => {
                elements.push(value);
                true
            }
            _ => false,
        }
    }

    fn extend_text(&mut self, more: &str) -> bool {
        match self.node(self.open.len()) {
            Some(Value::String(text)) if !more.is_empty() => {
                text.push_str(more);
                true
            }
            _ => false,
        }
    }

    /// The value that so many open containers lead to: the last one in each.
    fn node(&mut self, depth: usize) -> Option<&mut Value> {
        let mut node = self.root.as_mut()?;
        for open in self.open.iter().take(depth) {
            node = match (open, node) {
                (Open::Object(key), Value::Object(members)) => members.get_mut(key)?,
                (Open::List, Value::Array(elements)) => elements.last_mut()?,
                _ => return None,
            };
        }
        Some(node)
    }
}

impl Default for PartialJson {
    fn default() -> Self {
        Self::new()
    }
}

/// The characters of a text up to a quote, an escape or a control character.
fn plain_run(text: &str) -> &str {
    let end = text.bytes().position(|byte| byte == b'"' || byte == b'\\' || byte < 0x20);
    text.get(..end.unwrap_or(text.len())).unwrap_or_default()
}

fn is_scalar(next: char) -> bool {
    next.is_ascii_alphanumeric() || matches!(next, '+' | '-' | '.')
}

#[cfg(test)]
mod tests;
