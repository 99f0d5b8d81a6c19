//! Real builds in the sandbox, with the dependencies in the caches of the user and no network.

use std::{cell::Cell, path::Path, process::Stdio, time::Duration};

use super::*;
use crate::WriteSwitch;

const BOTH: [SandboxLevel; 2] = [SandboxLevel::Full, SandboxLevel::Writes];

/// Longest build.
const LONG: Duration = Duration::from_secs(60);

/// A user with caches of their own, and a project.
struct Project {
    harness: Harness,
    /// Variables of the user.
    user: Vec<(String, std::ffi::OsString)>,
    /// Number of copies of the project.
    copies: Cell<usize>,
}

impl Project {
    fn new() -> Self {
        let harness = Harness::new();
        for directory in ["home", "state", "temporary"] {
            fs::create_dir(harness.at("").join(directory)).unwrap();
        }
        let user = vec![("HOME".to_owned(), harness.at("home").into_os_string())];
        Self { harness, user, copies: Cell::default() }
    }

    fn variables(&self) -> impl Iterator<Item = (std::ffi::OsString, std::ffi::OsString)> {
        // Toolchains of rustup are not in the home directory of the test.
        let rustup = std::env::var_os("RUSTUP_HOME")
            .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".rustup").into_os_string()));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let user = self.user.iter().map(|(name, value)| (name.into(), value.clone()));
        let all = user.chain([("PATH".into(), path), ("RUSTUP_HOME".into(), rustup.unwrap_or_default())]);
        all.collect::<Vec<_>>().into_iter()
    }

    /// Runs a line as the user, outside of any sandbox.
    fn outside(&self, line: &str) -> bool {
        let mut command = std::process::Command::new("/bin/bash");
        let command = command.args(["-c", line]).current_dir(self.harness.at("root"));
        let output = command.env_clear().envs(self.variables()).stdin(Stdio::null()).output().unwrap();
        if !output.status.success() {
            println!("{line}: {}", String::from_utf8_lossy(&output.stderr));
        }
        output.status.success()
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.harness.at("").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Runs a line in the sandbox at both levels, in a copy of the project each.
    async fn inside(&self, line: &str) {
        for level in BOTH {
            if has_level(level) {
                let copy = self.copied();
                self.inside_at(level, &copy, line).await;
            }
        }
    }

    /// Runs a line in the sandbox at both levels, by the shell and by make, in a copy of the project each.
    async fn inside_and_by_make(&self, line: &str) {
        self.inside(line).await;
        self.by_make(line).await;
    }

    /// Runs a line in the sandbox at both levels by make, in a copy of the project each.
    async fn by_make(&self, line: &str) {
        for level in BOTH {
            if has_level(level) {
                let copy = self.copied();
                let rule = format!("all:\n\t{}\n", line.replace('$', "$$"));
                fs::write(copy.join("Makefile"), rule).unwrap();
                self.inside_at(level, &copy, "make").await;
            }
        }
    }

    fn copied(&self) -> PathBuf {
        let number = self.copies.replace(self.copies.get() + 1);
        assert!(self.outside(&format!("mkdir copy-{number} && cp -r project/. copy-{number}")));
        self.harness.at("root").join(format!("copy-{number}"))
    }

    async fn inside_at(&self, level: SandboxLevel, project: &Path, line: &str) {
        let caches = self.harness.at("state").join(project.file_name().unwrap());
        let caches = ProjectCaches::create(caches, self.variables()).await.unwrap();
        let mut builder = LocalEnvironment::builder(project);
        for (name, value) in self.variables() {
            builder = builder.with_variable(name, value);
        }
        let before = listing(&self.harness.at("home"));
        let temporary = self.harness.at("temporary");
        let environment = SandboxedEnvironment::new(builder.build().unwrap())
            .with_level(level)
            .with_writable(project)
            .with_caches(caches, temporary.join("copies"), &WriteSwitch::new(true))
            .with_temporary(temporary);
        environment.initialize().await.unwrap();
        let request = ExecRequest::new(line).with_timeout(LONG);
        let result = environment.exec_command(request).await.unwrap();
        assert!(result.success(), "{level}: {:?}", result.output.to_text_lossy());
        environment.cleanup().await.unwrap();
        assert_eq!(listing(&self.harness.at("home")), before, "{level}: the user's caches are unchanged");
    }
}

