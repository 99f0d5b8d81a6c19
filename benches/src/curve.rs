//! How something grows, as a small table and a drawing.

mod svg;

use std::fmt::Write as _;

/// How something grows with something else, with its floor beside it.
pub(crate) struct Curve {
    /// The name of the drawing's file, without its extension.
    pub(crate) file: &'static str,
    pub(crate) title: &'static str,
    /// What grows, to the right.
    pub(crate) x: &'static str,
    /// What it takes, upwards, with the unit.
    pub(crate) y: &'static str,
    pub(crate) lines: Vec<Line>,
}

/// One line of a drawing.
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) points: Vec<(f64, f64)>,
}

impl Curve {
    /// The drawing, both axes logarithmic.
    pub(crate) fn svg(&self) -> String {
        svg::draw(self)
    }

    /// The drawing's place in the page, the ends of each line, and the slope between them.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("\n![{}]({}.svg)\n\n", self.title, self.file);
        for line in &self.lines {
            let (Some(first), Some(last)) = (line.points.first(), line.points.last()) else { continue };
            writeln!(
                text,
                "* {}, {}: {} {} at {}, {} at {}; at the end it grows with the {} to the power of {:.2}.",
                self.title,
                line.name,
                short(first.1),
                self.y,
                short(first.0),
                short(last.1),
                short(last.0),
                self.x,
                line.slope(),
            )
            .expect("a string takes it");
        }
        text
    }
}

impl Line {
    /// The exponent between the last two points: 0 is flat, 1 linear, 2 quadratic.
    fn slope(&self) -> f64 {
        let [.., from, to] = self.points.as_slice() else { return 0.0 };
        (to.1 / from.1).ln() / (to.0 / from.0).ln()
    }
}

/// A number in few characters.
fn short(value: f64) -> String {
    let (scaled, suffix) = match value {
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e3 => (value / 1e3, "k"),
        value => (value, ""),
    };
    let digits = if scaled < 1.0 {
        3
    } else if scaled < 10.0 {
        2
    } else if scaled < 100.0 {
        1
    } else {
        0
    };
    let text = format!("{scaled:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{suffix}")
}
