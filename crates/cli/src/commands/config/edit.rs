//! `pintle config edit`.

use pintle_host::config_file::{File, problem, user_path};
use pintle_host::configuration::{needs_trust, project_root};
use pintle_host::failure::Failure;
use pintle_host::policy::configuration_path;
use pintle_host::process_env::{self, ProcessEnv};
use pintle_tui::{console, user_editor};

use crate::arguments::EditConfigArgs;
use crate::exit::Exit;

/// Content of a new file.
pub(super) const TEMPLATE: &str = "\
# Configuration of pintle. `pintle config` lists all keys with their values, and
# `pintle config schema` prints a JSON Schema for editors.

#model = \"claude-opus-4-5\"
#reasoning_effort = \"high\"
#mode = \"ask\"

# `--profile NAME` selects a profile, whose keys replace those above.
#[profiles.review]
#mode = \"plan\"
";

/// Edits a file, and checks it.
pub(super) async fn edit(args: &EditConfigArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let editor = user_editor::require(process_env)?;
    let path = if args.project {
        configuration_path(&project_root(process_env).await?)
    } else {
        user_path(process_env).ok_or_else(|| {
            Failure::usage(
                "no directory for the configuration: expected PINTLE_CONFIG_DIR, XDG_CONFIG_HOME or HOME",
            )
        })?
    };
    if process_env::read_text_if_exists("configuration file", &path)?.is_none() {
        process_env.write_private(&path, TEMPLATE)?;
    }
    user_editor::open(&editor, &path, process_env)?;
    let text = process_env::read_text("configuration file", &path)?;
    let name = path.display().to_string();
    let file = File::parse(&name, path.parent().unwrap_or(&path), &text);
    if let Some(failure) = problem::failure(&file.problems) {
        return Err(failure.with_hint("the file is saved; `pintle config edit` opens it again"));
    }
    let trust = if args.project && needs_trust(&file) {
        "; it has keys that count once `pintle trust` trusts the project"
    } else {
        ""
    };
    console::print(&format!("{name} has no mistakes{trust}\n")).await?;
    Ok(Exit::Done)
}