/// Returns all paths below a directory with their sizes.
fn listing(directory: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let metadata = entry.metadata().unwrap();
        if metadata.is_dir() {
            found.extend(listing(&entry.path()));
        }
        found.push((entry.path(), metadata.len()));
    }
    found.sort();
    found
}

/// Returns cargo's directory of the user, and the version of a crate that it has: this crate is built with `cfg-if`.
fn cargo_home() -> (PathBuf, String) {
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let cargo_home = std::env::var_os("CARGO_HOME").map_or(home.join(".cargo"), PathBuf::from);
    let crates = fs::read_dir(cargo_home.join("registry/src")).into_iter().flatten().flatten();
    let mut crates = crates.filter_map(|index| fs::read_dir(index.path()).ok()).flatten().flatten();
    let version = crates.find_map(|one| Some(one.file_name().to_str()?.strip_prefix("cfg-if-")?.to_owned()));
    (cargo_home, version.unwrap())
}

fn write_crate(project: &Project, version: &str) {
    project.write(
        "root/project/Cargo.toml",
        &format!("[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\ncfg-if = \"={version}\"\n[workspace]\n"),
    );
    project.write("root/project/src/main.rs", "cfg_if::cfg_if! { if #[cfg(unix)] { fn main() {} } }\n");
}

#[tokio::test]
async fn cargo_builds_offline_with_the_crates_of_the_user() {
    let mut project = Project::new();
    let (cargo_home, version) = cargo_home();
    // The user's own cache: what it has must suffice, and must not change.
    project.user.push(("CARGO_HOME".to_owned(), cargo_home.into_os_string()));
    write_crate(&project, &version);
    project.inside_and_by_make("cargo run --offline && test ! -e $CARGO_HOME/credentials.toml").await;
}

/// The user does not have the crate, and the index cannot be read.
#[tokio::test]
async fn cargo_does_not_repeat_requests_without_network() {
    let mut project = Project::new();
    let (cargo_home, version) = cargo_home();
    project.user.push(("CARGO_HOME".to_owned(), cargo_home.into_os_string()));
    write_crate(&project, &version);
    project.inside("cargo run").await;
    let add = "! cargo add pintle-missing-crate 2>errors && cat errors && \
               ! grep -qi 'network error\\|tries remaining\\|resolve host' errors";
    project.inside(add).await;
}

/// As after cargo has removed sources that were not used for a month.
#[tokio::test]
async fn cargo_unpacks_crates_that_the_user_has_as_archives() {
    let project = Project::new();
    let (cargo_home, version) = cargo_home();
    let registry = cargo_home.join("registry").display().to_string();
    let copy = format!(
        "for index in '{registry}'/index/*; do name=${{index##*/}}; own=../home/.cargo/registry
           test -d \"$index/.cache\" || continue
           mkdir -p $own/index/$name/.cache/cf $own/cache/$name && cp $index/config.json $own/index/$name &&
           cp -r $index/.cache/cf/g- $own/index/$name/.cache/cf &&
           cp '{registry}'/cache/$name/cfg-if-{version}.crate $own/cache/$name
         done; test -d ../home/.cargo/registry/cache"
    );
    assert!(project.outside(&copy));
    write_crate(&project, &version);
    project.inside("cargo run --offline").await;
}

