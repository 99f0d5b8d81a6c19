//! Large values of a journal, which are stored beside it.
//!
//! A string above 16 KiB is a blob. The line contains an empty string instead, and its member `blobs` maps the JSON
//! pointer of that string to the blob's hash. A line that is still above 64 KiB is one blob, with the empty pointer.

use std::collections::BTreeMap;
use std::ops::Range;

use async_trait::async_trait;
use pintle_agent::SessionId;
use serde_json::Value;

use crate::error::StoreError;
use crate::hash::Hash;

/// Size above which a string is a blob, in bytes.
pub const MAX_INLINE_STRING: usize = 16 << 10;

/// Size above which a line is one blob, in bytes.
pub const MAX_INLINE_LINE: usize = 64 << 10;

/// Member of a line that maps JSON pointers to hashes.
const BLOBS: &str = "\"blobs\":";

/// Values by their hash. All sessions of a store share them.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Keeps these bytes for the session of this handle, and returns their hash. They survive a crash of the machine
    /// once this returns.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] and the like.
    async fn put(&self, bytes: Vec<u8>) -> Result<Hash, StoreError>;

    /// Keeps several values and returns their hashes in order, as [`put`](Self::put) does for one value.
    /// Implementations may wait for the disk fewer times.
    ///
    /// # Errors
    ///
    /// As for [`put`](Self::put); some of the values may be kept then.
    async fn put_many(&self, values: Vec<Vec<u8>>) -> Result<Vec<Hash>, StoreError> {
        let mut hashes = Vec::with_capacity(values.len());
        for bytes in values {
            hashes.push(self.put(bytes).await?);
        }
        Ok(hashes)
    }

    /// Returns the bytes with this hash; `None` if they were removed, or never kept.
    ///
    /// # Errors
    ///
    /// [`StoreError::DamagedBlob`] if the bytes have another hash, [`StoreError::Io`] and the like.
    async fn get(&self, hash: &Hash) -> Result<Option<Vec<u8>>, StoreError>;
}

/// Blobs of a session whose id cannot be stored.
pub(crate) struct NoBlobs(pub(crate) SessionId);

#[async_trait]
impl Blobs for NoBlobs {
    async fn put(&self, _bytes: Vec<u8>) -> Result<Hash, StoreError> {
        Err(StoreError::InvalidId(self.0.clone()))
    }

    async fn get(&self, _hash: &Hash) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }
}

/// Replaces the large values of a JSON object by references to blobs, and keeps the blobs first. The other bytes stay
/// the same.
///
/// # Errors
///
/// Those of [`Blobs::put`].
pub async fn move_to_blobs(object: String, blobs: &dyn Blobs) -> Result<String, StoreError> {
    if object.len() <= MAX_INLINE_STRING {
        return Ok(object);
    }
    let mut references = BTreeMap::new();
    let mut short = String::new();
    let mut copied = 0;
    let mut strings = StringScanner::new(&object);
    while let Some(range) = strings.next_string() {
        if range.len() <= MAX_INLINE_STRING {
            continue;
        }
        let literal = object.get(range.clone()).unwrap_or_default();
        let Ok(text) = serde_json::from_str::<String>(literal) else { continue };
        references.insert(strings.pointer(), blobs.put(text.into_bytes()).await?);
        short.push_str(object.get(copied..range.start).unwrap_or_default());
        short.push_str("\"\"");
        copied = range.end;
    }
    short.push_str(object.get(copied..).unwrap_or_default());
    let short = with_references(&short, &references);
    if short.len() <= MAX_INLINE_LINE {
        return Ok(short);
    }
    let whole = blobs.put(object.into_bytes()).await?;
    Ok(with_references("{}", &BTreeMap::from([(String::new(), whole)])))
}

/// Puts the blobs of a JSON object back in their places.
///
/// # Errors
///
/// [`StoreError::MissingBlob`] if a blob was removed, and the errors of [`Blobs::get`].
pub async fn move_from_blobs(object: String, blobs: &dyn Blobs) -> Result<String, StoreError> {
    let references = references(&object);
    let mut whole = String::new();
    let mut copied = 0;
    for (pointer, hash) in &references {
        let bytes = blobs.get(hash).await?.ok_or(StoreError::MissingBlob(*hash))?;
        let text = String::from_utf8(bytes).map_err(|_| StoreError::DamagedBlob(*hash))?;
        if pointer.is_empty() {
            return Ok(text);
        }
        let place = string_values(&object).find(|value| value.pointer == *pointer);
        let place = place.ok_or(StoreError::MissingBlob(*hash))?;
        whole.push_str(object.get(copied..place.range.start).unwrap_or_default());
        whole.push_str(&Value::String(text).to_string());
        copied = place.range.end;
    }
    whole.push_str(object.get(copied..).unwrap_or_default());
    Ok(whole)
}

/// Returns the hashes of the blobs that a line refers to.
#[must_use]
pub fn hashes(object: &str) -> Vec<Hash> {
    references(object).into_iter().map(|(_, hash)| hash).collect()
}

