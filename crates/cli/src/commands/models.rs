//! `pintle models`: lists the model catalog.

use pintle_host::failure::Failure;
use pintle_host::model_catalog;
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::json_line;
use pintle_llm::{Catalog, ModelInfo};
use pintle_tui::console;

use crate::arguments::{ListFormat, ModelsArgs};
use crate::exit::Exit;

/// Placeholder for an unknown value.
const UNKNOWN: &str = "-";

const COLUMNS: [TableColumn; 11] = [
    TableColumn { title: "PROVIDER", is_number: false },
    TableColumn { title: "MODEL", is_number: false },
    TableColumn { title: "WINDOW", is_number: true },
    TableColumn { title: "OUTPUT", is_number: true },
    TableColumn { title: "$ IN", is_number: true },
    TableColumn { title: "$ OUT", is_number: true },
    TableColumn { title: "$ CACHED", is_number: true },
    TableColumn { title: "$ WRITTEN", is_number: true },
    TableColumn { title: "FEATURES", is_number: false },
    TableColumn { title: "CUTOFF", is_number: false },
    TableColumn { title: "NOTES", is_number: false },
];

/// Legend below the table.
const LEGEND: &str = "\n\
    WINDOW and OUTPUT are in tokens; prices are US dollars per million tokens of input, output, cache reads and cache \
    writes.\nFEATURES: t tools, v vision, r reasoning. A dash means unknown.\n";

#[derive(Clone, Copy)]
struct TableColumn {
    title: &'static str,
    is_number: bool,
}

/// Lists the catalog. Needs no key.
pub(crate) async fn models(args: &ModelsArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let catalog = model_catalog::load(args.catalog.catalog.as_deref(), process_env)?;
    let provider = args.provider.as_deref();
    let listed: Vec<&ModelInfo> = catalog.list(provider).collect();
    if let (Some(provider), true) = (provider, listed.is_empty()) {
        return Err(no_models(provider, &catalog));
    }
    let text = match args.output {
        ListFormat::Json => json_line(&listed)?,
        ListFormat::Text => table(&listed),
    };
    console::print(&text).await?;
    Ok(Exit::Done)
}

fn no_models(provider: &str, catalog: &Catalog) -> Failure {
    let mut known: Vec<&str> = catalog.list(None).map(|model| model.provider.as_str()).collect();
    known.dedup();
    Failure::usage(format!(
        "the catalog has no models of provider `{provider}`; it has models of {}",
        known.join(", ")
    ))
}

/// Formats the models as a table.
fn table(models: &[&ModelInfo]) -> String {
    let rows: Vec<[String; COLUMNS.len()]> = models.iter().map(|model| cells(model)).collect();
    let widths: Vec<usize> = COLUMNS
        .iter()
        .enumerate()
        .map(|(index, column)| {
            let cells = rows.iter().filter_map(|row| row.get(index));
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
    let line = cells.collect::<Vec<_>>().join("  ");
    format!("{}\n", line.trim_end())
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
        features(model),
        model.knowledge_cutoff.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
        notes(model),
    ]
}

fn price(dollars: Option<f64>) -> String {
    dollars.map_or_else(|| UNKNOWN.to_owned(), |dollars| dollars.to_string())
}

fn features(model: &ModelInfo) -> String {
    let letters =
        [('t', model.supports_tools), ('v', model.supports_vision), ('r', model.supports_reasoning)];
    let letters: String =
        letters.into_iter().filter(|(_, supported)| *supported).map(|(letter, _)| letter).collect();
    if letters.is_empty() { UNKNOWN.to_owned() } else { letters }
}

/// Returns prices of long prompts, retirement date and aliases.
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
    fn table_has_a_row_per_model() {
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
        PROVIDER  MODEL         WINDOW  OUTPUT   $ IN  $ OUT  $ CACHED  $ WRITTEN  FEATURES  CUTOFF    NOTES
        house     big          1000000       5  0.175      4         -          -  tr        May 2025  above 200 tokens: $ 1 in, - out; retires 2027-01-01; also b, bg
        h         naïve-model        8       -      -      -         -          -  -         -

        WINDOW and OUTPUT are in tokens; prices are US dollars per million tokens of input, output, cache reads and cache writes.
        FEATURES: t tools, v vision, r reasoning. A dash means unknown.
        ");
    }
}
