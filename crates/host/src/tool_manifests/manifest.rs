//! A manifest: the file that declares a tool.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use pintle_llm::ToolDefinition;
use pintle_llm::schema::{CompiledSchema, Draft};
use pintle_tools::Effect;
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;

use super::template::{DIRECTORY, Template, WordGroup};
use crate::config_file::problem::Problem;
use crate::timeout;

/// Prefix of the names of tools of MCP servers, whose arguments no rule by command judges.
const SERVER_PREFIX: &str = "mcp__";

/// Longest output that a manifest can ask for, in characters and lines.
const MAX_OUTPUT: usize = 1_000_000;

/// A tool as its manifest declares it.
#[derive(Clone, Debug)]
pub struct ToolManifest {
    /// Definition for the model.
    pub definition: ToolDefinition,
    /// Effect of a call.
    pub effect: Effect,
    /// Program: a name, or an absolute path below the directory of the manifest.
    pub program: String,
    /// Files below the directory of the manifest that a call runs.
    pub programs: Vec<PathBuf>,
    /// Line of the name, from 1.
    pub(super) name_line: usize,
    pub(super) arguments: Vec<WordGroup>,
    pub(super) hosts: Vec<String>,
    pub(super) reads: Vec<Template>,
    pub(super) writes: Vec<Template>,
    pub(super) timeout: Option<Duration>,
    pub(super) limits: OutputLimits,
    pub(super) environment: BTreeMap<String, String>,
}

/// Limits on the part of the output that the model reads.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OutputLimits {
    pub(super) output_chars: Option<usize>,
    pub(super) output_lines: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestFile {
    name: Spanned<String>,
    description: Spanned<String>,
    parameters: Spanned<Map<String, Value>>,
    program: Spanned<String>,
    #[serde(default)]
    arguments: Vec<Spanned<ArgumentEntry>>,
    #[serde(default = "execute")]
    effect: Effect,
    #[serde(default)]
    hosts: Vec<Spanned<String>>,
    #[serde(default)]
    reads: Vec<Spanned<String>>,
    #[serde(default)]
    writes: Vec<Spanned<String>>,
    timeout: Option<Spanned<String>>,
    limits: Option<Spanned<OutputLimits>>,
    #[serde(default)]
    environment: BTreeMap<Spanned<String>, String>,
}

/// A word, or words that belong together.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text or an array of texts")]
enum ArgumentEntry {
    Word(String),
    Words(Vec<String>),
}

fn execute() -> Effect {
    Effect::Execute
}

impl ToolManifest {
    /// Parses a manifest in `directory`. `name` is the name of the file for messages. Nothing is read.
    ///
    /// # Errors
    ///
    /// The mistakes, each with its line and the expectation.
    pub fn parse(name: &str, directory: &Path, text: &str) -> Result<Self, Vec<Problem>> {
        let mut reader = Reader { name, directory, text, problems: Vec::new(), parameters: Vec::new() };
        let file: ManifestFile = match toml::from_str(text) {
            Ok(file) => file,
            Err(error) => {
                let message = error.message().trim().replace('\n', ", ");
                reader.problem(error.span().unwrap_or_default(), message);
                return Err(reader.problems);
            }
        };
        let manifest = reader.manifest(file);
        match manifest.filter(|_| reader.problems.is_empty()) {
            Some(manifest) => Ok(manifest),
            None => Err(reader.problems),
        }
    }
}

struct Reader<'t> {
    name: &'t str,
    directory: &'t Path,
    text: &'t str,
    problems: Vec<Problem>,
    /// Names of the arguments.
    parameters: Vec<String>,
}

