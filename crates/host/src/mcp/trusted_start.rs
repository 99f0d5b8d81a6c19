//! Checks servers of trusted projects before they start: their files may have changed since.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_env::ExecutionEnvironment;
use pintle_governance::TrustedPrograms;
use pintle_mcp::{ServerSpec, ServerTransport, StartCheck};
use pintle_tools::gate::CommandLine;

use crate::attendant::Attendant;

/// Below a question about a server.
const PROMPT: &str = "Start it? [y]es, [n]o: ";

/// Compares the files of servers before each start, and asks before it starts servers that run files which cannot be
/// compared.
pub(super) struct TrustedStart {
    /// Programs of the project that declares a server, by the server's name.
    programs: BTreeMap<String, TrustedPrograms>,
    attendant: Arc<dyn Attendant>,
}

impl TrustedStart {
    pub(super) fn new(programs: BTreeMap<String, TrustedPrograms>, attendant: Arc<dyn Attendant>) -> Self {
        Self { programs, attendant }
    }
}

#[async_trait]
impl StartCheck for TrustedStart {
    async fn check(&self, server: &ServerSpec, env: &dyn ExecutionEnvironment) -> Result<(), String> {
        let (Some(programs), ServerTransport::Stdio(process)) =
            (self.programs.get(server.name.as_str()), &server.transport)
        else {
            return Ok(());
        };
        let words = std::iter::once(&process.program).chain(&process.arguments);
        let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        let directory = process.working_dir.as_deref();
        let is_covered = programs.covers_invocation(&words, directory);
        if is_covered && let Some(changed) = programs.changed_of_invocation(&words, directory, env).await {
            let changed = changed.display();
            return Err(format!(
                "{changed} has changed since the project was trusted; `pintle trust` trusts it as it is now"
            ));
        }
        let reason = match CommandLine::of_words(words).launcher() {
            Some(launcher) => {
                format!("is started by `{launcher}`, which runs files that trust does not cover")
            }
            None if !is_covered => "names a file by a variable, which trust does not cover".to_owned(),
            None => return Ok(()),
        };
        let text = format!("The server `{}` of this project {reason}", server.name);
        match self.attendant.ask_for_text(&text, &[], PROMPT).await.as_deref().map(str::trim) {
            Some("y" | "yes") => Ok(()),
            Some(_) => Err("the user declined".to_owned()),
            None => Err(format!(
                "the server {reason}, and this session is not interactive; name the script itself in .mcp.json, or declare the server in your own mcp.json"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use pintle_env::MemoryEnvironment;
    use pintle_governance::HookCommands;
    use pintle_mcp::StdioServer;

    use super::*;
    use crate::attendant::FakeAttendant;

    #[tokio::test]
    async fn attendant_decides_on_a_server_with_files_that_trust_does_not_cover() {
        let env = MemoryEnvironment::new("/w");
        let declined = Err("the user declined".to_owned());
        let absent = Err(
            "the server is started by `make`, which runs files that trust does not cover, and this session is not \
             interactive; name the script itself in .mcp.json, or declare the server in your own mcp.json"
                .to_owned(),
        );
        for (answers, expected) in [(&["y"][..], Ok(())), (&["no"], declined), (&[], absent)] {
            let programs = TrustedPrograms::read(&HookCommands::default(), "/w", &env).await;
            let attendant = Arc::new(FakeAttendant::attended(answers.iter().copied()));
            let programs = BTreeMap::from([("files".to_owned(), programs)]);
            let start = TrustedStart::new(programs, Arc::clone(&attendant) as Arc<dyn Attendant>);
            let server = |name: &str| {
                let process = StdioServer::new("make", ["serve"]);
                ServerSpec::new(name.parse().unwrap(), ServerTransport::Stdio(process))
            };
            assert_eq!(start.check(&server("own"), &env).await, Ok(()), "a server of the user");
            assert_eq!(attendant.questions(), [""; 0]);
            assert_eq!(start.check(&server("files"), &env).await, expected, "{answers:?}");
            assert_eq!(
                attendant.questions(),
                [
                    "The server `files` of this project is started by `make`, which runs files that trust does not cover\nStart it? [y]es, [n]o: "
                ]
            );
        }
    }
}
