//! Runners of commands, and the flags that they get.

use super::*;

/// Returns the recognized format, or `-`.
fn recognized(command: &str) -> String {
    let package = r#"{ "scripts": {
        "test": "node --test", "unit": "vitest run", "jest": "jest --ci", "odd": "mocha", "python": "python -m unittest"
    } }"#;
    match recognize(command, Some(package)) {
        Some(RecognizedResults { format, report: None }) => format!("{format:?}"),
        Some(RecognizedResults { format, report: Some(report) }) => format!("{format:?} in {report}"),
        None => "-".to_owned(),
    }
}

#[test]
fn the_runner_of_a_command_is_recognized() {
    for (command, expected) in [
        ("cargo test", "Cargo"),
        ("cargo +1.90.0 t --workspace", "Cargo"),
        ("RUST_BACKTRACE=1 cargo test && cargo test --doc", "Cargo"),
        ("cargo fmt --check && cargo test", "Cargo"),
        ("cargo test -q", "-"),
        ("cargo test -- --list", "-"),
        ("cargo build", "-"),
        ("go test ./...", "Go"),
        ("go -C sub test ./...", "Go"),
        ("go vet ./...", "-"),
        ("pytest -q tests", "Pytest"),
        ("cd sub && uv run pytest", "Pytest"),
        ("python3 -m pytest", "Pytest"),
        ("poetry run python -m unittest discover -s tests", "Unittest"),
        ("python -m unittest -q", "-"),
        ("python calc.py --selftest", "-"),
        ("node --test tests/", "Tap"),
        ("node index.js", "-"),
        ("npx jest --ci", "Jest in .pintle-results.json"),
        ("yarn vitest run", "Vitest in .pintle-results.json"),
        ("npm test", "Tap"),
        ("npm t", "Tap"),
        ("npm run unit", "Vitest in .pintle-results.json"),
        ("pnpm run jest", "Jest in .pintle-results.json"),
        ("npm run odd", "-"),
        ("npm run python", "-"),
        ("npm run missing", "-"),
        ("ctest --test-dir build", "Ctest"),
        ("bats tests", "Tap"),
        ("./mvnw -q verify", "Junit in **/target/surefire-reports"),
        ("./gradlew check", "Junit in **/build/test-results/test"),
        ("bundle exec rspec", "Rspec in .pintle-results.json"),
        ("vendor/bin/phpunit tests", "Junit in .pintle-results.xml"),
        ("dotnet test", "Dotnet"),
        ("mix test", "Mix"),
        ("timeout 60 env CI=1 pytest", "Pytest"),
        ("pytest | tee log", "-"),
        ("pytest $(cat tests)", "-"),
        ("cargo test; pytest", "-"),
        ("jest a; jest b", "-"),
        ("make test", "-"),
        ("", "-"),
    ] {
        assert_eq!(recognized(command), expected, "{command}");
    }
}

#[test]
fn a_runner_gets_the_flags_that_it_lacks() {
    let script = "npm run unit && echo done";
    let adapted: String = [
        (ResultsFormat::Cargo, "cargo test", None),
        (ResultsFormat::Go, "go test ./... && go vet", None),
        (ResultsFormat::Go, "go test -v ./...", None),
        (ResultsFormat::Pytest, "pytest", None),
        (ResultsFormat::Unittest, "python3 -m unittest discover", None),
        (ResultsFormat::Tap, "node --test a; node --test --test-reporter=tap b", None),
        (ResultsFormat::Tap, "npm test", None),
        (ResultsFormat::Tap, "bats tests", None),
        (ResultsFormat::Tap, "make test", None),
        (ResultsFormat::Jest, "npx jest", Some(".pintle-results.json")),
        (ResultsFormat::Jest, "jest --json --outputFile=a.json", Some("a.json")),
        (ResultsFormat::Vitest, script, Some("it's.json")),
        (ResultsFormat::Rspec, "rspec", Some(".pintle-results.json")),
        (ResultsFormat::Junit, "phpunit tests", Some(".pintle-results.xml")),
        (ResultsFormat::Junit, "mvn test", Some("**/target/surefire-reports")),
        (ResultsFormat::Dotnet, "dotnet test", None),
        (ResultsFormat::Mix, "mix test --trace", None),
    ]
    .into_iter()
    .map(|(format, line, report)| format!("{}\n", format.command(line, report)))
    .collect();
    insta::assert_snapshot!(adapted, @r#"
    exec 2>&1
    cargo test
    exec 2>&1
    go test -json ./... && go vet
    exec 2>&1
    go test -v ./...
    exec 2>&1
    export PYTEST_ADDOPTS="${PYTEST_ADDOPTS:+$PYTEST_ADDOPTS }-v -rA"
    pytest
    exec 2>&1
    python3 -m unittest discover -v
    exec 2>&1
    node --test --test-reporter=tap a; node --test --test-reporter=tap b
    exec 2>&1
    export NODE_OPTIONS="${NODE_OPTIONS:+$NODE_OPTIONS }--test-reporter=tap"
    npm test
    exec 2>&1
    bats --tap tests
    exec 2>&1
    make test
    pintle_results="$PWD"/'.pintle-results.json'
    npx jest --json --outputFile="$pintle_results"
    jest --json --outputFile=a.json
    pintle_results="$PWD"/'it'\''s.json'
    npm run unit -- --reporter=default --reporter=json --outputFile.json="$pintle_results" && echo done
    pintle_results="$PWD"/'.pintle-results.json'
    export SPEC_OPTS="${SPEC_OPTS:+$SPEC_OPTS }--format progress --format json --out '$pintle_results'"
    rspec
    pintle_results="$PWD"/'.pintle-results.xml'
    phpunit --log-junit "$pintle_results" tests
    mvn test
    exec 2>&1
    dotnet test --logger "console;verbosity=normal"
    exec 2>&1
    mix test --trace
    "#);
}

#[test]
fn the_format_of_output_is_recognized_if_only_one_fits() {
    let format = |text: &str| ResultsFormat::recognize_output(text).and_then(|run| run.format);
    let tap = "TAP version 13\nok 1 - adds\n1..1\n";
    let go = "ok  \tsums\t0.003s\n?   \tsums/none\t[no test files]\n";
    let pytest = "tests/test_a.py::test_a PASSED [100%]\n====== 1 passed in 0.01s ======\n";
    assert_eq!(format(tap), Some(ResultsFormat::Tap));
    assert_eq!(format(go), Some(ResultsFormat::Go));
    assert_eq!(format(pytest), Some(ResultsFormat::Pytest));
    assert_eq!(format(&format!("{tap}{pytest}")), None);
    // The end is missing.
    assert_eq!(format("TAP version 13\n1..2\nok 1 - adds\n"), None);
    assert_eq!(format("all tests passed\n"), None);
}

#[test]
fn results_of_modules_are_told_apart() {
    let mut run = TestRun::default();
    for module in ["core: ", "app: "] {
        let text = r#"<testsuite name="sums" tests="1"><testcase classname="Sums" name="adds"/></testsuite>"#;
        run.merge(ResultsFormat::Junit.parse(text), module);
    }
    assert_eq!(run.tests.keys().collect::<Vec<_>>(), ["app: Sums::adds", "core: Sums::adds"]);
    run.merge(ResultsFormat::Junit.parse("<testsuite"), "other: ");
    assert!(run.problems[0].starts_with("the file is not XML"), "{run:?}");
}
