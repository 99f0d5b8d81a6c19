//! `pintle grants`: signed grants and revoked grants.

mod signed;

use pintle_governance::{GrantId, PublicKey, RevokedGrants};
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
        GrantsCommand::Revoke(RevokeArgs { ids, before, issuer }) => {
            let issuer = issuer.as_deref().map(signed::public_key).transpose()?;
            let text = revoked_lines(&ids, before, issuer);
            file.revoke(ids.into_iter().map(GrantId::new), before, issuer, process_env).await?;
            text
        }
        GrantsCommand::List { output } => list(&file, output)?,
        GrantsCommand::Keygen { file } => signed::generate_key(&file, process_env)?,
        GrantsCommand::Issue(args) => signed::issue(args)?,
        GrantsCommand::Attenuate { file, signed } => signed::attenuate(&file, signed)?,
        GrantsCommand::Show { file } => signed::show(&file)?,
        GrantsCommand::Verify(args) => signed::verify(&args, &file, process_env)?,
    };
    console::print(&text).await?;
    Ok(Exit::Done)
}

/// Returns the message about revoked grants. Only the records of all sessions contain the ids of grants, so an id is not looked up.
fn revoked_lines(ids: &[String], before: Option<u64>, issuer: Option<PublicKey>) -> String {
    let line = |id: &String| {
        format!("revoked grant {}; whether a session has it was not checked\n", to_single_line(id))
    };
    let by_id = ids.iter().map(line);
    let of_issuer = issuer.map(|key| format!(" that {key} signed")).unwrap_or_default();
    let below = before.map(|epoch| format!(" with an epoch below {epoch}")).unwrap_or_default();
    let all = format!("revoked all grants{of_issuer}{below}\n");
    by_id.chain((issuer.is_some() || before.is_some()).then_some(all)).collect()
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
    for (key, before) in &revoked.issuers {
        let below = match *before < RevokedGrants::ALL_EPOCHS {
            true => format!(" with an epoch below {before}"),
            false => String::new(),
        };
        text.push_str(&format!("all that {key} signed{below}\n"));
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
            assert_eq!(revoked_lines(&ids, before, None), expected);
        }
        let text = format!("ed25519:{}", "0".repeat(64));
        let key = Some(signed::public_key(&text).unwrap());
        assert_eq!(revoked_lines(&[], None, key), format!("revoked all grants that {text} signed\n"));
        let below = format!("revoked all grants that {text} signed with an epoch below 3\n");
        assert_eq!(revoked_lines(&[], Some(3), key), below);
    }
}
