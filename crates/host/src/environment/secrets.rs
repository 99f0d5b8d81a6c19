//! Files that commands must not read or change.

use std::path::{Path, PathBuf};

use pintle_store::Hash;

use crate::failure::Failure;
use crate::process_env::{self, ProcessEnv};
use crate::session_store;

/// Files and directories below the home directory that hold keys of the user.
const KEY_PATHS_BELOW_HOME: [&str; 15] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker/config.json",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".git-credentials",
    ".password-store",
    ".local/share/keyrings",
    ".mozilla",
];

/// Directories below the home directory with sockets of services that run programs. They are hidden as a whole: a socket that
/// appears while a command runs would not be hidden from it.
const SOCKET_DIRECTORIES: [&str; 8] = [
    ".colima",
    ".docker/desktop",
    ".docker/run",
    ".emacs.d/server",
    ".lima",
    ".local/share/containers/podman/machine",
    ".orbstack/run",
    ".rd",
];

/// Files and directories with keys below the configuration directory, which is `~/.config` unless a variable names
/// another.
const KEY_PATHS_BELOW_CONFIG: [&str; 6] = ["gcloud", "gh", "hub", "op", "pip/pip.conf", "git/credentials"];

/// Variables that move such files, with the names below their value; `""` is the value itself. Values may be lists.
const RELOCATED_KEY_PATHS: [(&str, &[&str]); 15] = [
    ("XDG_CONFIG_HOME", &KEY_PATHS_BELOW_CONFIG),
    ("XDG_DATA_HOME", &["keyrings", "containers/podman/machine"]),
    ("CARGO_HOME", &["credentials", "credentials.toml"]),
    ("GNUPGHOME", &[""]),
    ("KUBECONFIG", &[""]),
    ("DOCKER_CONFIG", &["config.json"]),
    ("AWS_SHARED_CREDENTIALS_FILE", &[""]),
    ("AWS_CONFIG_FILE", &[""]),
    ("AZURE_CONFIG_DIR", &[""]),
    ("CLOUDSDK_CONFIG", &[""]),
    ("GOOGLE_APPLICATION_CREDENTIALS", &[""]),
    ("GH_CONFIG_DIR", &[""]),
    ("NPM_CONFIG_USERCONFIG", &[""]),
    ("NETRC", &[""]),
    ("PASSWORD_STORE_DIR", &[""]),
];

/// Directory below the state directory with the tokens of servers that the user has logged in to.
#[cfg(feature = "mcp")]
pub(crate) const SERVER_TOKENS: &str = "server-tokens";

/// Sessions and their worktrees, below the state directory.
const SESSIONS: &str = "sessions";
const WORKTREES: &str = "worktrees";

/// Files hidden from commands and file tools of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct HiddenPaths {
    pub(crate) paths: Vec<PathBuf>,
    /// The workspace of the session, as given and with links resolved, if it is in one of those directories.
    pub(crate) visible: Vec<PathBuf>,
}

/// Returns the secret files and directories of the user, the directories of the command, which contain other sessions, and the
/// directories of other users of the same server. A workspace in the state directory, such as a worktree, is visible to its own
/// session.
///
/// An unknown home directory is a usage failure, since its files could not be hidden, as is another workspace that
/// would be hidden itself.
pub(super) fn hidden_in_sandbox(workspace: &Path, process_env: &ProcessEnv) -> Result<HiddenPaths, Failure> {
    hidden_among(hidden_paths(process_env)?, workspace, process_env)
}

fn hidden_among(
    paths: Vec<PathBuf>,
    workspace: &Path,
    process_env: &ProcessEnv,
) -> Result<HiddenPaths, Failure> {
    let (given, workspace) = (workspace.to_path_buf(), process_env.real_path(workspace));
    let around = paths.iter().find(|path| workspace.starts_with(process_env.real_path(path)));
    let Some(around) = around else { return Ok(HiddenPaths { paths, visible: Vec::new() }) };
    let state = process_env.state_directory().ok().map(|state| process_env.real_path(&state));
    let places = state.iter().flat_map(|state| [state.join(WORKTREES), state.join(SESSIONS).join(WORKTREES)]);
    if places.into_iter().any(|place| workspace.starts_with(&place) && workspace != place) {
        return Ok(HiddenPaths { paths, visible: vec![given, workspace] });
    }
    let hint = match process_env.server_files() {
        Some(_) => "use another directory",
        None => "use another directory, or --no-sandbox, which hides nothing",
    };
    Err(Failure::usage(format!(
        "cannot start a session in {}: it is inside the hidden path {}",
        workspace.display(),
        around.display()
    ))
    .with_hint(hint))
}

