//! Images of a message: files that its text names after an `@`, and pasted images.

use std::collections::VecDeque;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use pintle_host::prompt_commands::words;
use pintle_llm::ImageData;

/// Time limit for reading an image.
pub(crate) const READ_TIME: Duration = Duration::from_secs(10);

/// Reason why an image that takes longer is not sent.
pub(crate) const SLOW: &str = "reading it took too long";

/// Suffixes of image file names.
const ENDINGS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// Maximum number of images in one message.
pub(crate) const MAX_IMAGES: usize = 20;

/// Maximum number of pasted images that are kept, for inputs that are sent again.
const MAX_PASTED: usize = 2 * MAX_IMAGES;

/// Characters that may precede a name without belonging to it.
const BRACKETS: [char; 6] = ['(', '[', '{', '"', '\'', '`'];

/// Message of the user, with the images that it names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutgoingMessage {
    pub(crate) text: String,
    pub(crate) images: Vec<NamedImage>,
    /// Text appended to the message, which is not the user's.
    pub(crate) instruction: Option<&'static str>,
}

/// Image that a text names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedImage {
    /// Path in the environment, or the name of a pasted image.
    pub(crate) name: String,
    /// The image, if it was pasted.
    pub(crate) pasted: Option<ImageData>,
}

/// Pasted images by name, the oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct PastedImages {
    kept: VecDeque<(String, ImageData)>,
    /// Number of images without a path.
    unnamed: u64,
}

impl OutgoingMessage {
    /// Returns a message that names no images.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Returns the text for the model, with the instruction.
    pub(crate) fn message_text(&self) -> String {
        match self.instruction {
            Some(instruction) => format!("{}\n\n{instruction}", self.text),
            None => self.text.clone(),
        }
    }
}

impl PastedImages {
    /// Keeps an image and returns its name: its original path, or a number.
    pub(crate) fn keep(&mut self, path: Option<&str>, image: ImageData) -> String {
        let name = path.map_or_else(
            || {
                self.unnamed += 1;
                format!("pasted-{}.{}", self.unnamed, ending(&image))
            },
            str::to_owned,
        );
        self.kept.retain(|(kept, _)| *kept != name);
        if self.kept.len() == MAX_PASTED {
            self.kept.pop_front();
        }
        self.kept.push_back((name.clone(), image));
        name
    }

    /// Returns the images that a text names.
    pub(crate) fn named_in(&self, text: &str) -> Vec<NamedImage> {
        let mut images: Vec<NamedImage> = Vec::new();
        for name in named_in(text) {
            if images.iter().all(|known| known.name != name) {
                let pasted = self.kept.iter().find(|(kept, _)| kept == name);
                images.push(NamedImage {
                    name: name.to_owned(),
                    pasted: pasted.map(|(_, image)| image.clone()),
                });
            }
        }
        images
    }
}

/// Returns the text that names an image or another file.
pub(crate) fn mention(name: &str) -> String {
    if name.contains(char::is_whitespace) { format!("@\"{name}\"") } else { format!("@{name}") }
}

/// Returns the image paths that a paste consists of, as terminals write them for dropped files. `None` for other text.
pub(crate) fn dropped_paths(paste: &str) -> Option<Vec<String>> {
    let paste = paste.trim();
    if paste.contains(['\n', '\r']) {
        return None;
    }
    let paths = |words: Vec<String>| -> Option<Vec<String>> {
        let paths: Vec<String> = words.into_iter().map(|word| absolute_path(&word)).collect::<Option<_>>()?;
        let all_images = !paths.is_empty() && paths.iter().all(|path| is_image_name(path));
        (all_images && paths.len() <= MAX_IMAGES).then_some(paths)
    };
    // Some terminals do not quote paths.
    words(paste).and_then(paths).or_else(|| paths(vec![paste.to_owned()]))
}

/// Returns the path that a word represents, if it is absolute or starts with the home directory.
fn absolute_path(word: &str) -> Option<String> {
    if let Some(url) = word.strip_prefix("file://") {
        let path = url.strip_prefix("localhost").unwrap_or(url);
        let path = percent_decode_str(path).decode_utf8().ok()?;
        return path.starts_with('/').then(|| path.into_owned());
    }
    (word.starts_with('/') || word.starts_with("~/")).then(|| word.to_owned())
}

