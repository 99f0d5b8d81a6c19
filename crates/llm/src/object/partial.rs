//! Incremental parser for incomplete JSON (client specification, section 4.6).

use serde_json::{Map, Value};

/// Limit on the nesting of values, which is the limit of `serde_json`.
const MAX_DEPTH: usize = 128;

/// Limit on the length of a key in bytes. Each chunk costs a lookup of the keys of its containers.
const MAX_KEY: usize = 4 * 1024;

/// Incremental JSON parser that provides the value received so far.
///
/// The value is a *prefix* of the final one: a string may be truncated, lists and objects may lack their last elements,
/// and only the last element of each may itself be a prefix. A number, `true`, `false` or `null` appears when the next
/// character shows that it is complete; a member of an object appears when its value starts. Each byte is processed once,
/// so the cost is linear in the length of the text.
///
/// The parser is lenient; use a regular one to validate the complete text. After invalid JSON, nesting beyond 128 levels or
/// a key above 4 KiB, the value no longer changes.
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
    /// Open containers, outermost first.
    open: Vec<Container>,
    state: ParserState,
    /// Incomplete token: an escape, a number or a literal.
    token: String,
    /// Incomplete key.
    key: String,
}

#[derive(Clone, Debug)]
enum Container {
    /// With the key of the current member.
    Object(String),
    List,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParserState {
    /// Expects a value.
    Value,
    /// Expects a value or the end of a list.
    FirstElement,
    /// Expects a key or the end of an object.
    FirstKey,
    /// Expects a key.
    Key,
    InKey,
    EscapeInKey,
    Colon,
    InText,
    EscapeInText,
    /// In a number or a literal.
    InScalar,
    /// Expects a comma or the end of the container.
    AfterValue,
    Complete,
    /// The text is not JSON.
    Invalid,
}

impl PartialJson {
    /// Creates a parser.
    #[must_use]
    pub fn new() -> Self {
        Self {
            root: None,
            open: Vec::new(),
            state: ParserState::Value,
            token: String::new(),
            key: String::new(),
        }
    }

    /// Adds text. Returns `true` if the value has grown.
    pub fn push(&mut self, text: &str) -> bool {
        let mut rest = text;
        let mut grown = false;
        while let Some(next) = rest.chars().next() {
            match self.state {
                ParserState::InText => {
                    let run = plain_run(rest);
                    grown |= self.extend_text(run);
                    rest = rest.get(run.len()..).unwrap_or_default();
                    self.after_run(rest, ParserState::EscapeInText);
                }
                ParserState::InKey => {
                    let run = plain_run(rest);
                    self.key.push_str(run);
                    rest = rest.get(run.len()..).unwrap_or_default();
                    if self.key.len() > MAX_KEY {
                        self.state = ParserState::Invalid;
                        return grown;
                    }
                    self.after_run(rest, ParserState::EscapeInKey);
                }
                // The character is not consumed: the next state processes it.
                ParserState::InScalar if !is_scalar(next) => {
                    grown |= self.end_scalar();
                    continue;
                }
                ParserState::Invalid => return grown,
                ParserState::Value
                | ParserState::FirstElement
                | ParserState::FirstKey
                | ParserState::Key
                | ParserState::EscapeInKey
                | ParserState::Colon
                | ParserState::EscapeInText
                | ParserState::InScalar
                | ParserState::AfterValue
                | ParserState::Complete => grown |= self.step(next),
            }
            // The character that ended a run has been processed by `after_run`.
            rest = rest.get(rest.chars().next().map_or(0, char::len_utf8)..).unwrap_or_default();
        }
        grown
    }

    /// Returns the value so far; `None` before it starts.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        self.root.as_ref()
    }