/// Returns the references of a line, in the order of their places.
fn references(object: &str) -> Vec<(String, Hash)> {
    /// The other members of the line are skipped.
    #[derive(serde::Deserialize)]
    struct Line {
        #[serde(default)]
        blobs: BTreeMap<String, Hash>,
    }
    // Most lines have no references and need not be parsed.
    if !object.contains(BLOBS) {
        return Vec::new();
    }
    let Ok(Line { blobs }) = serde_json::from_str(object) else { return Vec::new() };
    if blobs.len() < 2 {
        return blobs.into_iter().collect();
    }
    let ordered = string_values(object).filter_map(|value| blobs.get_key_value(&value.pointer));
    ordered.map(|(pointer, hash)| (pointer.clone(), *hash)).collect()
}

/// Adds the member with the references, if there are any.
fn with_references(object: &str, references: &BTreeMap<String, Hash>) -> String {
    if references.is_empty() {
        return object.to_owned();
    }
    let members = object.strip_suffix('}').unwrap_or(object);
    let comma = if members.ends_with('{') { "" } else { "," };
    let references = serde_json::to_string(references).unwrap_or_default();
    format!("{members}{comma}{BLOBS}{references}}}")
}

/// A string in a JSON text that is not the name of a member.
#[derive(Debug, PartialEq, Eq)]
struct StringValue {
    /// JSON pointer of its place.
    pointer: String,
    /// Its literal with the quotes.
    range: Range<usize>,
}

/// Returns the strings of a JSON text in order. Serde must have written the text.
fn string_values(text: &str) -> impl Iterator<Item = StringValue> {
    let mut scanner = StringScanner::new(text);
    std::iter::from_fn(move || {
        let range = scanner.next_string()?;
        Some(StringValue { pointer: scanner.pointer(), range })
    })
}

struct StringScanner<'a> {
    text: &'a str,
    at: usize,
    path: Vec<PointerSegment<'a>>,
}

/// Part of a JSON pointer.
enum PointerSegment<'a> {
    Index(usize),
    /// Literal of the newest name of a member; `None` before the first.
    Name(Option<&'a str>),
}

