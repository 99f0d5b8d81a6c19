use std::time::Duration;

use super::*;
use crate::{
    command::{ExecRequest, Program},
    contract,
};

fn text(output: &crate::Output) -> String {
    output.to_text_lossy().unwrap()
}

#[tokio::test]
async fn keeps_the_contract_of_files() {
    let environment = MemoryEnvironment::new("/project");
    contract::files(&environment, Path::new("/project/contract")).await.unwrap();
}

#[tokio::test]
async fn keeps_the_contract_of_search() {
    let environment = MemoryEnvironment::new("/project");
    contract::search(&environment, Path::new("/project/contract")).await.unwrap();
}

#[tokio::test]
async fn commands_follow_their_scripts() {
    let environment = MemoryEnvironment::new("/project").with_commands(|command| match &command.program {
        Program::Shell(line) if line == "cat" => CommandScript::exit(0).copy_input(),
        Program::Shell(line) => CommandScript::exit(3).stdout(format!("{line}\n")).stderr("x"),
        Program::Argv { .. } => CommandScript::killed_by(9),
    });
    let result = environment.exec_command(ExecRequest::new("hello")).await.unwrap();
    assert_eq!((text(&result.stdout), result.exit_code), ("hello\n".to_owned(), 3));
    assert_eq!(text(&result.output), "hello\nx");
    let input = vec![b'x'; 200_000];
    let request = ExecRequest::new("cat").with_stdin(input.clone());
    let result = environment.exec_command(request).await.unwrap();
    assert_eq!(result.stdout.read_at(0, 1 << 20).unwrap(), input);
    let mut process = environment.spawn(Command::argv("ls", ["-l"])).await.unwrap();
    assert_eq!(environment.running(), 1);
    assert_eq!(process.wait().await.unwrap().code(), 137);
    drop(process);
    assert_eq!(environment.running(), 0);
    assert_eq!(environment.commands().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn time_outs_and_jobs_are_played() {
    let environment = MemoryEnvironment::new("/project").with_commands(|command| match &command.program {
        Program::Shell(line) if line == "stubborn" => {
            CommandScript::exit(0).stdout("so far").hang().ignoring_terminate()
        }
        Program::Shell(line) if line == "jobs" => CommandScript::exit(0).leaving_jobs(2),
        Program::Shell(_) | Program::Argv { .. } => {
            CommandScript::exit(0).pause(Duration::from_secs(5)).stdout("late")
        }
    });
    let result = environment.exec_command(ExecRequest::new("stubborn")).await.unwrap();
    assert!(result.timed_out);
    assert_eq!(result.exit_code, 137);
    assert_eq!(text(&result.stdout), "so far");
    assert_eq!(result.duration.as_secs(), 12);
    let result = environment.exec_command(ExecRequest::new("jobs")).await.unwrap();
    assert_eq!((result.exit_code, result.ended_jobs), (0, 2));
    let result = environment.exec_command(ExecRequest::new("pause")).await.unwrap();
    assert_eq!(text(&result.stdout), "late");
    assert_eq!(result.duration.as_secs(), 5);
}

#[tokio::test]
async fn without_a_function_there_are_no_commands() {
    let environment = MemoryEnvironment::new("/project");
    let error = environment.exec_command(ExecRequest::new("true")).await.unwrap_err();
    assert!(matches!(error, EnvError::Unsupported { .. }));
}

#[tokio::test]
async fn fixtures_replace_existing_files() {
    let environment = MemoryEnvironment::new("/project")
        .with_file("a", "file")
        .with_file("a/b", "below")
        .with_file("c/d", "below")
        .with_file("c", "file")
        .with_directory("e/f");
    let files = environment.files();
    let names: Vec<_> = files.keys().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(names, ["/project/a/b", "/project/c"]);
    assert!(environment.metadata(Path::new("e/f")).await.unwrap().is_dir());
}
