//! Knowledge about programs: options before their subcommand, options that do more than the rest of the program, wrappers
//! of other programs, and programs that run files which their arguments do not name.
//!
//! All rules share one table.

use std::borrow::Cow;

use super::line::base_name;

/// Word in place of one that the shell computes, which may be any.
pub(super) const UNKNOWN: &str = "\0";

/// Entry of the table.
#[derive(Clone, Copy, Debug)]
struct Program {
    name: &'static str,
    /// Options before the subcommand whose value is the next word. Others have none, or have it behind `=`.
    values: &'static [&'static str],
    /// Options that write a file, run a program or connect, which the rest of the program does not. After the name of a
    /// subcommand and a space, an option counts only with that subcommand.
    side_effect_options: &'static [&'static str],
    /// Whether options of one dash are whole words, so that no word has several.
    has_long_options_only: bool,
    /// Subcommands that run files of the working directory which the arguments do not name; all if it is `*`.
    launches: &'static [&'static str],
    /// Whether it has subcommands.
    has_subcommands: bool,
    /// Whether it runs the program that its arguments name.
    is_wrapper: bool,
}

const fn program(name: &'static str) -> Program {
    Program {
        name,
        values: &[],
        side_effect_options: &[],
        has_long_options_only: false,
        launches: &[],
        has_subcommands: false,
        is_wrapper: false,
    }
}

impl Program {
    const fn subcommands(self, values: &'static [&'static str]) -> Self {
        Self { values, has_subcommands: true, ..self }
    }

    const fn side_effect_options(self, side_effect_options: &'static [&'static str]) -> Self {
        Self { side_effect_options, ..self }
    }

    const fn long_options_only(self) -> Self {
        Self { has_long_options_only: true, ..self }
    }

    const fn launches(self, launches: &'static [&'static str]) -> Self {
        Self { launches, ..self }
    }

    const fn wrapper(self) -> Self {
        Self { is_wrapper: true, ..self }
    }
}