    /// Returns `true` after the end of the object, list or string.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.state == ParserState::Complete
    }

    /// Processes a character that is not part of a run.
    fn step(&mut self, next: char) -> bool {
        match (self.state, next) {
            (ParserState::EscapeInText, _) => return self.escape(next),
            (ParserState::EscapeInKey, _) => {
                self.escape(next);
            }
            (ParserState::InScalar, _) => self.token.push(next),
            (_, ' ' | '\n' | '\r' | '\t') => {}
            (ParserState::FirstElement, ']') => self.close(),
            (ParserState::Value | ParserState::FirstElement, _) => return self.start_value(next),
            (ParserState::FirstKey, '}') => self.close(),
            (ParserState::FirstKey | ParserState::Key, '"') => {
                self.key.clear();
                self.state = ParserState::InKey;
            }
            (ParserState::Colon, ':') => self.state = ParserState::Value,
            (ParserState::AfterValue, _) => match (self.open.last(), next) {
                (Some(Container::Object(_)), ',') => self.state = ParserState::Key,
                (Some(Container::List), ',') => self.state = ParserState::Value,
                (Some(Container::Object(_)), '}') | (Some(Container::List), ']') => self.close(),
                (Some(Container::Object(_) | Container::List) | None, _) => self.state = ParserState::Invalid,
            },
            (
                ParserState::FirstKey
                | ParserState::Key
                | ParserState::Colon
                | ParserState::InKey
                | ParserState::InText
                | ParserState::Complete
                | ParserState::Invalid,
                _,
            ) => self.state = ParserState::Invalid,
        }
        false
    }

    fn start_value(&mut self, next: char) -> bool {
        let (value, open, state) = match next {
            '"' => (Value::String(String::new()), None, ParserState::InText),
            '{' => (Value::Object(Map::new()), Some(Container::Object(String::new())), ParserState::FirstKey),
            '[' => (Value::Array(Vec::new()), Some(Container::List), ParserState::FirstElement),
            '-' | '0'..='9' | 't' | 'f' | 'n' => {
                self.token.clear();
                self.token.push(next);
                self.state = ParserState::InScalar;
                return false;
            }
            _ => {
                self.state = ParserState::Invalid;
                return false;
            }
        };
        if self.open.len() >= MAX_DEPTH || !self.insert(value) {
            self.state = ParserState::Invalid;
            return false;
        }
        self.open.extend(open);
        self.state = state;
        true
    }

    /// Processes the character after a run: a closing quote or the start of an escape.
    fn after_run(&mut self, rest: &str, escape: ParserState) {
        match rest.chars().next() {
            None => {}
            Some('\\') => {
                self.token.clear();
                self.token.push('\\');
                self.state = escape;
            }
            Some('"') if escape == ParserState::EscapeInText => self.end_value(),
            Some('"') => {
                let key = std::mem::take(&mut self.key);
                if let Some(Container::Object(current)) = self.open.last_mut() {
                    *current = key;
                }
                self.state = ParserState::Colon;
            }
            // Control characters must be escaped.
            Some(_) => self.state = ParserState::Invalid,
        }
    }

    /// Adds a character to an escape, and decodes it when it is complete.
    fn escape(&mut self, next: char) -> bool {
        self.token.push(next);
        let length = match self.token.as_bytes() {
            [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a'..=b'b' | b'A'..=b'B', ..] => 12,
            [b'\\', b'u', ..] => 6,
            _ => 2,
        };
        if self.token.len() < length {
            return false;
        }
        let Ok(decoded) = serde_json::from_str::<String>(&format!("\"{}\"", self.token)) else {
            self.state = ParserState::Invalid;
            return false;
        };
        if self.state == ParserState::EscapeInKey {
            self.key.push_str(&decoded);
            self.state = ParserState::InKey;
            return false;
        }
        self.state = ParserState::InText;
        self.extend_text(&decoded)
    }

    fn end_scalar(&mut self) -> bool {
        let placed = serde_json::from_str(&self.token).is_ok_and(|value| self.insert(value));
        if placed {
            self.end_value();
        } else {
            self.state = ParserState::Invalid;
        }
        placed
    }

    fn end_value(&mut self) {
        self.state = if self.open.is_empty() { ParserState::Complete } else { ParserState::AfterValue };
    }

    fn close(&mut self) {
        self.open.pop();
        self.end_value();
    }

    /// Inserts a value into the innermost container. Returns `false` only if the state is inconsistent.
    fn insert(&mut self, value: Value) -> bool {
        let Some(inner) = self.open.len().checked_sub(1) else {
            self.root = Some(value);
            return true;
        };
        let key = match self.open.last_mut() {
            Some(Container::Object(key)) => Some(key.clone()),
            Some(Container::List) | None => None,
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

    /// Returns the last value at this depth.
    fn node(&mut self, depth: usize) -> Option<&mut Value> {
        let mut node = self.root.as_mut()?;
        for open in self.open.iter().take(depth) {
            node = match (open, node) {
                (Container::Object(key), Value::Object(members)) => members.get_mut(key)?,
                (Container::List, Value::Array(elements)) => elements.last_mut()?,
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

/// Returns the text up to a quote, an escape or a control character.
fn plain_run(text: &str) -> &str {
    let end = text.bytes().position(|byte| byte == b'"' || byte == b'\\' || byte < 0x20);
    text.get(..end.unwrap_or(text.len())).unwrap_or_default()
}

fn is_scalar(next: char) -> bool {
    next.is_ascii_alphanumeric() || matches!(next, '+' | '-' | '.')
}

#[cfg(test)]
mod tests;
