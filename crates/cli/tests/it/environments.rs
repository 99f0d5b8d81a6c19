//! `--env`: the same work in a container and on another host, and nothing of it here.
//!
//! The engine and the servers are those of `cargo xtask services up`; without them these tests are skipped, which must
//! not happen in continuous integration.

mod bad_input;
mod far;
mod prompts;
mod stopping;

use self::far::Far;
use crate::lab::say;

/// What a family calls its tools, with their arguments. `DIR` is the directory there.
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

/// Creates a file there, edits it, finds it by content and by name, and shows it with a command that fails.
fn works_there(far: Option<Far>, toolset: &Toolset) {
    let Some(far) = far else { return };
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
        far.run(&turns.replace("DIR", &far.directory), &["--dialect", dialect, "--toolset", name]);
    let said = say(command.args(["--dir", &far.directory, "Make hello.py"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("It says goodbye now."), "{said:?}");
    assert_eq!(far.sh("cat src/hello.py"), "print('Goodbye')\n");
    assert_eq!(far.files_here(), ["script.toml"], "something was made on this side");
    far.is_left_in_order();
}

#[test]
fn docker_with_native_tools() {
    works_there(Far::docker(), &ANTHROPIC_NATIVE);
}

#[test]
fn docker_with_the_tools_of_the_specification() {
    works_there(Far::docker(), &OPENAI_SPEC);
}

#[test]
fn ssh_with_native_tools() {
    works_there(Far::ssh(), &GEMINI_NATIVE);
}

#[test]
fn ssh_with_the_tools_of_the_specification() {
    works_there(Far::ssh(), &ANTHROPIC_SPEC);
}

/// A container that goes away takes the call with it and ends the run; a call after it is not done here instead.
#[test]
fn what_is_lost_is_not_done_here_instead() {
    let Some(far) = Far::docker() else { return };
    let turns = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"kill -TERM 1; sleep 60\" }\n\
                 [[turn.call]]\ntool = \"write_file\"\narguments = { file_path = \"x\", content = \"x\" }\n\
                 [[turn.call]]\ntool = \"shell\"\narguments = { command = \"echo ran > y\" }\n";
    let said = say(far.run(turns, &["--dialect", "anthropic", "--toolset", "spec"]).arg("Go on"));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert_eq!(said.err, "pintle: network failure: the execution environment is lost\n");
    for part in ["the connection to docker:", "cannot reach docker:"] {
        assert!(said.out.contains(part), "{part:?} in {said:?}");
    }
    assert_eq!(far.files_here(), ["script.toml"]);
}
