//! The table of programs, which all rules share.

use super::base_name;
use super::operands::Operands;
use super::options::{
    AWK_OPTIONS, BAT_OPTIONS, COMPILER_OPTIONS, CURL_OPTIONS, LESS_OPTIONS, MAKE_OPTIONS, PYTEST_OPTIONS,
    SED_OPTIONS,
};

/// Entry of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    /// Options before the subcommand whose value is the next word. Other options have no value, or have it after `=`.
    pub(super) values: &'static [&'static str],
    /// Options that write a file, run a program or connect, although the program without them does not. An option after
    /// the name of a subcommand and a space applies only to that subcommand. A `*` at the end matches any characters.
    pub(super) side_effect_options: &'static [&'static str],
    /// Whether options with one dash are whole words, so that a word cannot combine several.
    pub(super) has_long_options_only: bool,
    /// Subcommands that run files of the working directory which the arguments do not name; all if it is `*`.
    pub(super) launches: &'static [&'static str],
    /// Whether it has subcommands.
    pub(super) has_subcommands: bool,
    /// Arguments other than options that have additional effects.
    pub(super) operands: Operands,
    /// Whether it runs the program that its arguments name.
    pub(super) is_wrapper: bool,
    /// Arguments that it does not run, unless one of them is in `side_effect_options` or `operands`.
    pub(super) text_arguments: TextArguments,
}

/// Arguments that a program reads as texts. It does not run its input either.
#[derive(Clone, Copy, Debug)]
pub(super) enum TextArguments {
    None,
    All,
    /// All, if the first one is not an option.
    WithoutOptions,
    /// All, with one of these subcommands.
    Of(&'static [&'static str]),
}

