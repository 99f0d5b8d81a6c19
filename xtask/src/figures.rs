//! `cargo xtask figures`: the headline figures of the command, against the goals in `xtask/figures.toml`.

mod measure;
mod sections;
mod table;

use std::collections::BTreeMap;

use crate::{failure::Failure, metadata::Metadata, page};

use self::{
    measure::Measurements,
    table::{Entry, Table},
};

/// Name of the markers around the table on the page.
const MARKERS: &str = "figures";

/// Times that a figure above its limit is measured.
const ATTEMPTS: usize = 3;

/// Parsed arguments.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    /// Whether a figure above its limit is a failure.
    is_check: bool,
    is_write: bool,
    is_sizes: bool,
    /// Text that the names of the measured figures contain.
    name: Option<String>,
}

/// Measures the figures whose names contain `NAME`, or all, and prints them with their goals. `--check` fails above a goal
/// with its tolerance, `--write` updates the table, and `--sizes` prints the parts of the shipped program instead.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let options = parse(arguments)?;
    if options.is_sizes {
        return sections::print(metadata);
    }
    let table = Table::load(metadata)?;
    if options.is_check {
        page::require(metadata, MARKERS, &table.rendered(), table::PATH)?;
    }
    let selected = select(&table, options.name.as_deref())?;
    let measured = measure_all(metadata, &table, &selected)?;
    let exceeded = compare(&selected, &measured);
    if options.is_write {
        let table = table.save(metadata, &measured)?;
        page::write(metadata, MARKERS, &table.rendered())?;
    }
    if options.is_check && !exceeded.is_empty() {
        return Err(Failure::new(format!(
            "{} (make it lighter, or change the goal in {} with a reason)",
            exceeded.join("; "),
            table::PATH
        )));
    }
    Ok(())
}

/// Runs the step of `cargo xtask ci --full`.
pub(crate) fn check(metadata: &Metadata) -> Result<(), Failure> {
    run(metadata, &["--check".to_owned()])
}

fn parse(arguments: &[String]) -> Result<Options, Failure> {
    let mut options = Options::default();
    for word in arguments {
        match word.as_str() {
            "--check" => options.is_check = true,
            "--write" => options.is_write = true,
            "--sizes" => options.is_sizes = true,
            name if !name.starts_with('-') && options.name.is_none() => options.name = Some(name.to_owned()),
            _ => {
                return Err(Failure::new(format!(
                    "unexpected argument `{word}`; expected [NAME] [--check] [--write] or --sizes"
                )));
            }
        }
    }
    Ok(options)
}

/// Returns the figures to be measured. A figure on request is measured if the name is its own.
fn select<'a>(table: &'a Table, name: Option<&str>) -> Result<BTreeMap<&'a str, &'a Entry>, Failure> {
    let is_selected = |key: &str, entry: &Entry| match name {
        None => !entry.on_request,
        Some(name) if entry.on_request => key == name,
        Some(name) => key.contains(name),
    };
    let entries = table.figures.iter().map(|(key, entry)| (key.as_str(), entry));
    let selected: BTreeMap<&str, &Entry> = entries.filter(|(key, entry)| is_selected(key, entry)).collect();
    if selected.is_empty() {
        let known: Vec<&str> = table.figures.keys().map(String::as_str).collect();
        let name = name.unwrap_or_default();
        return Err(Failure::new(format!(
            "no figure is named `{name}`; the figures are: {}",
            known.join(", ")
        )));
    }
    Ok(selected)
}

/// Measures each figure, and rows of benchmarks above their limit again. The lowest value of each counts.
fn measure_all(
    metadata: &Metadata,
    table: &Table,
    selected: &BTreeMap<&str, &Entry>,
) -> Result<BTreeMap<String, f64>, Failure> {
    let mut measurements = Measurements::new(metadata, table);
    let mut lowest = measurements.take(selected)?;
    for _ in 1..ATTEMPTS {
        let is_repeated = |key: &str, entry: &Entry| {
            entry.source.is_repeatable() && lowest.get(key).is_some_and(|value| *value > entry.limit())
        };
        let again: BTreeMap<&str, &Entry> = selected
            .iter()
            .map(|(key, entry)| (*key, *entry))
            .filter(|(key, entry)| is_repeated(key, entry))
            .collect();
        if again.is_empty() {
            break;
        }
        println!("measured again, since other work on the machine may be the reason");
        for (key, value) in measurements.take(&again)? {
            lowest.entry(key).and_modify(|known| *known = known.min(value)).or_insert(value);
        }
    }
    Ok(lowest)
}

/// Prints each figure beside its goal. Returns those above their limit.
fn compare(selected: &BTreeMap<&str, &Entry>, measured: &BTreeMap<String, f64>) -> Vec<String> {
    println!("{:<20} {:>9} {:>9} {:>9}  unit", "figure", "measured", "goal", "limit");
    let mut exceeded = Vec::new();
    for (key, entry) in selected {
        let Some(value) = measured.get(*key) else {
            exceeded.push(format!("{key} was not measured"));
            continue;
        };
        let (goal, limit) = (entry.goal, entry.limit());
        println!("{key:<20} {value:>9.2} {goal:>9.2} {limit:>9.2}  {}", entry.unit);
        if *value > limit {
            let unit = &entry.unit;
            exceeded.push(format!("{key} is {value:.2} {unit}, above {goal:.2} with {} %", entry.tolerance));
        }
    }
    exceeded
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Options, Table, compare, parse, select};

    const TABLE: &str = "[reference-seconds]\n\
        [figures.fast]\nwhat = \"w\"\nunit = \"ms\"\nsource = { bench = { suite = \"s\", row = \"r\" } }\ngoal = 10.0\ntolerance = 20.0\n\
        [figures.slow]\nwhat = \"w\"\nunit = \"s\"\nsource = { build-time = { profile = \"dev\", features = \"full\" } }\ngoal = 10.0\ntolerance = 0.0\non-request = true\n";

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn arguments_are_parsed() {
        let named = Options { is_check: true, name: Some("size".to_owned()), ..Options::default() };
        assert_eq!(parse(&words("size --check")).unwrap(), named);
        assert!(parse(&words("--fast")).is_err());
        assert!(parse(&words("one two")).is_err());
    }

    #[test]
    fn long_figures_are_measured_only_by_name() {
        let table = Table::parse(TABLE).unwrap();
        let names = |name| select(&table, name).unwrap().into_keys().collect::<Vec<_>>();
        assert_eq!(names(None), ["fast"]);
        assert_eq!(names(Some("a")), ["fast"]);
        assert_eq!(names(Some("slow")), ["slow"]);
        assert!(select(&table, Some("none")).unwrap_err().to_string().contains("fast, slow"));
    }

    #[test]
    fn a_figure_above_goal_and_tolerance_is_reported() {
        let table = Table::parse(TABLE).unwrap();
        let selected = select(&table, None).unwrap();
        let compared = |value: Option<f64>| {
            let measured: BTreeMap<String, f64> =
                value.map(|value| ("fast".to_owned(), value)).into_iter().collect();
            compare(&selected, &measured)
        };
        assert_eq!(compared(Some(12.0)), [""; 0]);
        assert_eq!(compared(Some(12.1)), ["fast is 12.10 ms, above 10.00 with 20 %"]);
        assert_eq!(compared(None), ["fast was not measured"]);
    }
}