/// The programs, grouped by purpose.
const PROGRAMS: &[Program] = &[
    // Version control.
    program("git")
        .subcommands(&[
            "-C",
            "-c",
            "--attr-source",
            "--config-env",
            "--exec-path",
            "--git-dir",
            "--list-cmds",
            "--namespace",
            "--super-prefix",
            "--work-tree",
        ])
        .side_effect_options(&[
            "-O",
            "--extcmd",
            "--remote",
            "--template",
            "-c",
            "--config-env",
            "--exec",
            "--exec-path",
            "--ext-diff",
            "--open-files-in-pager",
            "--output",
            "--output-directory",
            "--receive-pack",
            "--textconv",
            "--upload-pack",
            "archive -o",
            "clone -u",
            "difftool -x",
            "format-patch -o",
            "rebase -x",
        ]),
    program("gh").subcommands(&["-R", "--repo", "--hostname"]),
    program("hg")
        .subcommands(&["-R", "--repository", "--cwd", "--config"])
        .side_effect_options(&["--config", "--ssh"]),
    program("svn")
        .subcommands(&["--config-dir", "--config-option"])
        .side_effect_options(&["--config-option", "--diff-cmd"]),
    // Builds and packages.
    program("cargo")
        .subcommands(&["-C", "-Z", "--color", "--config", "--manifest-path", "--target-dir"])
        .side_effect_options(&["--config"])
        .launches(&["run", "r", "test", "t", "bench", "xtask"]),
    program("npm")
        .subcommands(&[
            "-C",
            "-w",
            "--prefix",
            "--workspace",
            "--userconfig",
            "--cache",
            "--registry",
            "--loglevel",
        ])
        .side_effect_options(&["--script-shell", "--prefix", "--userconfig"])
        .launches(&["run", "run-script", "rum", "urn", "start", "restart", "test", "t", "exec", "x"]),
    program("pnpm")
        .subcommands(&["-C", "--dir", "-F", "--filter", "--loglevel", "--reporter"])
        .launches(&["run", "start", "test", "exec"]),
    program("yarn").subcommands(&["--cwd"]).launches(&["*"]),
    program("bun").subcommands(&["--cwd", "--filter"]).launches(&["run", "start", "test", "x"]),
    program("npx").launches(&["*"]),
    program("uvx").launches(&["*"]),
    program("pipx").launches(&["*"]),
    program("bunx").launches(&["*"]),
    program("node")
        .side_effect_options(&["-p", "--print", "-r", "--require", "--import", "--loader", "-e", "--eval"])
        .launches(&["."]),
    program("deno").subcommands(&["-c", "--config", "-L", "--log-level"]).launches(&["task"]),
    program("go")
        .subcommands(&["-C"])
        .side_effect_options(&["-exec", "-toolexec", "-o", "-vettool"])
        .long_options_only()
        .launches(&["run", "tool", "generate"]),
    program("make").side_effect_options(&["-f", "--file", "--eval", "-C", "--directory"]).launches(&["*"]),
    program("gmake").side_effect_options(&["-f", "--file", "--eval", "-C", "--directory"]).launches(&["*"]),
    program("ninja").launches(&["*"]),
    program("just").launches(&["*"]),
    program("task").launches(&["*"]),
    program("rake").launches(&["*"]),
    program("bundle").subcommands(&[]).launches(&["*"]),
    program("gradle").launches(&["*"]),
    program("gradlew").launches(&["*"]),
    program("mvn").launches(&["*"]),
    program("mvnw").launches(&["*"]),
    program("sbt").launches(&["*"]),
    program("tox").launches(&["*"]),
    program("nox").launches(&["*"]),
    program("mix").launches(&["*"]),
    program("composer").subcommands(&["-d", "--working-dir"]).launches(&["*"]),
    program("dotnet").subcommands(&[]).launches(&["run", "test", "watch"]),
    program("swift").subcommands(&[]).launches(&["run", "test"]),
    program("python").side_effect_options(&["-c"]).launches(&["-m"]),
    program("pip").subcommands(&["--python", "--proxy", "--cache-dir", "--log"]),
    program("uv")
        .subcommands(&[
            "--directory",
            "--project",
            "--config-file",
            "--cache-dir",
            "--color",
            "--allow-insecure-host",
        ])
        .launches(&["run"]),
    program("poetry").subcommands(&["-C", "--directory", "-P", "--project"]).launches(&["run"]),
    program("pipenv").subcommands(&["--python"]).launches(&["run"]),
    program("pdm").subcommands(&["-p", "--project", "-c", "--config"]).launches(&["run"]),
    program("hatch").subcommands(&["-e", "--env", "-p", "--project"]).launches(&["run"]),
    program("apt").subcommands(&["-o", "--option", "-c", "--config-file", "-t", "--target-release"]),
    program("apt-get").subcommands(&["-o", "--option", "-c", "--config-file", "-t", "--target-release"]),
    program("brew").subcommands(&[]),
    // Containers, clusters, clouds, services.
    program("docker")
        .subcommands(&[
            "-H",
            "--host",
            "-c",
            "--context",
            "--config",
            "-l",
            "--log-level",
            "--tlscacert",
            "--tlscert",
            "--tlskey",
        ])
        .launches(&["compose", "build"]),
    program("podman")
        .subcommands(&[
            "-c",
            "--connection",
            "--url",
            "--identity",
            "--log-level",
            "--root",
            "--runroot",
            "--runtime",
        ])
        .launches(&["compose", "build"]),
    program("kubectl").subcommands(&[
        "-n",
        "--namespace",
        "-s",
        "--server",
        "-v",
        "--as",
        "--as-group",
        "--cluster",
        "--context",
        "--kubeconfig",
        "--profile",
        "--request-timeout",
        "--token",
        "--user",
    ]),
    program("helm").subcommands(&[
        "-n",
        "--namespace",
        "--kube-context",
        "--kubeconfig",
        "--registry-config",
    ]),
    program("terraform").subcommands(&[]),
    program("aws").subcommands(&[
        "--profile",
        "--region",
        "--output",
        "--endpoint-url",
        "--query",
        "--color",
    ]),
    program("gcloud").subcommands(&["--project", "--account", "--configuration", "--format", "--verbosity"]),
    program("az").subcommands(&["--subscription", "-o", "--output", "--query"]),
    program("systemctl").subcommands(&["-H", "--host", "-M", "--machine", "-n", "-o", "-p", "-s", "-t"]),
    // Programs that read, with options that do not.
    program("find").side_effect_options(&[
        "-delete", "-exec", "-execdir", "-fls", "-fprint", "-fprint0", "-fprintf", "-ok", "-okdir",
    ]),
    program("fdfind").side_effect_options(&["-x", "-X", "--exec", "--exec-batch"]),
    program("fd").side_effect_options(&["-x", "-X", "--exec", "--exec-batch"]),
    program("rg").side_effect_options(&["--hostname-bin", "--pre", "--search-zip", "-z"]),
    program("sort").side_effect_options(&["-o", "--output", "--compress-program"]),
    program("sed").side_effect_options(&["-i", "--in-place"]),
    program("awk").side_effect_options(&["-i", "--include", "-l", "--load"]),
    program("perl").side_effect_options(&["-M", "-I", "-i", "-e", "-E"]),
    program("ruby").side_effect_options(&["-i", "-e"]),
    program("yq").side_effect_options(&["-i", "--inplace"]),
    program("tree").side_effect_options(&["-o"]),
    program("diff").side_effect_options(&["--output"]),
    program("date").side_effect_options(&["-s", "--set"]),
    program("less").side_effect_options(&["-o", "-O", "--log-file"]),
    program("tar").side_effect_options(&[
        "-F",
        "-I",
        "--use-compress-program",
        "--checkpoint-action",
        "--rsh-command",
        "--rmt-command",
        "--to-command",
        "--info-script",
        "--new-volume-script",
    ]),
    program("zip").side_effect_options(&["-T", "--unzip-command"]),
    program("rsync").side_effect_options(&["-e", "--rsh", "--rsync-path"]),
    program("ssh").side_effect_options(&["-D", "-E", "-I", "-J", "-L", "-R", "-o", "-F"]),
    program("scp").side_effect_options(&["-D", "-J", "-o", "-F", "-S"]),
    program("curl").side_effect_options(&[
        "--trace",
        "--trace-ascii",
        "--stderr",
        "--libcurl",
        "--etag-save",
        "--hsts",
        "-K",
        "--config",
        "-o",
        "--output",
        "-O",
        "--remote-name",
        "-T",
        "--upload-file",
        "-D",
        "--dump-header",
        "-c",
        "--cookie-jar",
        "-w",
        "--write-out",
        "--output-dir",
        "-F",
        "--form",
        "-d",
        "--data",
        "--data-ascii",
        "--data-binary",
        "--data-raw",
        "--data-urlencode",
        "--json",
    ]),
    program("wget").side_effect_options(&[
        "-a",
        "-P",
        "--directory-prefix",
        "--append-output",
        "--post-file",
        "--save-cookies",
        "-O",
        "--output-document",
        "-o",
        "--output-file",
        "--use-askpass",
        "-e",
        "--execute",
    ]),
    // Programs that run another one.
    program("sudo").wrapper(),
    program("doas").wrapper(),
    program("env").wrapper(),
    program("exec").wrapper(),
    program("command").wrapper(),
    program("builtin").wrapper(),
    program("eval").wrapper(),
    program("time").wrapper(),
    program("nice").wrapper(),
    program("ionice").wrapper(),
    program("chrt").wrapper(),
    program("taskset").wrapper(),
    program("nohup").wrapper(),
    program("setsid").wrapper(),
    program("stdbuf").wrapper(),
    program("timeout").wrapper(),
    program("watch").wrapper(),
    program("flock").wrapper(),
    program("xargs").wrapper(),
    program("parallel").wrapper(),
    program("busybox").wrapper(),
    program("strace").wrapper(),
    program("unshare").wrapper(),
    program("chroot").wrapper(),
];