/// Returns the files and directories of a server that are hidden from its sessions even without a sandbox: the files
/// that its flags name, its configuration and its state. None in a process that serves no sessions.
///
/// A workspace that would be hidden itself is a usage failure.
pub(super) fn hidden_without_sandbox(
    workspace: &Path,
    process_env: &ProcessEnv,
) -> Result<HiddenPaths, Failure> {
    match process_env.server_files() {
        Some(_) => hidden_among(server_paths(process_env).collect(), workspace, process_env),
        None => Ok(HiddenPaths::default()),
    }
}

/// Returns the configuration, the state, and the files that the flags of a server name.
pub fn server_paths(process_env: &ProcessEnv) -> impl Iterator<Item = PathBuf> {
    let own = process_env.configuration_directory().into_iter();
    // As a whole: a mount on a file would be lost when another process replaces the file.
    let of_state = process_env.state_directory().ok();
    let of_store = session_store::password_file(process_env);
    let named = process_env.server_files().unwrap_or_default().to_vec();
    own.chain(of_state).chain(of_store).chain(named)
}

/// Returns the files and directories with keys of the user, and the own files of the command.
pub(super) fn hidden_paths(process_env: &ProcessEnv) -> Result<Vec<PathBuf>, Failure> {
    let home = process_env.home().ok_or_else(|| {
        Failure::usage("the home directory is not known, so the files with keys below it cannot be hidden")
            .with_hint("set HOME to an absolute path, or use --no-sandbox, which hides nothing")
    })?;
    // A program can read the home directory from the user database, whatever `HOME` is.
    let other = process_env.database_home().filter(|other| *other != home);
    let of_other = other.into_iter().flat_map(|other| {
        let own = other.join(".config/pintle");
        key_paths_below(other).chain([own])
    });
    let moved = RELOCATED_KEY_PATHS.iter().flat_map(|(variable, names)| {
        let value = process_env.variable(variable).unwrap_or_default();
        let roots: Vec<PathBuf> = std::env::split_paths(&value).filter(|path| path.is_absolute()).collect();
        let join = |root: &PathBuf, name: &str| if name.is_empty() { root.clone() } else { root.join(name) };
        roots.into_iter().flat_map(move |root| names.iter().map(move |name| join(&root, name)))
    });
    // A device such as `/dev/null` means no file, and a directory above home contains unrelated files.
    let is_file_of_user = |path: &PathBuf| !path.starts_with("/dev") && !home.starts_with(path);
    let of_user = key_paths_below(&home).chain(of_other).chain(moved.filter(is_file_of_user));
    let foreign = process_env.foreign_roots().iter().cloned();
    Ok(of_user.chain(server_paths(process_env)).chain(foreign).collect())
}

/// Returns the files and directories below a home directory that hold keys, or have sockets of services that run programs.
fn key_paths_below(home: &Path) -> impl Iterator<Item = PathBuf> {
    let config = home.join(".config");
    let below_config = KEY_PATHS_BELOW_CONFIG.iter().map(move |name| config.join(name));
    KEY_PATHS_BELOW_HOME
        .iter()
        .chain(&SOCKET_DIRECTORIES)
        .map(move |name| home.join(name))
        .chain(below_config)
}

