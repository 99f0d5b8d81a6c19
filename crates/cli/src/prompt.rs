//! `pintle prompt`: the system prompt in its layers, or as it would be sent.

use pintle_agent::{
    Clock as _, EnvironmentContext, LayerKind, LoadedProject, PromptLayer, ProviderProfile, SubagentLimits,
    SystemClock,
};
use pintle_env::ExecutionEnvironment;
use pintle_llm::Catalog;
use serde::Serialize;

use crate::args::{ConfinementArgs, PromptFormat, ShowPromptArgs};
use crate::console::{self, Console};
use crate::environment::Site;
use crate::equipment;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::host::Host;
use crate::interrupt::Interrupts;
use crate::profile_file::ProfileFile;
use crate::provider::Provider;
use crate::render;

/// Shows the prompt. Needs no key.
///
/// # Errors
///
/// A usage failure for a directory that is none or a missing model, else those of reaching the place and of writing.
pub(crate) async fn prompt(args: ShowPromptArgs, host: &Host) -> Result<Exit, Failure> {
    let profile = profile(&args, host)?.as_in_session(SubagentLimits::default());
    let site = Site::of(&args.place, ConfinementArgs::default(), host)?;
    let interrupts = Interrupts::listen()?;
    let workplace = interrupts.unless(site.reach()).await?;
    workplace.guard_by(&interrupts);
    let environment = workplace.environment();
    let prompt = interrupts.unless(async { Ok(Prompt::gather(&profile, environment.as_ref()).await) }).await;
    let left = workplace.leave().await;
    let prompt = prompt?;
    let text = match args.output {
        PromptFormat::Text => render::harmless(&prompt.in_layers()).into_owned(),
        PromptFormat::Json => render::line(&prompt.record())?,
        // Some of it is the project's, which may be anybody's.
        PromptFormat::Plain => format!("{}\n", console::style(host).answer(&prompt.text, None)),
    };
    Console::new().write(&text).await?;
    left.map(|()| Exit::Done)
}

fn profile(args: &ShowPromptArgs, host: &Host) -> Result<ProviderProfile, Failure> {
    if let Some(file) = &args.profile {
        let (file, model, catalog) = (ProfileFile::read(file)?, args.model.as_deref(), Catalog::built_in());
        let all = file.with_all_tools(model, catalog)?;
        let options = equipment::shown(&all, file.toolset(), file.names_tools())?;
        return file.profile(model, catalog, &options);
    }
    let provider = args.provider.or_else(|| Provider::by_key(|name| host.variable(name)));
    let provider = provider.unwrap_or(Provider::OpenAi);
    let model = args.model.as_deref().or_else(|| provider.default_model()).ok_or_else(|| {
        Failure::usage(format!("{} has no default model: name one with --model", provider.name()))
    })?;
    let (profile, toolset) = (provider.profile(model), args.toolset.into());
    let options = equipment::shown(&profile, toolset, false)?;
    Ok(profile.with_toolset_options(toolset, &options))
}

/// A system prompt, whole and in parts.
struct Prompt {
    text: String,
    layers: Vec<PromptLayer>,
    project: LoadedProject,
}

impl Prompt {
    async fn gather(profile: &ProviderProfile, environment: &dyn ExecutionEnvironment) -> Self {
        let context = EnvironmentContext::gather(environment, SystemClock.now().date()).await;
        let root = context.git_root();
        let docs = profile.project_docs(environment, root).await;
        Self {
            text: profile.build_system_prompt(&context, &docs, None),
            layers: profile.prompt_layers(&context, &docs, None),
            project: LoadedProject::from(&docs),
        }
    }

    /// Each layer under a line that names it and its size, then what could not be loaded, then the size of all.
    fn in_layers(&self) -> String {
        let mut shown = String::new();
        for layer in &self.layers {
            let name = name_of(layer.kind);
            shown.push_str(&format!("=== {name}: {} bytes ===\n{}\n\n", layer.text.len(), layer.text));
        }
        for file in &self.project.skipped {
            shown.push_str(&format!("=== skipped: {}: {} ===\n", file.path, file.reason));
        }
        shown.push_str(&format!("=== in all: {} bytes ===\n", self.text.len()));
        shown
    }

    fn record(&self) -> Record<'_> {
        let layers = self.layers.iter().map(|layer| Layer {
            kind: layer.kind,
            bytes: layer.text.len(),
            text: &layer.text,
        });
        Record { bytes: self.text.len(), layers: layers.collect(), project: &self.project }
    }
}

/// What a script reads.
#[derive(Serialize)]
struct Record<'p> {
    /// Of the prompt, with what stands between two layers.
    bytes: usize,
    layers: Vec<Layer<'p>>,
    project: &'p LoadedProject,
}

#[derive(Serialize)]
struct Layer<'p> {
    kind: LayerKind,
    bytes: usize,
    text: &'p str,
}

fn name_of(kind: LayerKind) -> &'static str {
    match kind {
        LayerKind::BaseInstructions => "base instructions",
        LayerKind::Environment => "environment",
        LayerKind::Git => "git",
        LayerKind::Tools => "tools",
        LayerKind::ProjectDocuments => "project documents",
        LayerKind::Skills => "skills",
        LayerKind::UserInstructions => "user instructions",
    }
}