/// Wrappers that add arguments of their input to the program that they run.
const APPENDING: [&str; 2] = ["xargs", "parallel"];

fn known(name: &str) -> Option<&'static Program> {
    let name = base_name(name);
    let of_name = |name: &str| PROGRAMS.iter().find(|program| program.name == name);
    // As in `python3` and `pip3.12`.
    of_name(name).or_else(|| of_name(name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')))
}

/// Returns the words of a command without the options before its subcommand, as rules name it, if there are some or if the
/// subcommand is computed. `before` are the words
/// before it. Words that come from elsewhere are [`UNKNOWN`].
pub(super) fn without_global_options<'a>(
    words: &'a [String],
    before: &[String],
) -> Option<Vec<Cow<'a, str>>> {
    let (first, rest) = words.split_first()?;
    let name = base_name(first);
    let mut found = Vec::with_capacity(words.len() + 1);
    // `git-push` is the same as `git push`.
    let own = name.strip_prefix("git-").filter(|own| !own.is_empty());
    if let Some(own) = own {
        found.extend([Cow::Borrowed("git"), Cow::Borrowed(own)]);
        found.extend(rest.iter().map(|word| Cow::Borrowed(word.as_str())));
        return Some(found);
    }
    let program = known(first);
    let values = program.map_or(&[][..], |program| program.values);
    let mut is_aliased = false;
    let mut rest = rest;
    while let Some((option, after)) = rest.split_first()
        // `cargo +nightly` names a toolchain.
        && (option.starts_with('-') || option.starts_with('+')) && option.len() > 1
    {
        rest = after;
        if values.contains(&option.as_str()) {
            is_aliased |= rest.first().is_some_and(|value| value.starts_with("alias."));
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    found.push(Cow::Borrowed(first.as_str()));
    found.extend(rest.iter().map(|word| Cow::Borrowed(word.as_str())));
    let has_subcommands = program.is_some_and(|program| program.has_subcommands);
    if before.iter().any(|word| APPENDING.contains(&base_name(word))) {
        found.push(Cow::Borrowed(UNKNOWN));
    }
    if has_subcommands
        && let Some(subcommand) = found.get_mut(1)
        && (is_aliased || subcommand.contains(['$', '*', '?', '[']))
    {
        *subcommand = Cow::Borrowed(UNKNOWN);
    }
    let is_other = found.len() != words.len() || found.iter().zip(words).any(|(found, word)| found != word);
    is_other.then_some(found)
}

/// Returns the first of some arguments of a program that writes a file, runs a program or connects, although the program
/// without it does not.
pub(super) fn first_side_effect_option<'a>(program: &str, arguments: &'a [String]) -> Option<&'a str> {
    let program = known(program)?;
    let options: Vec<&str> = program
        .side_effect_options
        .iter()
        .filter_map(|option| match option.split_once(' ') {
            None => Some(*option),
            Some((subcommand, option)) => {
                arguments.iter().any(|argument| argument == subcommand).then_some(option)
            }
        })
        .collect();
    let is_option = |argument: &&String| {
        options.iter().any(|option| match option.strip_prefix("--") {
            // Long options may be cut short as long as they are clear.
            Some(_) => {
                let name = argument.split('=').next().unwrap_or(argument);
                name == *option || (name.len() > 2 && option.starts_with(name))
            }
            // Go takes such options with two dashes as well.
            None if option.len() > 2 || program.has_long_options_only => {
                let name = argument.split('=').next().unwrap_or(argument);
                name == *option || name.strip_prefix('-') == Some(*option)
            }
            None => has_letter(argument, option),
        })
    };
    arguments.iter().find(is_option).map(String::as_str)
}

