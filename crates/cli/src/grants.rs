//! `pintle grants`: revoked grants.

use pintle_governance::GrantId;

use crate::args::{GrantsArgs, GrantsCommand, ListFormat, RevokeArgs};
use crate::console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::policy::grant::RevocationFile;
use crate::process_env::ProcessEnv;
use crate::render::{self, in_one_line};

/// Runs `pintle grants`.
///
/// # Errors
///
/// A failure if the list of revoked grants cannot be read or written.
pub(crate) async fn grants(args: GrantsArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let file = RevocationFile::open(process_env)?;
    let text = match args.command {
        GrantsCommand::Revoke(RevokeArgs { ids, before }) => {
            let text = revoked_lines(&ids, before);
            file.revoke(ids.into_iter().map(GrantId::new), before, process_env).await?;
            text
        }
        GrantsCommand::List { output } => list(&file, output)?,
    };
    console::print(&text).await?;
    Ok(Exit::Done)
}

fn revoked_lines(ids: &[String], before: Option<u64>) -> String {
    let by_id = ids.iter().map(|id| format!("revoked grant {}\n", in_one_line(id)));
    by_id.chain(before.map(|epoch| format!("revoked all grants with an epoch below {epoch}\n"))).collect()
}

fn list(file: &RevocationFile, output: ListFormat) -> Result<String, Failure> {
    let revoked = file.read()?;
    if output == ListFormat::Json {
        return render::json_line(&serde_json::json!(revoked));
    }
    let mut text: String =
        revoked.ids.iter().map(|id| format!("{}\n", in_one_line(&id.to_string()))).collect();
    if revoked.before_epoch > 0 {
        text.push_str(&format!("all with an epoch below {}\n", revoked.before_epoch));
    }
    Ok(if text.is_empty() { "no grant is revoked\n".to_owned() } else { text })
}
