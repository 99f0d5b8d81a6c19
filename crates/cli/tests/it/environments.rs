//! `--env`: runs in a container and on a remote host, without local side effects.
//!
//! `cargo xtask services up` starts the container engine and the ssh server. Without them, these tests are skipped.

mod bad_input;
mod prompts;
pub(crate) mod remote;
mod signals;

use pintle_test_conditions::is_full;

use self::remote::Remote;
use crate::harness::run;

/// Calls in the syntax of one toolset. `DIR` is the remote directory.
struct Toolset {
    dialect: &'static str,
    name: &'static str,
    write: &'static str,
    edit: &'static str,
    grep: &'static str,
    glob: &'static str,
    shell: &'static str,
}

const ANTHROPIC_NATIVE: Toolset = Toolset {
    dialect: "anthropic",
    name: "native",
    write: "tool = \"Write\"\narguments = { file_path = \"DIR/src/hello.py\", content = \"print('Hello')\\n\" }",
    edit: "tool = \"Edit\"\narguments = { file_path = \"DIR/src/hello.py\", old_string = \"Hello\", new_string = \"Goodbye\" }",
    grep: "tool = \"Grep\"\narguments = { pattern = \"Good.ye\" }",
    glob: "tool = \"Glob\"\narguments = { pattern = \"**/*.py\" }",
    shell: "tool = \"Bash\"\narguments = { command = \"cat src/hello.py; exit 7\" }",
};

const GEMINI_NATIVE: Toolset = Toolset {
    dialect: "gemini",
    name: "native",
    write: "tool = \"write_file\"\narguments = { file_path = \"DIR/src/hello.py\", content = \"print('Hello')\\n\" }",
    edit: "tool = \"replace\"\narguments = { file_path = \"DIR/src/hello.py\", instruction = \"Say goodbye.\", old_string = \"Hello\", new_string = \"Goodbye\" }",
    grep: "tool = \"search_file_content\"\narguments = { pattern = \"Good.ye\" }",
    glob: "tool = \"glob\"\narguments = { pattern = \"**/*.py\" }",
    shell: "tool = \"run_shell_command\"\narguments = { command = \"cat src/hello.py; exit 7\" }",
};

const OPENAI_SPEC: Toolset = Toolset {
    dialect: "openai",
    name: "spec",
    write: "tool = \"write_file\"\narguments = { file_path = \"src/hello.py\", content = \"print('Hello')\\n\" }",
    edit: "tool = \"apply_patch\"\narguments = { patch = '''\n*** Begin Patch\n*** Update File: src/hello.py\n@@\n-print('Hello')\n+print('Goodbye')\n*** End Patch\n''' }",
    grep: "tool = \"grep\"\narguments = { pattern = \"Good.ye\" }",
    glob: "tool = \"glob\"\narguments = { pattern = \"**/*.py\" }",
    shell: "tool = \"shell\"\narguments = { command = \"cat src/hello.py; exit 7\" }",
};

const ANTHROPIC_SPEC: Toolset = Toolset {
    dialect: "anthropic",
    edit: "tool = \"edit_file\"\narguments = { file_path = \"src/hello.py\", old_string = \"Hello\", new_string = \"Goodbye\" }",
    ..OPENAI_SPEC
};

/// Creates, edits and finds a file, and prints it with a command that exits with an error.
fn works_remotely(remote: Option<Remote>, toolset: &Toolset) {
    let Some(remote) = remote else { return };
    let Toolset { dialect, name, write, edit, grep, glob, shell } = toolset;
    let done = "[[turn.expect]]\ncall = 0\nis_error = false\n";
    let turns = format!(
        "[[turn]]\n[[turn.call]]\n{write}\n\
         [[turn]]\n{done}[[turn.call]]\n{edit}\n\
         [[turn]]\n{done}[[turn.call]]\n{grep}\n[[turn.call]]\n{glob}\n\
         [[turn]]\n[[turn.expect]]\ncall = 0\ncontains = \"hello.py\"\n\
         [[turn.expect]]\ncall = 1\ncontains = \"hello.py\"\n[[turn.call]]\n{shell}\n\
         [[turn]]\ntext = \"It says goodbye now.\"\n\
         [[turn.expect]]\ncall = 0\ncontains = \"print('Goodbye')\"\n[[turn.expect]]\ncall = 0\ncontains = \"7\"\n"
    );
    let mut command =
        remote.run(&turns.replace("DIR", &remote.directory), &["--dialect", dialect, "--toolset", name]);
    let output = run(command.args(["--dir", &remote.directory, "Make hello.py"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("It says goodbye now."), "{output:?}");
    assert_eq!(remote.sh("cat src/hello.py"), "print('Goodbye')\n");
    assert_eq!(remote.local_files(), ["script.toml"], "a local file was created");
    remote.assert_clean();
}

#[test]
fn docker_with_native_tools() {
    works_remotely(Remote::docker(), &ANTHROPIC_NATIVE);
}

/// By default, the test over ssh covers these tools.
#[test]
fn docker_with_spec_tools() {
    if !is_full() {
        return;
    }
    works_remotely(Remote::docker(), &OPENAI_SPEC);
}

#[test]
fn ssh_with_native_tools() {
    works_remotely(Remote::ssh(), &GEMINI_NATIVE);
}

#[test]
fn ssh_with_spec_tools() {
    works_remotely(Remote::ssh(), &ANTHROPIC_SPEC);
}

/// Losing the container fails the call and the run. Later calls do not run locally instead.
#[test]
fn lost_container_ends_the_run_without_fallback() {
    let Some(remote) = Remote::docker() else { return };
    let turns = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"kill -TERM 1; sleep 60\" }\n\
                 [[turn.call]]\ntool = \"write_file\"\narguments = { file_path = \"x\", content = \"x\" }\n\
                 [[turn.call]]\ntool = \"shell\"\narguments = { command = \"echo ran > y\" }\n";
    let output = run(remote.run(turns, &["--dialect", "anthropic", "--toolset", "spec"]).arg("Go on"));
    assert_eq!(output.code, Some(1), "{output:?}");
    assert_eq!(output.stderr, "pintle: network failure: the execution environment is lost\n");
    // The calls after the first one may still find the dying container, or none.
    assert!(output.stdout.contains("the connection to docker:"), "{output:?}");
    // A change is judged once more before it happens, and its path cannot be resolved any more.
    let [lost, denied] =
        ["(environment lost", "[write_file] x (denied"].map(|text| output.stdout.matches(text).count());
    assert_eq!((lost + denied, denied <= 1), (3, true), "{output:?}");
    assert_eq!(remote.local_files(), ["script.toml"]);
}
