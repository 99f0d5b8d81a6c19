//! SVG drawings: a frame, grid lines at powers of ten, and a line per series.

use std::fmt::Write as _;

use super::{Curve, Line, short};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;

/// Colours and dashes; the dashes differ for readers who do not see colours.
const STYLES: [(&str, &str); 3] = [("#1f5fa8", "none"), ("#b0492b", "6 4"), ("#4a7a3a", "2 3")];

pub(super) fn draw(curve: &Curve) -> String {
    let points = || curve.lines.iter().flat_map(|line| &line.points);
    let x = Axis::around(points().map(|point| point.0));
    let y = Axis::around(points().map(|point| point.1));
    let position = |point: &(f64, f64)| {
        let right = LEFT + x.share(point.0) * (WIDTH - LEFT - RIGHT);
        let down = HEIGHT - BOTTOM - y.share(point.1) * (HEIGHT - TOP - BOTTOM);
        (right, down)
    };
    let mut svg = String::new();
    let mut put = |text: String| {
        svg.push_str(&text);
        svg.push('\n');
    };
    put(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">"
    ));
    put(format!("<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>"));
    put(text(WIDTH / 2.0, 20.0, "middle", curve.title));
    put(text(WIDTH / 2.0, HEIGHT - 10.0, "middle", curve.x));
    put(format!(
        "<text x=\"16\" y=\"{0}\" text-anchor=\"middle\" transform=\"rotate(-90 16 {0})\">{1}</text>",
        HEIGHT / 2.0,
        curve.y
    ));
    for tick in x.ticks() {
        let (right, _) = position(&(tick, y.least()));
        put(rule((right, TOP), (right, HEIGHT - BOTTOM)));
        put(text(right, HEIGHT - BOTTOM + 18.0, "middle", &short(tick)));
    }
    for tick in y.ticks() {
        let (_, down) = position(&(x.least(), tick));
        put(rule((LEFT, down), (WIDTH - RIGHT, down)));
        put(text(LEFT - 8.0, down + 4.0, "end", &short(tick)));
    }
    for (index, (line, (colour, dashes))) in curve.lines.iter().zip(STYLES.iter().cycle()).enumerate() {
        put(path(line, position, colour, dashes));
        let down = TOP + 18.0 + 18.0 * f64::from(u32::try_from(index).unwrap_or_default());
        put(format!(
            "<line x1=\"{0}\" y1=\"{down}\" x2=\"{1}\" y2=\"{down}\" stroke=\"{colour}\" stroke-width=\"2\" \
             stroke-dasharray=\"{dashes}\"/>",
            LEFT + 12.0,
            LEFT + 42.0
        ));
        put(text(LEFT + 50.0, down + 4.0, "start", line.name));
    }
    put("</svg>".to_owned());
    svg
}

fn path(line: &Line, position: impl Fn(&(f64, f64)) -> (f64, f64), colour: &str, dashes: &str) -> String {
    let mut points = String::new();
    for point in &line.points {
        let (right, down) = position(point);
        write!(points, "{right:.1},{down:.1} ").expect("a string takes it");
    }
    format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
         stroke-dasharray=\"{dashes}\"/>",
        points.trim_end()
    )
}

fn text(x: f64, y: f64, anchor: &str, what: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{what}</text>")
}

fn rule(from: (f64, f64), to: (f64, f64)) -> String {
    format!(
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#dddddd\"/>",
        from.0, from.1, to.0, to.1
    )
}

/// A logarithmic axis from one power of ten to another.
struct Axis {
    first: i32,
    last: i32,
}

impl Axis {
    fn around(values: impl Iterator<Item = f64> + Clone) -> Self {
        let (least, most) = values
            .filter(|value| *value > 0.0)
            .fold((f64::MAX, f64::MIN_POSITIVE), |(least, most), value| (least.min(value), most.max(value)));
        let (first, last) = (power_below(least), power_below(most));
        let last = if 10f64.powi(last) < most { last + 1 } else { last };
        Self { first, last: last.max(first + 1) }
    }

    fn least(&self) -> f64 {
        10f64.powi(self.first)
    }

    /// Returns the position of a value, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let value = value.max(self.least()).log10();
        (value - f64::from(self.first)) / f64::from(self.last - self.first)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        (self.first..=self.last).map(|power| 10f64.powi(power))
    }
}

/// Returns the exponent of the largest power of ten up to a positive value.
fn power_below(value: f64) -> i32 {
    (-30..30).rev().find(|power| 10f64.powi(*power) <= value).unwrap_or(-30)
}