/// Returns the directories outside of a workspace that git changes in it, if it is a worktree of a repository
/// elsewhere: its objects and branches, and the files of the worktree itself. Settings and hooks of the repository are
/// not among them.
pub(super) fn external_git_directories(workspace: &Path, process_env: &ProcessEnv) -> Vec<PathBuf> {
    let read = |path: &Path| process_env::read_text_if_exists("link to a repository", path).ok().flatten();
    let link = workspace.join(".git");
    let Some(text) = read(&link) else { return Vec::new() };
    let Some(own) = text.trim().strip_prefix("gitdir:").map(|path| workspace.join(path.trim())) else {
        return Vec::new();
    };
    let Some(common) = read(&own.join("commondir")).map(|path| own.join(path.trim())) else {
        return Vec::new();
    };
    // The repository knows its worktrees. A link that another user wrote makes no directory writable.
    let back = read(&own.join("gitdir")).map(|path| own.join(path.trim()));
    let is_known = back.is_some_and(|back| process_env.is_same_path(&back, &link))
        && own.parent().is_some_and(|parent| process_env.is_same_path(parent, &common.join("worktrees")));
    if !is_known {
        return Vec::new();
    }
    let shared = ["objects", "refs", "logs"].map(|name| common.join(name));
    let all = std::iter::once(own).chain(shared);
    all.filter(|path| process_env.is_directory(path)).collect()
}