/// Returns the names of images after an `@`, in order.
fn named_in(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('@').filter_map(|(at, sign)| {
        let (before, after) = (text.get(..at)?, text.get(at + sign.len()..)?);
        let is_begun = before.chars().next_back().is_none_or(|c| c.is_whitespace() || BRACKETS.contains(&c));
        let name = match after.strip_prefix('"') {
            Some(quoted) => quoted.split(['"', '\n']).next()?,
            None => {
                let word = after.split(char::is_whitespace).next()?;
                word.trim_end_matches(|c: char| !c.is_alphanumeric())
            }
        };
        (is_begun && is_image_name(name)).then_some(name)
    })
}

fn is_image_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    ENDINGS.iter().any(|ending| lower.strip_suffix(ending).is_some_and(|stem| !stem.is_empty()))
}

/// Returns the file name suffix for an image of this type.
fn ending(image: &ImageData) -> &str {
    let media_type = image.media_type.as_deref();
    media_type.and_then(|media_type| media_type.strip_prefix("image/")).unwrap_or("png")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_named_behind_an_at_sign() {
        let cases: [(&str, &[&str]); 12] = [
            ("why is @shot.png cut off", &["shot.png"]),
            ("@a.PNG, @b/c.jpeg. (see @d.webp)", &["a.PNG", "b/c.jpeg", "d.webp"]),
            ("look: @\"My Pictures/shot 1.png\"!", &["My Pictures/shot 1.png"]),
            ("@a.png and @a.png", &["a.png"]),
            ("@/tmp/x.gif\n@~/y.jpg", &["/tmp/x.gif", "~/y.jpg"]),
            ("`@a.png`", &["a.png"]),
            ("me@example.png", &[]),
            ("@src/main.rs @.png @", &[]),
            ("shot.png", &[]),
            ("@\"never closed.png", &["never closed.png"]),
            ("@\"two\nlines.png\"", &[]),
            ("@日本.png@x.png", &["日本.png@x.png"]),
        ];
        for (text, expected) in cases {
            let images = PastedImages::default().named_in(text);
            let names: Vec<&str> = images.iter().map(|image| image.name.as_str()).collect();
            assert_eq!(names, expected, "{text:?}");
        }
    }

    #[test]
    fn dropped_files_are_known_by_their_paths() {
        let cases: [(&str, Option<&[&str]>); 14] = [
            ("/mnt/ada/shot.png", Some(&["/mnt/ada/shot.png"])),
            (" '/mnt/ada/My Pictures/1.png' ", Some(&["/mnt/ada/My Pictures/1.png"])),
            (r"/mnt/ada/My\ Pictures/1.jpg", Some(&["/mnt/ada/My Pictures/1.jpg"])),
            ("/mnt/ada/My Pictures/1.png", Some(&["/mnt/ada/My Pictures/1.png"])),
            ("/a.png '/b c.gif'", Some(&["/a.png", "/b c.gif"])),
            ("file:///tmp/a%20b.webp", Some(&["/tmp/a b.webp"])),
            ("file://localhost/tmp/a.png", Some(&["/tmp/a.png"])),
            ("file://elsewhere/tmp/a.png", None),
            ("~/shot.png", Some(&["~/shot.png"])),
            ("shot.png", None),
            ("/mnt/ada/notes.txt", None),
            ("/a.png is broken", None),
            ("/a.png\n/b.png", None),
            ("", None),
        ];
        for (paste, expected) in cases {
            let expected: Option<Vec<String>> =
                expected.map(|paths| paths.iter().map(|path| (*path).to_owned()).collect());
            assert_eq!(dropped_paths(paste), expected, "{paste:?}");
        }
    }

    #[test]
    fn pasted_images_are_found_by_their_names_again() {
        let image = |byte| ImageData::data(vec![byte], "image/gif");
        let mut pasted = PastedImages::default();
        assert_eq!(pasted.keep(None, image(1)), "pasted-1.gif");
        assert_eq!(pasted.keep(Some("/tmp/my shot.png"), image(2)), "/tmp/my shot.png");
        assert_eq!(pasted.keep(Some("/tmp/my shot.png"), image(3)), "/tmp/my shot.png");
        let text = format!("{} {}", mention("pasted-1.gif"), mention("/tmp/my shot.png"));
        let found: Vec<Option<ImageData>> =
            pasted.named_in(&text).into_iter().map(|image| image.pasted).collect();
        assert_eq!(found, [Some(image(1)), Some(image(3))], "the newest of a name counts");
        for _ in 0..MAX_PASTED {
            pasted.keep(None, image(4));
        }
        assert_eq!(pasted.named_in("@pasted-1.gif")[0].pasted, None, "the oldest give way");
    }
}
