//! `pintle config`: values and their sources.

use pintle_host::config_file::keys::{self, BASE_URL, KEY_COMMAND, Key, PROFILE, PROFILES, TOOL_DIRS};
use pintle_host::config_file::{problem, user_path};
use pintle_host::configuration::{Configuration, Settings, Source, Value, project_root};
use pintle_host::failure::Failure;
use pintle_host::policy::configuration_path;
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::json_line;
use pintle_host::{BaseUrl, ValueKind, ValueOrigin};
use pintle_tui::console;
use serde_json::{Value as Json, json};

use super::schema::default_of;
use crate::arguments::{ListConfigArgs, ListFormat};
use crate::exit::Exit;

/// Key with its value and source, for output.
struct Row {
    name: String,
    value: Json,
    text: String,
    source: String,
}

/// Lists the value of each key in the current directory.
pub(super) async fn list(args: &ListConfigArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let loaded = Configuration::load(process_env.directory(None).ok().as_deref(), process_env).await?;
    let ignored = problem::check(&loaded.problems, args.configuration.ignore_config_errors)?;
    process_env.notices().report_all(ignored);
    let profile = args.profile.as_ref().map(|profile| profile.to_string_lossy());
    let rows = rows(&loaded.effective_settings(profile.as_deref(), process_env)?, &loaded);
    let text = match args.output {
        ListFormat::Json => {
            let rows: Vec<Json> = rows
                .iter()
                .map(|row| json!({"key": row.name, "value": row.value, "source": row.source}))
                .collect();
            json_line(&rows)?
        }
        ListFormat::Text => table(&rows),
    };
    console::print(&text).await?;
    process_env.notices().report_all(loaded.notices);
    Ok(Exit::Done)
}

/// Returns the effective values in the current directory, as a table.
pub(super) async fn effective(process_env: &ProcessEnv) -> Result<String, Failure> {
    let loaded = Configuration::load(process_env.directory(None).ok().as_deref(), process_env).await?;
    problem::check(&loaded.problems, false)?;
    Ok(table(&rows(&loaded.effective_settings(None, process_env)?, &loaded)))
}

/// Prints the paths of both files.
pub(super) async fn paths(process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let user = user_path(process_env).map(|path| path.display().to_string());
    let project = configuration_path(&project_root(process_env).await?);
    let missing = "(no directory: expected PINTLE_CONFIG_DIR, XDG_CONFIG_HOME or HOME)";
    let user = user.as_deref().unwrap_or(missing);
    let text = format!("user     {user}\nproject  {}\n", project.display());
    console::print(&text).await.map(|()| Exit::Done)
}

fn rows(settings: &Settings, loaded: &Configuration) -> Vec<Row> {
    let mut rows: Vec<Row> = keys::all()
        .map(|key| {
            let value = settings.values.get(key.name);
            let selected = settings.profile.as_ref().filter(|_| key.name == PROFILE);
            row(&key, selected.or(value))
        })
        .collect();
    for command in &loaded.user.key_commands {
        let source = Source::File { name: loaded.user.name.clone(), line: command.line, profile: None };
        rows.push(Row {
            name: format!("{KEY_COMMAND}.{}", command.provider),
            value: json!(command.words),
            text: command.words.join(" "),
            source: ValueOrigin::from(&source).to_string(),
        });
    }
    if let Some(first) = loaded.user.tool_dirs.first() {
        let source = Source::File { name: loaded.user.name.clone(), line: first.line, profile: None };
        let paths = loaded.user.tool_dirs.iter().map(|directory| directory.path.display().to_string());
        let paths: Vec<String> = paths.collect();
        rows.push(Row {
            name: TOOL_DIRS.to_owned(),
            value: json!(paths),
            text: paths.join(", "),
            source: ValueOrigin::from(&source).to_string(),
        });
    }
    let profiles = loaded.profiles();
    if !profiles.is_empty() {
        let names: Vec<&str> = profiles.into_iter().collect();
        rows.push(Row {
            name: PROFILES.to_owned(),
            value: json!(names),
            text: names.join(", "),
            source: String::new(),
        });
    }
    rows
}

fn row(key: &Key, value: Option<&Value>) -> Row {
    let name = key.name.to_owned();
    let Some(value) = value else {
        let text = key.row.default.to_string();
        return Row { name, value: default_of(key), text, source: "default".to_owned() };
    };
    // It may contain a password.
    let text = if key.name == BASE_URL {
        BaseUrl::new(&value.text).redacted().as_str().to_owned()
    } else {
        value.text.clone()
    };
    Row {
        name,
        value: json_of(key.row.kind, &text),
        text,
        source: ValueOrigin::from(&value.source).to_string(),
    }
}

/// Returns a value in its form in the file.
pub(super) fn json_of(kind: ValueKind, text: &str) -> Json {
    match kind {
        ValueKind::Count | ValueKind::Percent => text.parse::<u64>().map_or(Json::Null, Json::from),
        ValueKind::Switch => Json::from(text == "true"),
        // Lists of hosts are JSON.
        ValueKind::Network => serde_json::from_str(text).unwrap_or_else(|_| Json::from(text)),
        ValueKind::Text
        | ValueKind::Url
        | ValueKind::Choice(_)
        | ValueKind::Time
        | ValueKind::Path
        | ValueKind::Profile
        | ValueKind::Rule
        | ValueKind::Structure => Json::from(text),
    }
}

fn table(rows: &[Row]) -> String {
    let width = |text: fn(&Row) -> &str| rows.iter().map(|row| text(row).chars().count()).max().unwrap_or(0);
    let (names, values) = (width(|row| &row.name), width(|row| &row.text).min(40));
    let line = |row: &Row| {
        let line = format!("{:names$}  {:values$}  {}", row.name, row.text, row.source);
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}
