//! Shared by both examples: a scripted model, and sessions that the next process can resume.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use pintle_agent::{JsonLines, ProviderProfile, Record, SessionBuilder, SessionId, Toolset};
use pintle_llm::Client;
use pintle_providers::Anthropic;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

/// Model of the sessions unless another one is asked for.
pub(crate) const MODEL: &str = "claude-opus-4-6";

/// A scripted model, and the directory of the journals.
pub(crate) struct Host {
    pub(crate) server: ScriptedServer,
    state: PathBuf,
}

impl Host {
    /// Starts the model with the script in the file that `COMPAT_SCRIPT` names. Journals are in `COMPAT_STATE`.
    pub(crate) async fn start() -> Result<Self, Box<dyn Error>> {
        let script = Script::parse(&std::fs::read_to_string(std::env::var("COMPAT_SCRIPT")?)?)?;
        let server = ScriptedServer::start(script, ServerOptions::new()).await?;
        Ok(Self { server, state: std::env::var("COMPAT_STATE")?.into() })
    }

    pub(crate) fn client(&self) -> Result<Client, Box<dyn Error>> {
        let provider = Anthropic::builder("any-key")
            .with_base_url(self.server.base_url(Dialect::AnthropicMessages))
            .build()?;
        Ok(Client::builder().provider(provider).build()?)
    }

    /// Returns the profile with Claude's tools.
    pub(crate) fn profile(model: Option<&str>) -> ProviderProfile {
        ProviderProfile::anthropic(model.unwrap_or(MODEL)).with_toolset(Toolset::Native)
    }

    /// Gives a session its journal: that of the session that goes on, or a new one.
    pub(crate) fn keep(
        &self,
        builder: SessionBuilder,
        resume: Option<&str>,
        id: &SessionId,
    ) -> Result<SessionBuilder, Box<dyn Error>> {
        let Some(resume) = resume else {
            return Ok(builder
                .with_id(id.clone())
                .journal(JsonLines::new(File::create(self.journal(id.as_str()))?)));
        };
        let journal = self.journal(resume);
        let read = File::open(&journal).map_err(|error| format!("there is no session {resume}: {error}"))?;
        let record = Record::read(BufReader::new(read))?;
        record.write(File::create(&journal)?)?;
        let journal = OpenOptions::new().append(true).open(&journal)?;
        Ok(builder.resume(record).journal(JsonLines::new(journal)))
    }

    /// Returns the session that was written last.
    pub(crate) fn newest(&self) -> Result<String, Box<dyn Error>> {
        let journals = std::fs::read_dir(&self.state)?.filter_map(Result::ok);
        let newest = journals.max_by_key(|entry| entry.metadata().and_then(|meta| meta.modified()).ok());
        let path = newest.ok_or("there is no session")?.path();
        Ok(path.file_stem().unwrap_or_default().to_string_lossy().into_owned())
    }

    fn journal(&self, id: &str) -> PathBuf {
        self.state.join(Path::new(id).file_name().unwrap_or_default()).with_extension("jsonl")
    }
}