#[tokio::test]
async fn go_builds_offline_with_the_modules_of_the_user() {
    if !pintle_test_conditions::GO.is_present() {
        return;
    }
    let project = Project::new();
    // A module in the form in which the user's cache has what was once fetched.
    let proxy = "home/go/pkg/mod/cache/download/example.com/dep/@v";
    project.write(&format!("{proxy}/v1.0.0.mod"), "module example.com/dep\n");
    project
        .write(&format!("{proxy}/v1.0.0.info"), "{\"Version\":\"v1.0.0\",\"Time\":\"2020-01-01T00:00:00Z\"}");
    project.write(&format!("{proxy}/list"), "v1.0.0\n");
    let files = "{'go.mod': 'module example.com/dep\\n', 'dep.go': 'package dep\\n\\nfunc Answer() int { return 42 }\\n'}";
    let zip = project.harness.at("").join(proxy).join("v1.0.0.zip");
    let pack = format!(
        "python3 -c \"import zipfile; zip = zipfile.ZipFile('{}', 'w'); \
         [zip.writestr('example.com/dep@v1.0.0/' + name, text) for name, text in {files}.items()]; zip.close()\"",
        zip.display()
    );
    assert!(project.outside(&pack));
    project.write(
        "root/project/go.mod",
        "module example.com/app\n\ngo 1.18\n\nrequire example.com/dep v1.0.0\n",
    );
    project.write(
        "root/project/main.go",
        "package main\n\nimport \"example.com/dep\"\n\nfunc main() { if dep.Answer() != 42 { panic(0) } }\n",
    );
    // The user has built it once, so that the sums are there; the sum database needs the network.
    let build = "cd project && GOPROXY=file://$HOME/go/pkg/mod/cache/download GONOSUMDB=* GOFLAGS=-modcacherw \
                 go mod tidy";
    assert!(project.outside(build));
    project.inside_and_by_make("go build -o app . && ./app").await;
    project.inside("! go get example.com/other 2>errors && ! grep -q 'dial tcp' errors").await;
}

