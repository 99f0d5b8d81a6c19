//! Growth curves, as a list and as a drawing.

mod svg;

use std::fmt::Write as _;

/// Growth of a quantity with another one, beside its baseline.
pub(crate) struct Curve {
    /// File name of the drawing, without extension.
    pub(crate) file: &'static str,
    pub(crate) title: &'static str,
    /// Name of the x axis.
    pub(crate) x: &'static str,
    /// Name of the y axis, with the unit.
    pub(crate) y: &'static str,
    pub(crate) lines: Vec<Line>,
}

/// One line of a drawing.
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) points: Vec<(f64, f64)>,
}

impl Curve {
    /// Draws the curve with logarithmic axes.
    pub(crate) fn svg(&self) -> String {
        svg::draw(self)
    }

    /// Renders the image link, and the first point, the last point and the final slope of each line.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("\n![{}]({}.svg)\n\n", self.title, self.file);
        for line in &self.lines {
            let (Some(first), Some(last)) = (line.points.first(), line.points.last()) else { continue };
            writeln!(
                text,
                "* {}, {}: {} {} at {}, {} at {}; final exponent of growth with the {}: {:.2}.",
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
    /// Returns the exponent between the last two points: 0 is constant, 1 linear, 2 quadratic.
    fn slope(&self) -> f64 {
        let [.., from, to] = self.points.as_slice() else { return 0.0 };
        (to.1 / from.1).ln() / (to.0 / from.0).ln()
    }
}

/// Formats a number with three digits and a suffix.
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