/// Returns whether a word has an option of one letter, which may follow others in the word and precede its value.
fn has_letter(word: &str, option: &str) -> bool {
    let letter = option.trim_start_matches('-');
    word.starts_with('-') && !word.starts_with("--") && word.contains(letter)
}

/// Returns the program of a command, with the argument that counts, which runs files of its working directory that the
/// command does not name, such as `make` and `npm run`.
pub(super) fn launcher(words: &[String]) -> Option<String> {
    let is_wrapped = words.first().and_then(|first| known(first)).is_some_and(|program| program.is_wrapper);
    let ends = if is_wrapped { words.len() } else { words.len().min(1) };
    (0..ends).find_map(|from| {
        let (first, rest) = words.get(from..)?.split_first()?;
        let program = known(first)?;
        match program.launches {
            [] => None,
            ["*"] => Some(program.name.to_owned()),
            launches => {
                let is_named = |word: &&&str| {
                    let is_letter = word.len() == 2 && word.starts_with('-');
                    rest.iter().any(|argument| argument == **word || is_letter && has_letter(argument, word))
                };
                let launch = launches.iter().find(is_named)?;
                Some(format!("{} {launch}", program.name))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn options_that_do_more_are_found_in_every_form() {
        for (line, expected) in [
            ("git log --output=x", Some("--output=x")),
            ("git log --outp x", Some("--outp")),
            ("git log --oneline --stat -5", None),
            ("git diff --ext-diff", Some("--ext-diff")),
            ("find . -name x -delete", Some("-delete")),
            ("find . -name x -print", None),
            ("sort -uo x y", Some("-uo")),
            ("sort -ox y", Some("-ox")),
            ("sort --output x", Some("--output")),
            ("sort -u y", None),
            ("rg --pre ./x y", Some("--pre")),
            ("rg --pretty x", None),
            ("sed -n 1p x", None),
            ("sed -ni 1p x", Some("-ni")),
            ("cat -o x", None),
            ("git rebase -x make main", Some("-x")),
            ("git archive -ox HEAD", Some("-ox")),
            ("git status -uno", None),
            ("git ls-files -o", None),
            ("go test -count=1 -cover", None),
            ("go test -o=x", Some("-o=x")),
            ("go test --o x", Some("--o")),
            ("curl -sw %output{x} y", Some("-sw")),
        ] {
            let words = words(line);
            assert_eq!(first_side_effect_option(&words[0], &words[1..]), expected, "{line}");
        }
    }

    #[test]
    fn programs_that_run_unnamed_files_are_named() {
        for (line, expected) in [
            ("make serve", Some("make")),
            ("env -u X make", Some("make")),
            ("/usr/bin/npm --silent run server", Some("npm run")),
            ("npm install", None),
            ("python3.12 -m server", Some("python -m")),
            ("python3 server.py", None),
            ("python3 -mserver", Some("python -m")),
            ("python3 -Im server", Some("python -m")),
            ("node .", Some("node .")),
            ("node server.js --task make", None),
            ("uv run server.py", Some("uv run")),
            ("cat make", None),
        ] {
            assert_eq!(launcher(&words(line)).as_deref(), expected, "{line}");
        }
    }
}
