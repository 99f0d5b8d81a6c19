//! The image of `deploy/Dockerfile`, with the command that the tests have built. Without a container engine, the test is
//! skipped.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use pintle_test_conditions::CONTAINERS;

use super::*;
use crate::environments::remote::{service, stdout_of};

/// Base image with the libraries of the command: that of the services has none.
const BASE: &str = "ARG IMAGE\nFROM ${IMAGE}\nCOPY lib /\n";

/// Model of the server.
const SCRIPT: &str = "name = \"image\"\n[[turn]]\ntext = \"Hello from the container.\"\n";

fn docker(arguments: &[&str]) -> Command {
    let mut command = Command::new("docker");
    // The builder of the tests' engine is the one without BuildKit.
    command.args(arguments).env("DOCKER_BUILDKIT", "0");
    command
}

/// Copies the command without its symbols, and the libraries that it is linked to.
fn copy_program(context: &Path) {
    let program = Path::new(env!("CARGO_BIN_EXE_pintle"));
    stdout_of(Command::new("strip").arg("-o").arg(context.join("pintle")).arg(program));
    let linked = stdout_of(Command::new("ldd").arg(program));
    let libraries = linked.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from);
    for library in libraries {
        let copy = context.join("lib").join(library.strip_prefix("/").unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(&library, &copy).unwrap();
    }
}

/// Images and a container, which are removed when this is dropped.
struct Built {
    base: String,
    image: String,
    container: Option<String>,
}

impl Built {
    fn build(base: &str, context: &Path) -> Self {
        let name = |what: &str| format!("pintle-test/{what}:{}", std::process::id());
        let built = Self { base: name("base"), image: name("pintle"), container: None };
        copy_program(context);
        fs::write(context.join("base"), BASE).unwrap();
        let context = context.to_str().unwrap();
        let of = |name: &str, value: &str| format!("--build-arg={name}={value}");
        let file = format!("{context}/base");
        stdout_of(&mut docker(&[
            "build",
            "--quiet",
            "--file",
            &file,
            "--tag",
            &built.base,
            &of("IMAGE", base),
            context,
        ]));
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/Dockerfile");
        let mut build = docker(&["build", "--quiet", "--network=none", "--target", "runtime-prebuilt"]);
        build.args(["--file", file, "--tag", &built.image, &of("PACKAGES", "")]);
        stdout_of(build.args([&of("BASE_IMAGE", &built.base), context]));
        built
    }

    /// Runs the server as docs/guide/operating.md says, with files of this directory.
    fn run(&mut self, files: &Path) {
        let mount = format!("{}:/srv/pintle:ro", files.display());
        let mut run = docker(&["run", "--detach", "--network=host", "--cap-drop=ALL", "--volume", &mount]);
        run.args(["--security-opt=no-new-privileges", &self.image, "serve", "--listen", "127.0.0.1:0"]);
        run.args(["--provider", "scripted", "--script", "script.toml"]);
        self.container = Some(stdout_of(&mut run).trim().to_owned());
    }

    fn container(&self) -> &str {
        self.container.as_deref().unwrap()
    }

    /// Waits for the newest address with a token, of which there are so many in the output.
    fn url(&self, count: usize) -> (String, String) {
        let end = Instant::now() + PATIENCE;
        loop {
            let output = stdout_of(&mut docker(&["logs", self.container()]));
            let lines: Vec<_> = output.lines().filter_map(|line| line.strip_prefix("http://")).collect();
            if let (true, Some(newest)) = (lines.len() == count, lines.last()) {
                let (authority, token) = newest.trim().split_once("/#token=").unwrap();
                return (authority.to_owned(), token.to_owned());
            }
            assert!(Instant::now() < end, "{output}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Built {
    fn drop(&mut self) {
        if let Some(container) = &self.container {
            let _ = docker(&["rm", "--force", "--volumes", container]).output();
        }
        let _ = docker(&["rmi", "--force", &self.image, &self.base]).output();
    }
}

/// Asks a server in a container.
fn ask(
    (authority, token): &(String, String),
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> (u16, Value) {
    let bearer = format!("authorization: Bearer {token}\r\n");
    let stream = TcpStream::connect(authority).unwrap();
    let (status, body) = exchange(stream, authority, method, path, &bearer, body);
    (status, serde_json::from_str(&body).unwrap_or_default())
}

#[test]
fn the_image_serves_sessions_that_outlive_its_container() {
    let Some(base) = service(&CONTAINERS, "PINTLE_TEST_IMAGE") else { return };
    let (context, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(files.path().join("script.toml"), SCRIPT).unwrap();
    // The user of the image reads it.
    fs::set_permissions(files.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut built = Built::build(base.to_str().unwrap(), context.path());
    built.run(files.path());
    let server = built.url(1);
    let (status, created) =
        ask(&server, "POST", "/v1/sessions", Some(&json!({"message": {"text": "Who is there?"}})));
    assert_eq!(status, 201, "{created}");
    let session = format!("/v1/sessions/{}", created["id"].as_str().unwrap());
    let end = Instant::now() + PATIENCE;
    // The message may still be on its way while the session rests.
    let has_answered =
        |found: &serde_json::Value| found["state"] == "IDLE" && found["tokens"].as_u64() > Some(0);
    while !has_answered(&ask(&server, "GET", &session, None).1) {
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(50));
    }
    let users = stdout_of(&mut docker(&["exec", built.container(), "id", "-u"]));
    assert_eq!(users.trim(), "10001");
    stdout_of(&mut docker(&["stop", "--time", "30", built.container()]));
    let state = docker(&["inspect", "--format", "{{.State.ExitCode}}", built.container()]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&state.stdout).trim(), "0", "it ends by itself");
    stdout_of(&mut docker(&["start", built.container()]));
    let (status, history) = ask(&built.url(2), "GET", &format!("{session}/history"), None);
    assert_eq!(status, 200, "{history}");
    assert!(history.to_string().contains("Hello from the container."), "{history}");
}
