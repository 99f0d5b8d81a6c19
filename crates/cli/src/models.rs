//! `pintle models`: what is known of models, and where a person may say more.

use std::borrow::Cow;
use std::path::PathBuf;

use pintle_llm::{Catalog, ModelInfo};

use crate::args::{CatalogArgs, ListFormat, ModelsArgs};
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::host::Host;
use crate::render;

/// The variable that names a catalog file where no flag does.
const VARIABLE: &str = "PINTLE_CATALOG";

/// Stands for what nobody knows.
const UNKNOWN: &str = "-";

const COLUMNS: [Column; 11] = [
    Column { title: "PROVIDER", is_number: false },
    Column { title: "MODEL", is_number: false },
    Column { title: "WINDOW", is_number: true },
    Column { title: "OUTPUT", is_number: true },
    Column { title: "$ IN", is_number: true },
    Column { title: "$ OUT", is_number: true },
    Column { title: "$ CACHED", is_number: true },
    Column { title: "$ WRITTEN", is_number: true },
    Column { title: "ABLE", is_number: false },
    Column { title: "KNOWS UNTIL", is_number: false },
    Column { title: "NOTES", is_number: false },
];

/// What is under the table.
const LEGEND: &str = "\n\
    Windows and outputs are in tokens, prices in US dollars per million tokens: of input, output, and input from and \
    into the cache.\nAble: t calls tools, v sees images, r reasons. A dash is unknown.\n";

#[derive(Clone, Copy)]
struct Column {
    title: &'static str,
    is_number: bool,
}

/// Lists the catalog. Needs no key.
///
/// # Errors
///
/// A usage failure for a provider without models and for a catalog file that cannot be used, else those of writing.
pub(crate) async fn models(args: &ModelsArgs, host: &Host) -> Result<Exit, Failure> {
    let catalog = catalog(&args.catalog, host)?;
    let provider = args.provider.as_deref();
    let listed: Vec<&ModelInfo> = catalog.list(provider).collect();
    if let (Some(provider), true) = (provider, listed.is_empty()) {
        return Err(nobody(provider, &catalog));
    }
    let text = match args.output {
        ListFormat::Json => render::line(&listed)?,
        ListFormat::Text => render::harmless(&table(&listed)).into_owned(),
    };
    Console::new().write(&text).await?;
    Ok(Exit::Done)
}

/// The shipped catalog, with the file that the flag or else the variable names over it.
///
/// # Errors
///
/// A usage failure that says who named the file, and what is wrong with it.
pub(crate) fn catalog(args: &CatalogArgs, host: &Host) -> Result<Cow<'static, Catalog>, Failure> {
    let flag = args.catalog.clone().map(|file| ("--catalog", file));
    let named = flag.or_else(|| host.variable(VARIABLE).map(|file| (VARIABLE, PathBuf::from(file))));
    let Some((given_by, file)) = named else { return Ok(Cow::Borrowed(Catalog::built_in())) };
    Catalog::from_file(&file).map(Cow::Owned).map_err(|error| {
        Failure::usage(format!("{given_by} {}: it cannot be used", file.display())).because(&error)
    })
}

fn nobody(provider: &str, catalog: &Catalog) -> Failure {
    let mut known: Vec<&str> = catalog.list(None).map(|model| model.provider.as_str()).collect();
    known.dedup();
    Failure::usage(format!("the catalog has no models of `{provider}`; it has those of {}", known.join(", ")))
}

/// The models in columns, under their titles.
fn table(models: &[&ModelInfo]) -> String {
    let rows: Vec<[String; COLUMNS.len()]> = models.iter().map(|model| cells(model)).collect();
    let widths: Vec<usize> = COLUMNS
        .iter()
        .enumerate()
        .map(|(place, column)| {
            let cells = rows.iter().filter_map(|row| row.get(place));
            cells.map(|cell| cell.chars().count()).fold(column.title.len(), usize::max)
        })
        .collect();
    let titles = COLUMNS.map(|column| column.title.to_owned());
    let lines = std::iter::once(&titles).chain(&rows).map(|row| line(row, &widths));
    lines.chain([LEGEND.to_owned()]).collect()
}

fn line(row: &[String], widths: &[usize]) -> String {
    let cells = row.iter().zip(widths).zip(COLUMNS).map(|((cell, width), column)| {
        if column.is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
    });
    let text = cells.collect::<Vec<_>>().join("  ");
    format!("{}\n", text.trim_end())
}

fn cells(model: &ModelInfo) -> [String; COLUMNS.len()] {
    let number = |number: Option<u64>| number.map_or_else(|| UNKNOWN.to_owned(), |number| number.to_string());
    [
        model.provider.clone(),
        model.id.clone(),
        model.context_window.to_string(),
        number(model.max_output),
        price(model.input_cost_per_million),
        price(model.output_cost_per_million),
        price(model.cache_read_cost_per_million),
        price(model.cache_write_cost_per_million),
        abilities(model),
        model.knowledge_cutoff.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
        notes(model),
    ]
}

fn price(dollars: Option<f64>) -> String {
    dollars.map_or_else(|| UNKNOWN.to_owned(), |dollars| dollars.to_string())
}

fn abilities(model: &ModelInfo) -> String {
    let letters =
        [('t', model.supports_tools), ('v', model.supports_vision), ('r', model.supports_reasoning)];
    let letters: String = letters.into_iter().filter(|(_, able)| *able).map(|(letter, _)| letter).collect();
    if letters.is_empty() { UNKNOWN.to_owned() } else { letters }
}

/// Prices of long prompts, the end of its time, and its other names.
fn notes(model: &ModelInfo) -> String {
    let tiers = model.price_tiers.iter().map(|tier| {
        let (input, output) = (price(tier.input_cost_per_million), price(tier.output_cost_per_million));
        format!("above {} tokens: $ {input} in, {output} out", tier.above_input_tokens)
    });
    let retires = model.retires_on.iter().map(|day| format!("retires {day}"));
    let names = (!model.aliases.is_empty()).then(|| format!("also {}", model.aliases.join(", ")));
    tiers.chain(retires).chain(names).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_line_for_each_model() {
        let catalog = Catalog::from_json(
            r#"[{"id": "big", "provider": "house", "context_window": 1000000, "max_output": 5, "supports_tools": true,
                 "supports_reasoning": true, "input_cost_per_million": 0.175, "output_cost_per_million": 4,
                 "price_tiers": [{"above_input_tokens": 200, "input_cost_per_million": 1}],
                 "knowledge_cutoff": "May 2025", "retires_on": "2027-01-01", "aliases": ["b", "bg"]},
                {"id": "naïve-model", "provider": "h", "context_window": 8}]"#,
        )
        .unwrap();
        let models: Vec<&ModelInfo> = catalog.list(None).collect();
        insta::assert_snapshot!(table(&models), @r"
        PROVIDER  MODEL         WINDOW  OUTPUT   $ IN  $ OUT  $ CACHED  $ WRITTEN  ABLE  KNOWS UNTIL  NOTES
        house     big          1000000       5  0.175      4         -          -  tr    May 2025     above 200 tokens: $ 1 in, - out; retires 2027-01-01; also b, bg
        h         naïve-model        8       -      -      -         -          -  -     -

        Windows and outputs are in tokens, prices in US dollars per million tokens: of input, output, and input from and into the cache.
        Able: t calls tools, v sees images, r reasons. A dash is unknown.
        ");
    }
}