impl<'a> StringScanner<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0, path: Vec::new() }
    }

    /// Returns the literal of the next string with its quotes.
    fn next_string(&mut self) -> Option<Range<usize>> {
        while let Some(byte) = self.text.as_bytes().get(self.at) {
            match byte {
                b'{' => self.path.push(PointerSegment::Name(None)),
                b'[' => self.path.push(PointerSegment::Index(0)),
                b'}' | b']' => {
                    self.path.pop();
                }
                b',' => match self.path.last_mut() {
                    Some(PointerSegment::Index(index)) => *index += 1,
                    Some(PointerSegment::Name(name)) => *name = None,
                    None => {}
                },
                b'"' => {
                    let range = self.at..self.end_of_string();
                    self.at = range.end;
                    let literal = self.text.get(range.clone())?;
                    if let Some(PointerSegment::Name(name @ None)) = self.path.last_mut() {
                        *name = Some(literal);
                        continue;
                    }
                    return Some(range);
                }
                _ => {}
            }
            self.at += 1;
        }
        None
    }

    /// Returns the end of the literal that starts here.
    fn end_of_string(&self) -> usize {
        let mut at = self.at + 1;
        loop {
            match self.text.as_bytes().get(at) {
                Some(b'\\') => at += 2,
                Some(b'"') => return at + 1,
                Some(_) => at += 1,
                None => return self.text.len(),
            }
        }
    }

    /// Returns the pointer of the string that was returned last.
    fn pointer(&self) -> String {
        #[cfg(test)]
        tests::POINTERS.set(tests::POINTERS.get() + 1);
        let segment = |segment: &PointerSegment<'_>| match segment {
            PointerSegment::Index(index) => index.to_string(),
            PointerSegment::Name(literal) => {
                let name: String = serde_json::from_str(literal.unwrap_or("\"\"")).unwrap_or_default();
                name.replace('~', "~0").replace('/', "~1")
            }
        };
        self.path.iter().map(|part| format!("/{}", segment(part))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::HashMap;
    use std::sync::Mutex;

    use pintle_test_conditions::cases;
    use proptest::prelude::*;
    use proptest::string::string_regex;

    use super::*;

    thread_local! {
        /// Pointers that this thread has built.
        pub(super) static POINTERS: Cell<usize> = const { Cell::new(0) };
    }

    #[derive(Default)]
    struct InMemory(Mutex<HashMap<Hash, Vec<u8>>>);

    #[async_trait]
    impl Blobs for InMemory {
        async fn put(&self, bytes: Vec<u8>) -> Result<Hash, StoreError> {
            let hash = Hash::of(&bytes);
            self.0.lock().unwrap().insert(hash, bytes);
            Ok(hash)
        }

        async fn get(&self, hash: &Hash) -> Result<Option<Vec<u8>>, StoreError> {
            Ok(self.0.lock().unwrap().get(hash).cloned())
        }
    }

    #[test]
    fn strings_are_found_with_their_pointers() {
        let text = r#"{"a":"x","b":["y",{"c/d~":"z\"}"},[],"w"],"e":1,"f":null,"":"v"}"#;
        let found: Vec<(String, &str)> =
            string_values(text).map(|value| (value.pointer, &text[value.range])).collect();
        let expected = [
            ("/a", r#""x""#),
            ("/b/0", r#""y""#),
            ("/b/1/c~1d~0", r#""z\"}""#),
            ("/b/3", r#""w""#),
            ("/", r#""v""#),
        ];
        assert_eq!(found, expected.map(|(pointer, literal)| (pointer.to_owned(), literal)));
        let value: Value = serde_json::from_str(text).unwrap();
        for (pointer, literal) in found {
            assert_eq!(value.pointer(&pointer).unwrap().to_string(), literal);
        }
    }

    #[tokio::test]
    async fn large_strings_are_blobs_and_the_rest_keeps_its_bytes() {
        let blobs = InMemory::default();
        let long = "ü\"\n".repeat(10_000);
        // A float, and an integer that no float holds: written as they came.
        let object = format!(
            "{{\"n\":1.0,\"big\":123456789012345678901,\"a\":[{{\"t\":{0}}},\"short\"],\"z\":{0}}}",
            Value::String(long.clone())
        );
        let moved = move_to_blobs(object.clone(), &blobs).await.unwrap();
        let hash = Hash::of(long.as_bytes());
        assert_eq!(
            moved,
            format!(
                "{{\"n\":1.0,\"big\":123456789012345678901,\"a\":[{{\"t\":\"\"}},\"short\"],\"z\":\"\",\
                 \"blobs\":{{\"/a/0/t\":\"{hash}\",\"/z\":\"{hash}\"}}}}"
            )
        );
        assert_eq!(hashes(&moved), [hash, hash]);
        let back: Value = serde_json::from_str(&move_from_blobs(moved, &blobs).await.unwrap()).unwrap();
        assert_eq!((&back["z"], &back["a"][0]["t"]), (&Value::String(long.clone()), &Value::String(long)));
    }

    /// The line of a prompt has hundreds of strings below its tools, of which at most one is large.
    #[tokio::test]
    async fn pointers_are_built_for_large_strings_only() {
        let long = "x".repeat(MAX_INLINE_STRING + 1);
        let tools =
            vec![serde_json::json!({"parameters": {"properties": {"path": {"type": "string"}}}}); 300];
        let object = serde_json::json!({"prompt": long, "tools": tools}).to_string();
        POINTERS.set(0);
        let moved = move_to_blobs(object, &InMemory::default()).await.unwrap();
        assert!(moved.contains("\"blobs\":{\"/prompt\":"), "{moved}");
        assert_eq!(POINTERS.get(), 1);
    }

    #[tokio::test]
    async fn long_line_of_short_strings_is_one_blob() {
        let blobs = InMemory::default();
        let object = serde_json::json!({"a": vec!["x".repeat(1_000); 100]}).to_string();
        let moved = move_to_blobs(object.clone(), &blobs).await.unwrap();
        assert_eq!(moved, format!("{{\"blobs\":{{\"\":\"{}\"}}}}", Hash::of(object.as_bytes())));
        assert_eq!(move_from_blobs(moved.clone(), &blobs).await.unwrap(), object);
        blobs.0.lock().unwrap().clear();
        assert!(matches!(move_from_blobs(moved, &blobs).await, Err(StoreError::MissingBlob(_))));
    }

    #[tokio::test]
    async fn text_that_looks_like_a_reference_is_text() {
        let object = serde_json::json!({"text": "\"blobs\":{\"/a\":\"b\"}"}).to_string();
        assert_eq!(move_from_blobs(object.clone(), &InMemory::default()).await.unwrap(), object);
    }

    proptest! {
        // Strings of up to half a megabyte.
        #![proptest_config(ProptestConfig::with_cases(cases(64, 256)))]

        #[test]
        fn any_strings_come_back(texts in proptest::collection::vec((string_regex(".*").unwrap(), 0..3usize), 0..6)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let texts: Vec<String> =
                texts.into_iter().map(|(text, size)| text.repeat([1, 100, 3_000][size])).collect();
            let object = serde_json::json!({"a": texts, "b": {"c": texts.first()}}).to_string();
            let blobs = InMemory::default();
            let back = runtime.block_on(async {
                let moved = move_to_blobs(object.clone(), &blobs).await.unwrap();
                move_from_blobs(moved, &blobs).await.unwrap()
            });
            let value = |text: &str| -> Value {
                let mut value: Value = serde_json::from_str(text).unwrap();
                value.as_object_mut().unwrap().remove("blobs");
                value
            };
            prop_assert_eq!(value(&back), value(&object));
        }
    }
}
