//! `pintle prompt`: prints the system prompt.

use pintle_agent::{
    Clock as _, EnvironmentContext, LayerKind, LoadedProject, PromptLayer, ProviderProfile, SubagentLimits,
    SystemClock,
};
use pintle_env::ExecutionEnvironment;
use pintle_host::environment::{Confinement, EnvTarget};
use pintle_host::failure::Failure;
use pintle_host::process_env::ProcessEnv;
use pintle_host::profile_file::ProfileFile;
use pintle_host::sanitize::{json_line, sanitize};
use pintle_host::{instructions, route, toolset};
use pintle_llm::Catalog;
use pintle_tui::console::{self, Console};
use pintle_tui::interrupt::Interrupts;
use serde::Serialize;

use crate::arguments::{PromptFormat, ShowPromptArgs};
use crate::exit::Exit;

/// Prints the prompt. Needs no key.
pub(crate) async fn prompt(args: ShowPromptArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let profile = profile(&args, process_env)?.as_in_session(SubagentLimits::default());
    let profile = instructions::add_user_skills(profile, &args.environment.env, process_env);
    let of_user = instructions::load_user_instructions(&profile.provider, None, process_env);
    let target = EnvTarget::new((&args.environment).into(), Confinement::none(), process_env)?;
    let interrupts = Interrupts::listen()?;
    let env_session = interrupts.race(target.connect()).await?;
    interrupts.kill_commands_of(&env_session);
    let environment = env_session.environment();
    let prompt = interrupts
        .race(async { Ok(LayeredPrompt::gather(&profile, environment.as_ref(), of_user.as_deref()).await) })
        .await;
    let closed = env_session.close().await;
    let prompt = prompt?;
    let text = match args.output {
        PromptFormat::Text => sanitize(&prompt.with_headings()).into_owned(),
        PromptFormat::Json => json_line(&prompt.record())?,
        // Project files may contain control characters.
        PromptFormat::Plain => format!("{}\n", console::style(process_env).body(&prompt.text, None)),
    };
    Console::new().write(&text).await?;
    closed.map(|()| Exit::Done)
}

fn profile(args: &ShowPromptArgs, process_env: &ProcessEnv) -> Result<ProviderProfile, Failure> {
    if let Some(file) = &args.profile {
        let (file, model, catalog) = (ProfileFile::read(file)?, args.model.as_deref(), Catalog::built_in());
        let all = file.with_all_tools(model, catalog)?;
        let options = toolset::display_options(&all, file.toolset(), file.names_tools())?;
        return file.profile(model, catalog, &options);
    }
    let provider = route::displayed_provider(args.provider, args.model.as_deref(), process_env)?;
    let model = route::model_or_default(provider, args.model.as_deref())?;
    let (profile, toolset) = (provider.profile(&model), args.toolset.into());
    let options = toolset::display_options(&profile, toolset, false)?;
    Ok(profile.with_toolset_options(toolset, &options))
}

/// System prompt with its layers.
struct LayeredPrompt {
    text: String,
    layers: Vec<PromptLayer>,
    project: LoadedProject,
}

impl LayeredPrompt {
    async fn gather(
        profile: &ProviderProfile,
        environment: &dyn ExecutionEnvironment,
        of_user: Option<&str>,
    ) -> Self {
        let context = EnvironmentContext::gather(environment, SystemClock.now().date()).await;
        let root = context.git_root();
        let docs = profile.project_docs(environment, root).await;
        Self {
            text: profile.build_system_prompt(&context, &docs, of_user),
            layers: profile.prompt_layers(&context, &docs, of_user),
            project: LoadedProject::from(&docs),
        }
    }

    /// Formats each layer under a heading, followed by the skipped files and the total size.
    fn with_headings(&self) -> String {
        let mut text = String::new();
        for layer in &self.layers {
            let title = layer_title(layer.kind);
            text.push_str(&format!("=== {title}: {} bytes ===\n{}\n\n", layer.text.len(), layer.text));
        }
        for file in &self.project.skipped {
            text.push_str(&format!("=== skipped: {}: {} ===\n", file.path, file.reason));
        }
        text.push_str(&format!("=== total: {} bytes ===\n", self.text.len()));
        text
    }

    fn record(&self) -> PromptRecord<'_> {
        let layers = self.layers.iter().map(|layer| LayerRecord {
            kind: layer.kind,
            bytes: layer.text.len(),
            text: &layer.text,
        });
        PromptRecord { bytes: self.text.len(), layers: layers.collect(), project: &self.project }
    }
}

/// JSON output.
#[derive(Serialize)]
struct PromptRecord<'p> {
    /// Size of the prompt, including separators between layers.
    bytes: usize,
    layers: Vec<LayerRecord<'p>>,
    project: &'p LoadedProject,
}

#[derive(Serialize)]
struct LayerRecord<'p> {
    kind: LayerKind,
    bytes: usize,
    text: &'p str,
}

fn layer_title(kind: LayerKind) -> &'static str {
    match kind {
        LayerKind::BaseInstructions => "base instructions",
        LayerKind::Environment => "environment",
        LayerKind::Git => "git",
        LayerKind::Tools => "tools",
        LayerKind::ProjectDocuments => "project documents",
        LayerKind::Skills => "skills",
        LayerKind::UserInstructions => "user instructions",
        _ => "other",
    }
}