/// Returns the path of a workspace's entry in a directory below the state directory.
pub(super) fn workspace_state_path(
    directory: &str,
    workspace: &Path,
    process_env: &ProcessEnv,
) -> Option<PathBuf> {
    let hash = Hash::of(workspace.as_os_str().as_encoded_bytes()).to_string();
    let state = process_env.state_directory().ok().filter(|state| state.is_absolute())?;
    Some(state.join(directory).join(hash.get(..16)?))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn hidden_with(variables: &[(&str, &str)]) -> Vec<PathBuf> {
        let variables = variables.iter().map(|(name, value)| (*name, OsStr::new(*value)));
        hidden_paths(&ProcessEnv::from_variables(variables)).unwrap()
    }

    #[test]
    fn without_a_home_nothing_is_said_to_be_hidden() {
        for home in [None, Some(""), Some("relative")] {
            let variables = home.map(|home| ("HOME", OsStr::new(home)));
            let failure = hidden_paths(&ProcessEnv::from_variables(variables)).unwrap_err();
            assert!(failure.message().contains("home directory"), "{home:?}: {}", failure.message());
        }
    }

    #[test]
    fn keys_are_hidden_where_variables_put_them() {
        for (variable, value, expected) in [
            ("XDG_CONFIG_HOME", "/x", &["/x/gh", "/x/gcloud", "/x/pintle"][..]),
            ("XDG_DATA_HOME", "/d", &["/d/keyrings", "/d/containers/podman/machine"]),
            ("CARGO_HOME", "/c", &["/c/credentials", "/c/credentials.toml"]),
            ("GNUPGHOME", "/g", &["/g"]),
            ("KUBECONFIG", "/k/a:/k/b", &["/k/a", "/k/b"]),
            ("DOCKER_CONFIG", "/d", &["/d/config.json"]),
            ("AWS_SHARED_CREDENTIALS_FILE", "/a/keys", &["/a/keys"]),
            ("AWS_CONFIG_FILE", "/a/config", &["/a/config"]),
            ("PINTLE_CONFIG_DIR", "/p", &["/p"]),
            ("PINTLE_STATE_DIR", "/s", &["/s"]),
        ] {
            let paths = hidden_with(&[("HOME", "/u/jan"), (variable, value)]);
            let always = ["/u/jan/.ssh", "/u/jan/.config/gh", "/u/jan/.docker/run", "/u/jan/.docker/desktop"];
            let machine = "/u/jan/.local/share/containers/podman/machine";
            for path in expected.iter().chain(&always).chain([&machine]) {
                assert!(paths.contains(&PathBuf::from(path)), "{variable}: {path} in {paths:?}");
            }
        }
    }

    #[test]
    fn keys_below_the_home_of_the_user_database_are_hidden_too() {
        let process_env = ProcessEnv::from_variables([("HOME", OsStr::new("/u/jan"))]);
        let usual = hidden_paths(&process_env).unwrap();
        let same = process_env.clone().with_database_home(Path::new("/u/jan"));
        assert_eq!(hidden_paths(&same).unwrap(), usual);
        let paths = hidden_paths(&process_env.with_database_home(Path::new("/users/jan"))).unwrap();
        for below in [".ssh", ".config/gh", ".config/pintle"] {
            for home in ["/u/jan", "/users/jan"] {
                assert!(paths.contains(&Path::new(home).join(below)), "{home} {below}: {paths:?}");
            }
        }
    }

    #[test]
    fn files_of_a_server_are_hidden_with_and_without_a_sandbox() {
        let process_env = ProcessEnv::from_variables([("HOME", OsStr::new("/u/jan"))]);
        let found = hidden_without_sandbox(Path::new("/srv"), &process_env).unwrap();
        assert_eq!(found.paths, Vec::<PathBuf>::new(), "no server");
        let process_env = process_env.with_server_files([PathBuf::from("/srv/tokens.json")]);
        for found in [hidden_in_sandbox, hidden_without_sandbox] {
            let paths = found(Path::new("/srv"), &process_env).unwrap().paths;
            for path in ["/srv/tokens.json", "/u/jan/.config/pintle", "/u/jan/.local/state/pintle"] {
                assert!(paths.contains(&PathBuf::from(path)), "{path}: {paths:?}");
            }
            assert!(found(Path::new("/u/jan/.config/pintle/below"), &process_env).is_err());
        }
        let paths = hidden_without_sandbox(Path::new("/srv"), &process_env).unwrap().paths;
        assert!(!paths.contains(&PathBuf::from("/u/jan/.ssh")), "{paths:?}");
    }

    #[test]
    fn a_workspace_is_visible_only_where_sessions_have_theirs() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().canonicalize().unwrap();
        let process_env = ProcessEnv::from_variables([("HOME", home.as_os_str())]);
        let state = ".local/state/pintle";
        for (workspace, expected) in [
            ("project".to_owned(), Some(false)),
            (String::new(), Some(false)),
            (format!("{state}/worktrees/a"), Some(true)),
            (format!("{state}/sessions/worktrees/task-1"), Some(true)),
            (format!("{state}/worktrees"), None),
            (format!("{state}/server-tokens"), None),
            (".ssh".to_owned(), None),
            (".config/pintle/below".to_owned(), None),
            ("link".to_owned(), None),
        ] {
            process_env.create_directory(&home.join(".ssh")).unwrap();
            let _ = std::os::unix::fs::symlink(home.join(".ssh"), home.join("link"));
            process_env.create_directory(&home.join(&workspace)).unwrap();
            let found = hidden_in_sandbox(&home.join(&workspace), &process_env);
            assert_eq!(found.ok().map(|found| !found.visible.is_empty()), expected, "{workspace}");
        }
    }

    #[test]
    fn values_that_name_no_file_of_keys_hide_nothing() {
        let usual = hidden_with(&[("HOME", "/u/jan")]);
        for (variable, value) in [
            ("KUBECONFIG", "/dev/null"),
            ("NPM_CONFIG_USERCONFIG", "/dev/null"),
            ("GNUPGHOME", "/u"),
            ("GNUPGHOME", "/u/jan"),
            ("AWS_CONFIG_FILE", "relative"),
            ("CARGO_HOME", ""),
        ] {
            assert_eq!(hidden_with(&[("HOME", "/u/jan"), (variable, value)]), usual, "{variable}={value}");
        }
    }

    #[test]
    fn only_known_worktrees_make_directories_writable() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let process_env = ProcessEnv::from_variables([]);
        for name in ["main/.git/objects", "main/.git/worktrees/w", "w"] {
            process_env.create_directory(&at(name)).unwrap();
        }
        let write = |name: &str, text: String| process_env.write_private(&at(name), &text).unwrap();
        let own = at("main/.git/worktrees/w");
        write("w/.git", format!("gitdir: {}\n", own.display()));
        write("main/.git/worktrees/w/commondir", "../..\n".to_owned());
        for (back, is_known) in [("w/.git", true), ("elsewhere/.git", false)] {
            write("main/.git/worktrees/w/gitdir", format!("{}\n", at(back).display()));
            let writable = external_git_directories(&at("w"), &process_env);
            assert_eq!(writable.contains(&own), is_known, "{back}: {writable:?}");
        }
        write("main/.git/worktrees/w/gitdir", format!("{}\n", at("w/.git").display()));
        write("main/.git/worktrees/w/commondir", "../../..\n".to_owned());
        assert_eq!(
            external_git_directories(&at("w"), &process_env),
            Vec::<PathBuf>::new(),
            "another repository"
        );
    }
}
