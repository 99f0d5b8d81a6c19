//! The `***` lines of a patch.

/// Meaning of a `***` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker<'a> {
    BeginPatch,
    EndPatch,
    AddFile(&'a str),
    DeleteFile(&'a str),
    UpdateFile(&'a str),
    MoveTo(&'a str),
    EndOfFile,
    EnvironmentId,
}

/// A marker and the deviations in its spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MarkerLine<'a> {
    pub(super) marker: Marker<'a>,
    /// Whitespace precedes it.
    pub(super) indented: bool,
    /// It ends with `***`.
    pub(super) trailing_stars: bool,
    /// Its path follows the colon without a space.
    pub(super) missing_space: bool,
}

impl<'a> MarkerLine<'a> {
    /// Parses `line` as a marker, at any indentation.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let trimmed = line.trim();
        let (body, trailing_stars) = strip_trailing_stars(trimmed.strip_prefix("*** ")?.trim());
        let mut missing_space = false;
        let marker = match body {
            "Begin Patch" => Marker::BeginPatch,
            "End Patch" => Marker::EndPatch,
            "End of File" => Marker::EndOfFile,
            _ => {
                let (name, value) = body.split_once(':')?;
                missing_space = !value.starts_with(' ');
                let value = value.trim();
                match name {
                    "Add File" => Marker::AddFile(value),
                    "Delete File" => Marker::DeleteFile(value),
                    "Update File" => Marker::UpdateFile(value),
                    "Move to" => Marker::MoveTo(value),
                    "Environment ID" => Marker::EnvironmentId,
                    _ => return None,
                }
            }
        };
        let indented = line.starts_with(char::is_whitespace);
        Some(Self { marker, indented, trailing_stars, missing_space })
    }
}

impl Marker<'_> {
    /// Returns whether this starts or extends an operation.
    pub(super) fn is_operation(&self) -> bool {
        match self {
            Self::AddFile(_) | Self::DeleteFile(_) | Self::UpdateFile(_) | Self::MoveTo(_) => true,
            Self::BeginPatch | Self::EndPatch | Self::EndOfFile | Self::EnvironmentId => false,
        }
    }
}

/// Strips every separate `***` at the end.
fn strip_trailing_stars(mut body: &str) -> (&str, bool) {
    let mut trailing_stars = false;
    while let Some(rest) = body.strip_suffix("***") {
        if !rest.ends_with(char::is_whitespace) {
            break;
        }
        body = rest.trim_end();
        trailing_stars = true;
    }
    (body, trailing_stars)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_read_in_every_accepted_spelling() {
        let read =
            |marker| MarkerLine { marker, indented: false, trailing_stars: false, missing_space: false };
        let plain = |marker| Some(read(marker));
        let cases = [
            ("*** Begin Patch", plain(Marker::BeginPatch)),
            ("*** Add File: a b.rs  ", plain(Marker::AddFile("a b.rs"))),
            ("*** Update File:a", Some(MarkerLine { missing_space: true, ..read(Marker::UpdateFile("a")) })),
            ("*** Move to: C:\\x", plain(Marker::MoveTo("C:\\x"))),
            ("*** Delete File: a***", plain(Marker::DeleteFile("a***"))),
            (
                "  *** End Patch *** ***",
                Some(MarkerLine { indented: true, trailing_stars: true, ..read(Marker::EndPatch) }),
            ),
            ("*** Rename File: a", None),
            ("***", None),
            ("** End Patch", None),
        ];
        for (line, expected) in cases {
            assert_eq!(MarkerLine::parse(line), expected, "{line}");
        }
    }
}
