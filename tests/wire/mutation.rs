//! Ways in which the same stream may arrive over a connection.

use crate::manifest::Kind;
use crate::random::Random;
use crate::recording::{MARK, Recording};

/// Number of times that a stream is split at random.
const RANDOM_SPLITS: usize = 3;

/// Number of combinations of mutations.
const MIXTURES: usize = 4;

/// Number of random cuts, besides those at event boundaries.
const RANDOM_CUTS: usize = 8;

/// Maximum number of event boundaries at which a stream is cut.
const BORDERS: usize = 24;

/// Maximum size in bytes of a stream that is replayed in very small pieces in more than one way.
const SMALL: usize = 8_000;

/// A way of sending a stream.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) reads: Reads,
    /// For a truncated stream: whether the terminal event was kept.
    pub(crate) cut: Option<bool>,
}

/// Sizes of the pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    Random,
    OneByte,
}

/// Changes of the lines of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    line_end: Option<&'static [u8]>,
    mark: bool,
    comments: bool,
    no_event_lines: bool,
    no_blank_after_data: bool,
}

/// Returns every mutation in the manifest, combinations of them, and cuts.
pub(crate) fn variants(recording: &Recording, kind: Kind, random: &mut Random) -> Vec<Variant> {
    let mut variants = Vec::new();
    let mut push = |name: &str, change: Change, reads: Reads| {
        variants.push(Variant { name: name.to_owned(), bytes: changed(recording, change), reads, cut: None });
    };
    for _ in 0..RANDOM_SPLITS {
        push("random pieces", Change::default(), Reads::Random);
    }
    push("one byte at a time", Change::default(), Reads::OneByte);
    for (name, end) in LINE_ENDS {
        push(name, Change { line_end: Some(end), ..Change::default() }, Reads::Random);
    }
    push("byte-order mark", Change { mark: true, ..Change::default() }, Reads::Random);
    push("comments", Change { comments: true, ..Change::default() }, Reads::Random);
    push("no event: lines", Change { no_event_lines: true, ..Change::default() }, Reads::Random);
    push("no blank after data:", Change { no_blank_after_data: true, ..Change::default() }, Reads::Random);
    for _ in 0..MIXTURES {
        let change = Change {
            line_end: LINE_ENDS.get(random.below(LINE_ENDS.len() + 1)).map(|(_, end)| *end),
            mark: random.flip(),
            comments: random.flip(),
            no_event_lines: random.flip(),
            no_blank_after_data: random.flip(),
        };
        let small = recording.bytes.len() <= SMALL;
        let reads = if small && random.flip() { Reads::OneByte } else { Reads::Random };
        push(&format!("{change:?}, {reads:?}"), change, reads);
    }
    variants.extend(cuts(recording, kind, random));
    variants
}

impl Reads {
    /// Splits the bytes into non-empty pieces.
    pub(crate) fn pieces(self, bytes: &[u8], random: &mut Random) -> Vec<Vec<u8>> {
        // Small pieces find bugs that large ones hide, and vice versa.
        let sizes = [3, 40, 700, 9_000];
        let (smallest, choices) = if bytes.len() <= SMALL { (0, 4) } else { (1, 3) };
        let largest = match self {
            Self::OneByte => 1,
            Self::Random => sizes.get(smallest + random.below(choices)).copied().unwrap_or(1),
        };
        let mut pieces = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at(rest.len().min(1 + random.below(largest)));
            pieces.push(piece.to_vec());
            rest = tail;
        }
        pieces
    }
}

const LINE_ENDS: [(&str, &[u8]); 3] = [("LF", b"\n"), ("CRLF", b"\r\n"), ("CR", b"\r")];

fn changed(recording: &Recording, change: Change) -> Vec<u8> {
    let mut out = Vec::with_capacity(recording.bytes.len() + 64);
    if change.mark || recording.bytes.starts_with(MARK) {
        out.extend_from_slice(MARK);
    }
    let mut comment = 0_usize;
    for line in recording.lines() {
        if change.no_event_lines && line.text.starts_with(b"event:") {
            continue;
        }
        let end = change.line_end.filter(|_| !line.end.is_empty()).unwrap_or(line.end);
        let unspaced = line.text.strip_prefix(b"data: ").filter(|_| change.no_blank_after_data);
        match unspaced {
            Some(data) => {
                out.extend_from_slice(b"data:");
                out.extend_from_slice(data);
            }
            None => out.extend_from_slice(line.text),
        }
        out.extend_from_slice(end);
        if change.comments && line.text.is_empty() {
            out.extend_from_slice(COMMENTS.get(comment % COMMENTS.len()).copied().unwrap_or_default());
            out.extend_from_slice(end);
            if comment.is_multiple_of(2) {
                out.extend_from_slice(end);
            }
            comment += 1;
        }
    }
    out
}

const COMMENTS: [&[u8]; 4] = [b":", b": keep-alive", b":data: {}", b": event: error \xE2\x80\xA6"];

/// Returns the stream up to each event boundary, and up to positions within events.
fn cuts(recording: &Recording, kind: Kind, random: &mut Random) -> Vec<Variant> {
    let terminal = recording.terminal_end(kind);
    let ends: Vec<usize> = recording.events().iter().map(|event| event.end).collect();
    let step = ends.len().div_ceil(BORDERS).max(1);
    let borders = std::iter::once(0).chain(ends.iter().copied()).step_by(step);
    let around_the_end = ends.iter().rev().skip(1).take(3).copied();
    let mut places: Vec<usize> = borders.chain(around_the_end).collect();
    places.extend((0..RANDOM_CUTS).map(|_| random.below(recording.bytes.len())));
    places.sort_unstable();
    places.dedup();
    let kept = places.into_iter().filter(|place| *place < recording.bytes.len());
    // A carriage return ends a line by itself, so the last event is complete without the line feed after it.
    let line_ends_at = |place: usize| match recording.bytes.get(..place) {
        Some([.., b'\r']) => place + 1,
        Some(_) | None => place,
    };
    let variant = |place: usize| Variant {
        name: format!("cut after {place} of {} bytes", recording.bytes.len()),
        bytes: recording.bytes.get(..place).unwrap_or_default().to_vec(),
        reads: Reads::Random,
        cut: Some(terminal.is_some_and(|end| end <= line_ends_at(place))),
    };
    kept.map(variant).collect()
}
