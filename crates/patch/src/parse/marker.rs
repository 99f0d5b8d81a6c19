//! The `***` lines of a patch.

/// What a `***` line says.
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

/// A marker, and how it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MarkerLine<'a> {
    pub(super) marker: Marker<'a>,
    /// Blanks stand before it.
    pub(super) padded: bool,
    /// It ends in `***`.
    pub(super) starred: bool,
    /// Its path follows on the colon without a blank.
    pub(super) tight: bool,
}

impl<'a> MarkerLine<'a> {
    /// Reads `line` as a marker, wherever it starts.
    pub(super) fn read(line: &'a str) -> Option<Self> {
        let trimmed = line.trim();
        let (body, starred) = without_stars(trimmed.strip_prefix("*** ")?.trim());
        let mut tight = false;
        let marker = match body {
            "Begin Patch" => Marker::BeginPatch,
            "End Patch" => Marker::EndPatch,
            "End of File" => Marker::EndOfFile,
            _ => {
                let (name, value) = body.split_once(':')?;
                tight = !value.starts_with(' ');
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
        let padded = line.starts_with(char::is_whitespace);
        Some(Self { marker, padded, starred, tight })
    }
}

impl Marker<'_> {
    /// Whether this opens or extends an operation.
    pub(super) fn is_operation(&self) -> bool {
        match self {
            Self::AddFile(_) | Self::DeleteFile(_) | Self::UpdateFile(_) | Self::MoveTo(_) => true,
            Self::BeginPatch | Self::EndPatch | Self::EndOfFile | Self::EnvironmentId => false,
        }
    }
}

/// Drops every `***` that stands alone at the end.
fn without_stars(mut body: &str) -> (&str, bool) {
    let mut starred = false;
    while let Some(rest) = body.strip_suffix("***") {
        if !rest.ends_with(char::is_whitespace) {
            break;
        }
        body = rest.trim_end();
        starred = true;
    }
    (body, starred)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_read_however_they_are_dressed() {
        let read = |marker| MarkerLine { marker, padded: false, starred: false, tight: false };
        let plain = |marker| Some(read(marker));
        let cases = [
            ("*** Begin Patch", plain(Marker::BeginPatch)),
            ("*** Add File: a b.rs  ", plain(Marker::AddFile("a b.rs"))),
            ("*** Update File:a", Some(MarkerLine { tight: true, ..read(Marker::UpdateFile("a")) })),
            ("*** Move to: C:\\x", plain(Marker::MoveTo("C:\\x"))),
            ("*** Delete File: a***", plain(Marker::DeleteFile("a***"))),
            (
                "  *** End Patch *** ***",
                Some(MarkerLine { padded: true, starred: true, ..read(Marker::EndPatch) }),
            ),
            ("*** Rename File: a", None),
            ("***", None),
            ("** End Patch", None),
        ];
        for (line, expected) in cases {
            assert_eq!(MarkerLine::read(line), expected, "{line}");
        }
    }
}