const fn program(name: &'static str) -> Program {
    Program {
        name,
        values: &[],
        side_effect_options: &[],
        has_long_options_only: false,
        launches: &[],
        has_subcommands: false,
        operands: Operands::Plain,
        is_wrapper: false,
        text_arguments: TextArguments::None,
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

    const fn operands(self, operands: Operands) -> Self {
        Self { operands, ..self }
    }

    const fn wrapper(self) -> Self {
        Self { is_wrapper: true, ..self }
    }

    const fn texts(self) -> Self {
        Self { text_arguments: TextArguments::All, ..self }
    }

    const fn texts_without_options(self) -> Self {
        Self { text_arguments: TextArguments::WithoutOptions, ..self }
    }

    const fn texts_of(self, subcommands: &'static [&'static str]) -> Self {
        Self { text_arguments: TextArguments::Of(subcommands), ..self }
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
            "ext::*",
            "format-patch -o",
            "push --repo",
            "rebase -x",
        ])
        .texts_of(&[
            "add",
            "blame",
            "branch",
            "commit",
            "describe",
            "diff",
            "grep",
            "log",
            "ls-files",
            "merge",
            "notes",
            "reflog",
            "rev-parse",
            "shortlog",
            "show",
            "stash",
            "status",
            "tag",
        ]),
    program("gh")
        .subcommands(&["-R", "--repo", "--hostname"])
        .side_effect_options(&[
            "api -F",
            "api -X",
            "api -f",
            "api --field",
            "api --input",
            "api --method",
            "api --raw-field",
        ])
        .texts_of(&["issue", "pr", "release", "search"]),
    program("hg")
        .subcommands(&["-R", "--repository", "--cwd", "--config"])
        .side_effect_options(&["--config", "--ssh"]),
    program("svn")
        .subcommands(&["--config-dir", "--config-option"])
        .side_effect_options(&["--config-option", "--diff-cmd"]),
    // Builds and packages.
    program("cargo")
        .subcommands(&["-C", "-Z", "--color", "--config", "--manifest-path", "--target-dir"])
        .side_effect_options(&["--artifact-dir", "--config", "--fix", "--open", "--out-dir", "--target-dir"])
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
        .side_effect_options(&[
            "-asmflags",
            "-blockprofile",
            "-coverprofile",
            "-cpuprofile",
            "-exec",
            "-gccgoflags",
            "-gcflags",
            "-http",
            "-ldflags",
            "-memprofile",
            "-modfile",
            "-mutexprofile",
            "-o",
            "-outputdir",
            "-overlay",
            "-pkgdir",
            "-toolexec",
            "-trace",
            "-vettool",
            "-test.*",
            "--test.*",
            "env -u",
            "env -w",
            "test -c",
            "test -fuzz",
        ])
        .long_options_only()
        .launches(&["run", "tool", "generate"]),
    program("gofmt").side_effect_options(&["-cpuprofile", "-w"]).long_options_only(),
    program("goimports").side_effect_options(&["-cpuprofile", "-memprofile", "-w"]).long_options_only(),
    program("make").side_effect_options(MAKE_OPTIONS).operands(Operands::Settings).launches(&["*"]),
    program("gmake").side_effect_options(MAKE_OPTIONS).operands(Operands::Settings).launches(&["*"]),
    program("ninja").side_effect_options(&["-C", "-f", "-t"]).launches(&["*"]),
    program("just")
        .side_effect_options(&[
            "-c",
            "-d",
            "-f",
            "--command",
            "--justfile",
            "--set",
            "--shell",
            "--shell-arg",
            "--working-directory",
        ])
        .launches(&["*"]),
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
    program("pytest").side_effect_options(PYTEST_OPTIONS),
    program("py.test").side_effect_options(PYTEST_OPTIONS),
    program("gcc").side_effect_options(COMPILER_OPTIONS),
    program("g++").side_effect_options(COMPILER_OPTIONS),
    program("cc").side_effect_options(COMPILER_OPTIONS),
    program("c++").side_effect_options(COMPILER_OPTIONS),
    program("clang").side_effect_options(COMPILER_OPTIONS),
    program("clang++").side_effect_options(COMPILER_OPTIONS),
    program("rustc").side_effect_options(&[
        "-o*",
        "-C*",
        "-L*",
        "-Z*",
        "@*",
        "--codegen",
        "--emit",
        "--extern",
        "--out-dir",
        "--print",
        "--sysroot",
    ]),
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
    // Programs that read, with options that have other effects.
    program("find")
        .side_effect_options(&[
            "-delete", "-exec", "-execdir", "-fls", "-fprint", "-fprint0", "-fprintf", "-ok", "-okdir",
        ])
        .texts(),
    program("fdfind").side_effect_options(&["-x", "-X", "--exec", "--exec-batch"]),
    program("fd").side_effect_options(&["-x", "-X", "--exec", "--exec-batch"]),
    program("rg").side_effect_options(&["--hostname-bin", "--pre", "--search-zip", "-z"]).texts(),
    program("ag").side_effect_options(&["--pager"]),
    program("ack").side_effect_options(&["--pager"]),
    program("bat").side_effect_options(BAT_OPTIONS),
    program("batcat").side_effect_options(BAT_OPTIONS),
    program("sort")
        .side_effect_options(&["-T", "-o", "--compress-program", "--output", "--temporary-directory"])
        .texts(),
    program("shuf").side_effect_options(&["-o", "--output"]),
    program("uniq")
        .operands(Operands::Output {
            values: &["-f", "-s", "-w", "--skip-fields", "--skip-chars", "--check-chars"],
        })
        .texts(),
    program("xxd").operands(Operands::Output {
        values: &["-R", "-c", "-cols", "-g", "-groupsize", "-l", "-len", "-n", "-name", "-o", "-s", "-seek"],
    }),
    program("sed").side_effect_options(SED_OPTIONS).operands(Operands::Sed).texts(),
    program("gsed").side_effect_options(SED_OPTIONS).operands(Operands::Sed).texts(),
    program("awk").side_effect_options(AWK_OPTIONS).operands(Operands::Awk).texts(),
    program("gawk").side_effect_options(AWK_OPTIONS).operands(Operands::Awk).texts(),
    program("mawk").side_effect_options(AWK_OPTIONS).operands(Operands::Awk).texts(),
    program("nawk").side_effect_options(AWK_OPTIONS).operands(Operands::Awk).texts(),
    program("perl").side_effect_options(&["-M", "-I", "-i", "-e", "-E"]),
    program("ruby").side_effect_options(&["-i", "-e"]),
    program("yq").side_effect_options(&["-i", "--inplace"]),
    program("tree").side_effect_options(&["-o"]),
    program("diff").side_effect_options(&["--output"]),
    program("diff3").side_effect_options(&["--diff-program"]),
    program("sdiff").side_effect_options(&["-o", "--diff-program", "--output"]),
    program("file").side_effect_options(&["-C", "--compile"]),
    program("iconv").side_effect_options(&["-o", "--output"]),
    program("man").side_effect_options(&[
        "-C",
        "-H",
        "-P",
        "-X",
        "--config-file",
        "--gxditview",
        "--html",
        "--pager",
    ]),
    program("clang-format").side_effect_options(&["-i"]),
    program("shfmt").side_effect_options(&["-w", "--write"]),
    program("prettier").side_effect_options(&["-w", "--write", "--plugin"]),
    program("eslint").side_effect_options(&[
        "-c",
        "-f",
        "-o",
        "--cache-file",
        "--cache-location",
        "--config",
        "--fix",
        "--format",
        "--output-file",
        "--parser",
        "--plugin",
        "--resolve-plugins-relative-to",
        "--rulesdir",
    ]),
    program("ruff").side_effect_options(&["-o", "--fix", "--fix-only", "--output-file"]),
    program("date").side_effect_options(&["-s", "--set"]),
    program("less").side_effect_options(LESS_OPTIONS),
    program("more").side_effect_options(LESS_OPTIONS),
    program("tar").operands(Operands::Letters).side_effect_options(&[
        "-C",
        "-F",
        "-I",
        "-P",
        "-g",
        "--absolute-names",
        "--directory",
        "--index-file",
        "--listed-incremental",
        "--remove-files",
        "--volno-file",
        "--use-compress-program",
        "--checkpoint-action",
        "--rsh-command",
        "--rmt-command",
        "--to-command",
        "--info-script",
        "--new-volume-script",
    ]),
    program("zip").side_effect_options(&["-O", "-T", "-m", "--move", "--output-file", "--unzip-command"]),
    program("rsync").side_effect_options(&[
        "-M",
        "-e",
        "--log-file",
        "--only-write-batch",
        "--remote-option",
        "--rsh",
        "--rsync-path",
        "--write-batch",
    ]),
    program("ssh").side_effect_options(&["-D", "-E", "-F", "-I", "-J", "-L", "-O", "-R", "-S", "-W", "-o"]),
    program("scp").side_effect_options(&["-D", "-J", "-o", "-F", "-S"]),
    program("sftp").side_effect_options(&["-D", "-F", "-J", "-S", "-b", "-o"]),
    program("curl").side_effect_options(CURL_OPTIONS),
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
    // Programs that only read and print.
    program("echo").texts(),
    program("printf").texts_without_options(),
    program("cat").texts(),
    program("tac").texts(),
    program("nl").texts(),
    program("head").texts(),
    program("tail").texts(),
    program("wc").texts(),
    program("grep").texts(),
    program("egrep").texts(),
    program("fgrep").texts(),
    program("cut").texts(),
    program("tr").texts(),
    program("fold").texts(),
    program("column").texts(),
    program("jq").texts(),
    program("test").texts(),
    program("[").texts(),
    // Programs that run another one.
    program("sudo").wrapper(),
    program("doas").wrapper(),
    program("env").wrapper().side_effect_options(&["-S", "--split-string"]),
    program("exec").wrapper(),
    program("command").wrapper(),
    program("builtin").wrapper(),
    program("eval").wrapper(),
    program("time").wrapper().side_effect_options(&["-o", "--output"]),
    program("script").wrapper().side_effect_options(&["-c", "--command"]),
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
    program("parallel").wrapper().side_effect_options(&["--joblog", "--results"]),
    program("busybox").wrapper(),
    program("strace").wrapper().side_effect_options(&["-o", "--output"]),
    program("ltrace").wrapper().side_effect_options(&["-o", "--output"]),
    program("unshare").wrapper(),
    program("chroot").wrapper(),
    program("nsenter").wrapper(),
    program("pkexec").wrapper(),
    program("prlimit").wrapper(),
    program("setpriv").wrapper(),
    program("systemd-run").wrapper(),
    program("unbuffer").wrapper(),
    program("fakeroot").wrapper(),
    program("catchsegv").wrapper(),
];

/// Returns the entry of a program, by its name or path.
pub(super) fn known(name: &str) -> Option<&'static Program> {
    let name = base_name(name);
    let of_name = |name: &str| PROGRAMS.iter().find(|program| program.name == name);
    // As in `python3`, `pip3.12` and `gcc-14`.
    let is_version = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    of_name(name).or_else(|| of_name(name.trim_end_matches(is_version)))
}
