//! `pintle grants`: revoked grants.

use pintle_governance::GrantId;
use pintle_host::failure::Failure;
use pintle_host::policy::grant::RevocationFile;
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::{json_line, to_single_line};
use pintle_tui::console;

use crate::arguments::{GrantsArgs, GrantsCommand, ListFormat, RevokeArgs};
use crate::exit::Exit;

/// Runs `pintle grants`.
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

/// Returns the message about revoked grants. Only the records of all sessions contain the ids of grants, so an id is not looked up.
fn revoked_lines(ids: &[String], before: Option<u64>) -> String {
    let line = |id: &String| {
        format!("revoked grant {}; whether a session has it was not checked\n", to_single_line(id))
    };
    let by_id = ids.iter().map(line);
    by_id.chain(before.map(|epoch| format!("revoked all grants with an epoch below {epoch}\n"))).collect()
}

fn list(file: &RevocationFile, output: ListFormat) -> Result<String, Failure> {
    let revoked = file.read()?;
    if output == ListFormat::Json {
        return json_line(&serde_json::json!(revoked));
    }
    let mut text: String =
        revoked.ids.iter().map(|id| format!("{}\n", to_single_line(&id.to_string()))).collect();
    if revoked.before_epoch > 0 {
        text.push_str(&format!("all with an epoch below {}\n", revoked.before_epoch));
    }
    Ok(if text.is_empty() { "no grant is revoked\n".to_owned() } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revocation_does_not_claim_that_a_session_has_the_grant() {
        for (ids, before, expected) in [
            (vec!["a".to_owned()], None, "revoked grant a; whether a session has it was not checked\n"),
            (vec![], Some(3), "revoked all grants with an epoch below 3\n"),
        ] {
            assert_eq!(revoked_lines(&ids, before), expected);
        }
    }
}