#[tokio::test]
async fn npm_installs_offline_with_the_packages_of_the_user() {
    if !pintle_test_conditions::NODE.is_present() {
        return;
    }
    let project = Project::new();
    project.write(
        "root/dep/package.json",
        "{\"name\":\"pintle-dep\",\"version\":\"1.0.0\",\"main\":\"index.js\"}",
    );
    project.write("root/dep/index.js", "module.exports = 42;");
    // Packed and cached by the user.
    assert!(project.outside("cd dep && npm pack --silent && npm cache add ./pintle-dep-1.0.0.tgz"));
    project.write(
        "root/project/package.json",
        "{\"name\":\"app\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"node test.js\"},\
         \"dependencies\":{\"pintle-dep\":\"1.0.0\"}}",
    );
    // As a project has it whose packages the user has installed before: only the cache has them.
    let lock = "node -e '
        const bytes = require(\"fs\").readFileSync(\"dep/pintle-dep-1.0.0.tgz\");
        const integrity = \"sha512-\" + require(\"crypto\").createHash(\"sha512\").update(bytes).digest(\"base64\");
        const resolved = \"https://registry.npmjs.org/pintle-dep/-/pintle-dep-1.0.0.tgz\";
        const root = { name: \"app\", version: \"1.0.0\", dependencies: { \"pintle-dep\": \"1.0.0\" } };
        const packages = { \"\": root, \"node_modules/pintle-dep\": { version: \"1.0.0\", resolved, integrity } };
        console.log(JSON.stringify({ name: \"app\", version: \"1.0.0\", lockfileVersion: 3, requires: true, packages }));
        ' >project/package-lock.json && rm -r dep";
    assert!(project.outside(lock));
    project.write("root/project/test.js", "process.exit(require('pintle-dep') === 42 ? 0 : 1);");
    let install = "npm ci --no-audit --no-fund && npm test";
    project.inside(install).await;
    // By default, the builds of cargo and Go cover make.
    if pintle_test_conditions::is_full() {
        project.by_make(install).await;
    }
    // An archive of the project is stored in the cache when it is installed.
    project.write("root/local/package.json", "{\"name\":\"pintle-local\",\"version\":\"1.0.0\"}");
    assert!(
        project.outside(
            "cd local && npm pack --silent && mv pintle-local-1.0.0.tgz ../project && rm -r ../local"
        )
    );
    let local = format!("{install} && npm install --no-audit --no-fund ./pintle-local-1.0.0.tgz");
    project.inside(&local).await;
    // Deeper in the project, the cache of the user is linked as a whole.
    let below = "rm project/pintle-local-1.0.0.tgz && mkdir -p other/a/b && mv project other/a/b/app && mv other project";
    assert!(project.outside(below));
    project.inside(&format!("cd a/b/app && {install} && test -L $npm_config_cache/_cacache/index-v5")).await;
}

#[tokio::test]
async fn pip_installs_from_a_directory() {
    if !pintle_test_conditions::VENV.is_present() {
        return;
    }
    let project = Project::new();
    let wheel = [
        ("pintle_dep/__init__.py", "ANSWER = 42\n"),
        ("pintle_dep-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: pintle-dep\nVersion: 1.0\n"),
        ("pintle_dep-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
        (
            "pintle_dep-1.0.dist-info/RECORD",
            "pintle_dep/__init__.py,,\npintle_dep-1.0.dist-info/METADATA,,\n\
             pintle_dep-1.0.dist-info/WHEEL,,\npintle_dep-1.0.dist-info/RECORD,,\n",
        ),
    ];
    for (path, content) in wheel {
        project.write(&format!("root/wheel/{path}"), content);
    }
    let pack = "mkdir -p project/wheels && cd wheel && \
                python3 -m zipfile -c ../project/wheels/pintle_dep-1.0-py3-none-any.whl *";
    assert!(project.outside(pack));
    let line = "python3 -m venv venv && venv/bin/pip install --no-index --find-links wheels pintle-dep && \
                venv/bin/python -c 'import pintle_dep; assert pintle_dep.ANSWER == 42'";
    project.inside(line).await;
    // By default, the builds of cargo and Go cover make.
    if pintle_test_conditions::is_full() {
        project.by_make(line).await;
    }
}

#[tokio::test]
async fn make_compiles_and_runs() {
    let project = Project::new();
    project.write("root/project/Makefile", "test: app\n\t./app\napp: app.c\n\tcc -o $@ $<\n");
    project.write("root/project/app.c", "int main(void) { return 0; }\n");
    project.inside("make test").await;
}

const GIT: &str = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b && \
    git init -q repository && cd repository && echo x >file && git add file && git commit -qm one && \
    echo y >file && git diff | grep -q '^+y' && git status --short | grep -q ' M file' && \
    git commit -qam two && test $(git log --oneline | wc -l) = 2 && git checkout -qb other && \
    git merge -q --no-edit HEAD~1 && git stash list && git gc -q && git fsck";

#[tokio::test]
async fn git_works_in_a_new_repository() {
    let project = Project::new();
    project.write("root/project/README", "");
    project.inside(GIT).await;
}

#[tokio::test]
async fn git_commits_with_protected_settings() {
    let project = Project::new();
    let harness = &project.harness;
    assert!(project.outside("git init -q . && rm -rf .git/info"));
    let Some(environment) = harness.at_level(SandboxLevel::Full).await else { return };
    let environment = [".git/config", ".git/hooks", ".git/info"]
        .into_iter()
        .fold(environment, SandboxedEnvironment::with_protected);
    environment.initialize().await.unwrap();
    let line = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b && \
        echo x >file && git add file && git commit -qm one && echo y >file && git commit -qam two && \
        git checkout -qb other && git tag one && git branch -qd master main 2>/dev/null; \
        test $(git log --oneline | wc -l) = 2 && test -z \"$(git status --short)\"";
    let result = run(&environment, line).await;
    assert!(result.success(), "{:?}", result.output.to_text_lossy());
    for line in [
        "git config user.name b",
        "git config core.fsmonitor ./run",
        "echo x >.git/hooks/pre-commit",
        "mkdir .git/info",
        "git worktree add -q ../tree",
    ] {
        assert!(!run(&environment, line).await.success(), "{line}");
    }
    environment.cleanup().await.unwrap();
    assert!(!harness.at("root").join(".git/info").exists());
}