impl Reader<'_> {
    /// Returns the manifest; `None` without a definition. Adds the mistakes.
    fn manifest(&mut self, file: ManifestFile) -> Option<ToolManifest> {
        let properties = file.parameters.get_ref().get("properties").and_then(Value::as_object);
        self.parameters = properties.into_iter().flatten().map(|(name, _)| name.clone()).collect();
        let mut programs = Vec::new();
        let program = self.program(&file.program, &mut programs);
        let arguments = file.arguments.iter().filter_map(|entry| self.words(entry, &mut programs)).collect();
        let reads = self.paths(&file.reads);
        let writes = self.paths(&file.writes);
        if file.effect == Effect::Write && file.writes.is_empty() {
            self.problem(0..0, "`writes`: expected at least one path for the effect write".to_owned());
        }
        if matches!(file.effect, Effect::Read | Effect::Network)
            && let Some(path) = file.writes.first()
        {
            self.problem(path.span(), "`writes`: expected the effect write or execute".to_owned());
        }
        let hosts = self.hosts(&file.hosts, file.effect);
        let timeout = file.timeout.as_ref().and_then(|text| self.timeout(text));
        let limits = self.limits(file.limits.as_ref());
        let environment = self.environment(file.environment);
        let name_line = self.line_of(file.name.span().start);
        let definition = self.definition(file.name, file.description, file.parameters)?;
        Some(ToolManifest {
            definition,
            effect: file.effect,
            program,
            programs,
            name_line,
            arguments,
            hosts,
            reads,
            writes,
            timeout,
            limits,
            environment,
        })
    }

    fn definition(
        &mut self,
        name: Spanned<String>,
        description: Spanned<String>,
        parameters: Spanned<Map<String, Value>>,
    ) -> Option<ToolDefinition> {
        if name.get_ref().starts_with(SERVER_PREFIX) {
            self.problem(
                name.span(),
                format!("`name`: expected a name that does not begin with {SERVER_PREFIX}"),
            );
        }
        if description.get_ref().trim().is_empty() {
            self.problem(description.span(), "`description`: expected a text for the model".to_owned());
        }
        let (name_span, schema_span) = (name.span(), parameters.span());
        let is_object = parameters.get_ref().get("type").and_then(Value::as_str) == Some("object");
        let schema = Value::Object(parameters.into_inner());
        // Registries compile schemas as this draft.
        if let Err(error) = CompiledSchema::new(&schema, Draft::Draft7) {
            self.problem(schema_span.clone(), format!("`parameters`: expected a JSON Schema: {error}"));
        }
        match ToolDefinition::new(name.into_inner(), description.into_inner(), schema) {
            Ok(definition) => Some(definition),
            Err(error) => {
                self.problem(if is_object { name_span } else { schema_span }, error.to_string());
                None
            }
        }
    }

    /// Returns the program. One with `/` is below the directory of the manifest.
    fn program(&mut self, program: &Spanned<String>, programs: &mut Vec<PathBuf>) -> String {
        let text = program.get_ref();
        if text.trim().is_empty() || text.contains('\0') || text.starts_with('-') {
            self.problem(program.span(), "`program`: expected the name or path of a program".to_owned());
        }
        if text.contains(['{', '}']) {
            self.problem(program.span(), "`program`: expected a text without placeholders".to_owned());
        }
        if !text.contains('/') {
            return text.clone();
        }
        match self.inside(text) {
            Some(path) => {
                let text = path.to_string_lossy().into_owned();
                programs.push(path);
                text
            }
            None => {
                let problem = format!(
                    "`program`: found `{text}`, which is outside of the directory of the manifest; expected a path below \
                     it, such as ./{}, or a name without `/` that is looked up in PATH",
                    Path::new(text).file_name().unwrap_or_default().to_string_lossy()
                );
                self.problem(program.span(), problem);
                text.clone()
            }
        }
    }

    /// Returns the path of a file below the directory of the manifest; `None` for another path.
    fn inside(&self, text: &str) -> Option<PathBuf> {
        let relative = Path::new(text);
        let relative = relative.strip_prefix(self.directory).unwrap_or(relative);
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        let names: PathBuf =
            relative.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let is_inside = relative.components().all(is_plain) && !names.as_os_str().is_empty();
        is_inside.then(|| self.directory.join(names))
    }

    fn words(&mut self, entry: &Spanned<ArgumentEntry>, programs: &mut Vec<PathBuf>) -> Option<WordGroup> {
        let words = match entry.get_ref() {
            ArgumentEntry::Word(word) => std::slice::from_ref(word),
            ArgumentEntry::Words(words) => words.as_slice(),
        };
        let parsed = words.iter().map(|word| self.word(word, entry.span(), programs));
        let parsed: Option<Vec<Template>> = parsed.collect();
        parsed.map(WordGroup)
    }

    /// Parses a word of the command line. A word with the directory of the manifest is a file in it.
    fn word(&mut self, word: &str, span: Range<usize>, programs: &mut Vec<PathBuf>) -> Option<Template> {
        let template = self.template("arguments", word, span.clone())?;
        if !template.arguments().any(|name| name == DIRECTORY) {
            return Some(template);
        }
        let directory = self.directory.to_string_lossy().into_owned();
        let template = template.with_value(DIRECTORY, &directory);
        match template.as_text().and_then(|text| self.inside(text)) {
            Some(path) => {
                let word = path.to_string_lossy().into_owned();
                programs.push(path);
                Some(Template::from_text(word))
            }
            None => {
                let problem = format!(
                    "`arguments`: found `{word}`, expected the path of a file below {{{DIRECTORY}}} without other \
                     placeholders and `..`"
                );
                self.problem(span, problem);
                None
            }
        }
    }

    /// Parses a word, and checks that its placeholders are arguments.
    fn template(&mut self, key: &str, word: &str, span: Range<usize>) -> Option<Template> {
        if word.contains('\0') {
            self.problem(span, format!("`{key}`: found a zero byte, expected text"));
            return None;
        }
        let template = match Template::parse(word) {
            Ok(template) => template,
            Err(problem) => {
                self.problem(span, format!("`{key}`: {problem}"));
                return None;
            }
        };
        let is_known = |name: &&str| *name == DIRECTORY || self.parameters.iter().any(|known| known == name);
        let unknown = template.arguments().find(|name| !is_known(name)).map(str::to_owned);
        if let Some(unknown) = unknown {
            let known = self.parameters.join(", ");
            let expected =
                if known.is_empty() { "no placeholder".to_owned() } else { format!("one of {known}") };
            let problem = format!(
                "`{key}`: found the placeholder {{{unknown}}}, expected {expected}, the properties of `parameters`"
            );
            self.problem(span, problem);
            return None;
        }
        Some(template)
    }

    fn paths(&mut self, paths: &[Spanned<String>]) -> Vec<Template> {
        let mut templates = Vec::new();
        for path in paths {
            let word = path.get_ref();
            if word.trim().is_empty() || word.contains(&format!("{{{DIRECTORY}}}")) {
                let problem = format!("found `{word}`, expected a path in the workspace, such as {{file}}");
                self.problem(path.span(), problem);
                continue;
            }
            templates.extend(self.template("reads and writes", word, path.span()));
        }
        templates
    }

    fn hosts(&mut self, hosts: &[Spanned<String>], effect: Effect) -> Vec<String> {
        if effect == Effect::Network && hosts.is_empty() {
            self.problem(0..0, "`hosts`: expected at least one host for the effect network".to_owned());
        }
        for host in hosts {
            let text = host.get_ref();
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
            if text.is_empty() || !text.chars().all(is_name) {
                let problem =
                    format!("`hosts`: found `{text}`, expected the name of a host, such as api.example.org");
                self.problem(host.span(), problem);
            } else if effect != Effect::Network {
                self.problem(host.span(), "`hosts`: expected the effect network".to_owned());
            }
        }
        hosts.iter().map(|host| host.get_ref().to_ascii_lowercase()).collect()
    }

    fn timeout(&mut self, text: &Spanned<String>) -> Option<Duration> {
        match timeout::parse(text.get_ref()) {
            Ok(timeout) => Some(timeout),
            Err(expected) => {
                self.problem(text.span(), format!("`timeout`: found `{}`, {expected}", text.get_ref()));
                None
            }
        }
    }

    fn limits(&mut self, limits: Option<&Spanned<OutputLimits>>) -> OutputLimits {
        let Some(limits) = limits else { return OutputLimits::default() };
        let OutputLimits { output_chars, output_lines } = *limits.get_ref();
        let is_limit = |limit: usize| (1..=MAX_OUTPUT).contains(&limit);
        if !output_chars.is_none_or(is_limit) || !output_lines.is_none_or(is_limit) {
            self.problem(limits.span(), format!("`limits`: expected numbers from 1 to {MAX_OUTPUT}"));
        }
        *limits.get_ref()
    }

    fn environment(&mut self, variables: BTreeMap<Spanned<String>, String>) -> BTreeMap<String, String> {
        for (name, value) in &variables {
            let text = name.get_ref();
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            if !begins || !text.chars().all(is_name) || value.contains('\0') {
                let problem =
                    format!("`environment`: found `{text}`, expected the name of a variable and a text");
                self.problem(name.span(), problem);
            }
        }
        variables.into_iter().map(|(name, value)| (name.into_inner(), value)).collect()
    }

    fn line_of(&self, offset: usize) -> usize {
        self.text.get(..offset).unwrap_or(self.text).matches('\n').count() + 1
    }

    fn problem(&mut self, span: Range<usize>, message: String) {
        let line = self.line_of(span.start);
        self.problems.push(Problem { origin: format!("{}: line {line}", self.name), message });
    }
}

#[cfg(test)]
mod tests;
