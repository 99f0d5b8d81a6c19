use std::{
    fmt::Write,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use tracing::{
    Event, Metadata as Callsite, Subscriber,
    field::{Field, Visit},
    span,
};

use super::*;
use crate::{CommandScript, MemoryEnvironment, contract};

/// A subscriber that records events as text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Log {
    fn text(&self) -> MutexGuard<'_, String> {
        self.0.lock().unwrap()
    }
}

impl Subscriber for Log {
    fn enabled(&self, callsite: &Callsite<'_>) -> bool {
        callsite.target() == "pintle_env::logging"
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Fields(self.text()));
        self.text().push('\n');
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Fields<'a>(MutexGuard<'a, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() != "milliseconds" {
            write!(self.0, "{}={value:?} ", field.name()).unwrap();
        }
    }
}

/// Returns the log of one operation of each kind.
async fn logged(contents: usize) -> String {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let memory =
        MemoryEnvironment::new("/project").with_commands(|_| CommandScript::exit(3).stdout("secret-output"));
    let environment = Logging::new(Arc::new(memory)).with_contents(contents);
    let path = Path::new("/project/a");
    environment.write_file(path, "secret-content").await.unwrap();
    environment.read(path, None).await.unwrap();
    environment.read_file(path, None, None).await.unwrap();
    let request =
        ExecRequest::new("echo secret-line").with_env("A", "secret-value").with_stdin("secret-input");
    environment.exec_command(request).await.unwrap();
    drop(environment.spawn(Command::argv("program", ["secret-argument"])).await.unwrap());
    environment.grep(&GrepRequest::new("secret-pattern")).await.unwrap();
    environment.glob("secret-glob", Path::new("")).await.unwrap();
    environment.glob("secret-[", Path::new("")).await.unwrap_err();
    environment.metadata(Path::new("/gone")).await.unwrap_err();
    environment.cleanup().await.unwrap();
    log.text().clone()
}

#[tokio::test]
async fn operations_are_logged_without_contents() {
    let log = logged(0).await;
    assert!(!log.contains("secret"), "{log}");
    for expected in [
        r#"operation="write_file" subject="/project/a" outcome=14 bytes"#,
        r#"operation="exec_command" subject="a shell line of 16 bytes" outcome=exit code 3"#,
        r#"operation="spawn" subject="\"program\" with 1 arguments" outcome=a process"#,
        r#"operation="glob" subject="" outcome=failed: invalid pattern"#,
        r#"operation="metadata" subject="/gone" outcome=failed: /gone does not exist"#,
        r#"operation="cleanup""#,
    ] {
        assert!(log.contains(expected), "{expected}\n{log}");
    }
}

#[tokio::test]
async fn contents_are_logged_on_request_and_values_never() {
    let log = logged(100).await;
    for expected in ["content", "output", "line", "argument", "pattern", "glob"] {
        assert!(log.contains(&format!("secret-{expected}")), "{expected}\n{log}");
    }
    for never in ["secret-value", "secret-input"] {
        assert!(!log.contains(never), "{never}\n{log}");
    }
    let cut = logged(8).await;
    assert!(cut.contains("secret-c") && !cut.contains("secret-co"), "{cut}");
}

#[tokio::test]
async fn a_process_has_a_start_and_an_end() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let memory = MemoryEnvironment::new("/project").with_commands(|_| CommandScript::exit(3));
    let environment = Logging::new(Arc::new(memory));
    let none: [&str; 0] = [];
    let mut process = environment.spawn(Command::argv("program", none)).await.unwrap();
    assert_eq!(log.text().lines().count(), 1);
    for _ in 0..2 {
        assert_eq!(process.wait().await.unwrap().code(), 3);
    }
    drop(process);
    drop(environment.spawn(Command::argv("program", none)).await.unwrap());
    let log = log.text().clone();
    let outcomes: Vec<_> =
        log.lines().filter_map(|line| Some(line.split_once("outcome=")?.1.trim_end())).collect();
    assert_eq!(outcomes, ["a process", "exit code 3", "a process", "dropped"]);
}

#[tokio::test]
async fn dropped_operations_are_logged() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let memory = MemoryEnvironment::new("/project").with_commands(|_| CommandScript::exit(0).hang());
    let environment = Logging::new(Arc::new(memory));
    let hanging = environment.exec_command(ExecRequest::new("sleep"));
    tokio::time::timeout(Duration::from_millis(20), hanging).await.unwrap_err();
    let log = log.text().clone();
    assert!(
        log.contains(r#"operation="exec_command" subject="a shell line of 5 bytes" outcome=dropped"#),
        "{log}"
    );
}

#[tokio::test]
async fn keeps_the_contract() {
    let environment = Logging::new(Arc::new(MemoryEnvironment::new("/project")));
    contract::files(&environment, Path::new("/project/files")).await.unwrap();
    contract::search(&environment, Path::new("/project/search")).await.unwrap();
}
