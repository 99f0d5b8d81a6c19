//! Results of a suite, as Markdown.

use std::fmt::Write as _;

use crate::curve::Curve;
use crate::measure::{Aim, Round, Row, Spread, milliseconds};

/// Results of a suite.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
    pub(crate) facts: Vec<Fact>,
    pub(crate) curves: Vec<Curve>,
    /// Headline figures, by their names in `xtask/figures.toml`.
    pub(crate) figures: Vec<(&'static str, f64)>,
}

/// A number with a unit, without a baseline.
pub(crate) struct Fact {
    what: String,
    unit: &'static str,
    bound: Bound,
    spread: Spread,
}

/// Expected range of a fact.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
    /// No expectation.
    None,
}

impl From<Vec<Row>> for Report {
    fn from(rows: Vec<Row>) -> Self {
        Self { rows, ..Self::default() }
    }
}

impl Fact {
    /// Creates a fact from the values of several rounds.
    pub(crate) fn new(what: impl Into<String>, unit: &'static str, bound: Bound, values: Vec<f64>) -> Self {
        let spread = Spread::of(values).expect("something was measured");
        Self { what: what.into(), unit, bound, spread }
    }
}

/// Name of a headline figure, and its value in a round.
pub(crate) type Figure = (&'static str, fn(Round) -> f64);

impl Report {
    /// Adds a row whose median is a headline figure, by the number of each round that the figure is.
    pub(crate) fn push_figures(&mut self, row: Row, figures: &[Figure]) {
        let medians = figures.iter().filter_map(|(name, of)| Some((*name, row.spread(of)?.median)));
        self.figures.extend(medians);
        self.rows.push(row);
    }

    /// Adds a fact whose median is a headline figure.
    pub(crate) fn push_figure(&mut self, fact: Fact, name: &'static str) {
        self.figures.push((name, fact.spread.median));
        self.facts.push(fact);
    }

    /// Renders the headline figures as `cargo xtask figures` reads them.
    pub(crate) fn figure_lines(&self) -> String {
        self.figures.iter().map(|(name, value)| format!("figure {name} {value}\n")).collect()
    }

    /// Renders tables, curves and notes.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        if !self.rows.is_empty() {
            text.push_str(
                "| measurement | baseline | ratio: median (min to max) | CPU ratio | target | met |\n",
            );
            text.push_str("|---|---|---|---|---|---|\n");
            self.rows.iter().filter_map(row).for_each(|line| text.push_str(&line));
        }
        if !self.facts.is_empty() {
            if !self.rows.is_empty() {
                text.push('\n');
            }
            text.push_str("| measurement | median (min to max) | target | met |\n|---|---|---|---|\n");
            self.facts.iter().for_each(|each| text.push_str(&fact(each)));
        }
        self.curves.iter().for_each(|curve| text.push_str(&curve.markdown()));
        let notes: Vec<&String> = self.rows.iter().filter_map(|row| row.note.as_ref()).collect();
        if !notes.is_empty() {
            text.push('\n');
            notes.iter().for_each(|note| writeln!(text, "* {note}").expect("a string takes it"));
        }
        text
    }
}

fn row(row: &Row) -> Option<String> {
    let (wall, cpu) = (row.spread(Round::wall)?, row.spread(Round::cpu)?);
    let baseline = row.spread(Round::baseline_wall)?;
    let took = match row.aim {
        Aim::Cpu(_) | Aim::MoreCpu(_) => format!("{} of CPU", time(row.spread(Round::baseline_cpu)?.median)),
        Aim::Wall(_) | Aim::Both(_) | Aim::Each { .. } | Aim::More(_) => time(baseline.median),
    };
    let (first, aim) = match row.aim {
        Aim::Wall(most) => (ratio(wall), format!("{most:.2}")),
        Aim::Both(most) => (ratio(wall), format!("{most:.2}, both")),
        Aim::Each { wall: most, cpu: most_cpu } => (ratio(wall), format!("{most:.2}, {most_cpu:.2} of CPU")),
        Aim::Cpu(most) => (ratio(wall), format!("{most:.2} of CPU")),
        Aim::More(most) => (more(row.spread(Round::more)?), format!("{:+.0} ms", milliseconds(most))),
        Aim::MoreCpu(most) => {
            (more(row.spread(Round::more_cpu)?), format!("{:+.0} ms of CPU", milliseconds(most)))
        }
    };
    Some(format!(
        "| {} | {} ({took}) | {first} | {} | {aim} | {} |\n",
        row.what,
        row.baseline,
        ratio(cpu),
        yes(row.is_reached())
    ))
}

fn fact(fact: &Fact) -> String {
    let Spread { least, median, most } = fact.spread;
    let (aim, reached) = match fact.bound {
        Bound::AtMost(bound) => (format!("at most {}", number(bound)), yes(median <= bound)),
        Bound::AtLeast(bound) => (format!("at least {}", number(bound)), yes(median >= bound)),
        Bound::None => ("–".to_owned(), "–"),
    };
    format!(
        "| {} | {} {} ({} to {}) | {aim} | {reached} |\n",
        fact.what,
        number(median),
        fact.unit,
        number(least),
        number(most)
    )
}

fn more(spread: Spread) -> String {
    format!("{:+.1} ms ({:+.1} to {:+.1})", spread.median, spread.least, spread.most)
}

fn ratio(spread: Spread) -> String {
    format!("{:.2} ({:.2} to {:.2})", spread.median, spread.least, spread.most)
}

fn time(milliseconds: f64) -> String {
    if milliseconds < 0.1 {
        format!("{:.2} µs", milliseconds * 1_000.0)
    } else {
        format!("{milliseconds:.2} ms")
    }
}

/// Formats a number, with commas from 1,000 on.
fn number(value: f64) -> String {
    if value.abs() < 100.0 {
        return format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = if value < 0.0 { "-".to_owned() } else { String::new() };
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}
