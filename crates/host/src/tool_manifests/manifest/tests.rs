use super::*;

/// Lines of a manifest without mistakes, whose lines the cases replace.
const LINES: [&str; 7] = [
    "name = 'count_words'",
    "description = 'Counts the words of a file.'",
    "program = './count.py'",
    "arguments = ['--json', '{file}', ['--depth', '{depth}']]",
    "effect = 'read'",
    "reads = ['{file}']",
    "parameters = { type = 'object', properties = { file = { type = 'string' }, depth = { type = 'integer' } } }",
];

fn parse(text: &str) -> Result<ToolManifest, Vec<Problem>> {
    ToolManifest::parse("m.toml", Path::new("/tools"), text)
}

/// Returns the manifest with another line at this number, from 1.
fn with_line(number: usize, line: &str) -> String {
    let mut lines = LINES;
    lines[number - 1] = line;
    lines.join("\n")
}

#[test]
fn a_manifest_is_read() {
    let text = format!(
        "{}\ntimeout = '2m'\nlimits = {{ output_chars = 100 }}\nenvironment = {{ LANG = 'C' }}\n",
        LINES.join("\n")
    );
    let manifest = parse(&text).unwrap();
    assert_eq!(manifest.definition.name, "count_words");
    assert_eq!((manifest.effect, manifest.program.as_str()), (Effect::Read, "/tools/count.py"));
    assert_eq!(manifest.programs, [Path::new("/tools/count.py")]);
    assert_eq!(manifest.timeout, Some(Duration::from_secs(120)));
    assert_eq!((manifest.limits.output_chars, manifest.limits.output_lines), (Some(100), None));
    assert_eq!(manifest.environment["LANG"], "C");
    let without = parse(&with_line(5, "")).unwrap();
    assert_eq!(without.effect, Effect::Execute, "the most cautious one is the default");
}

#[test]
fn files_of_the_directory_are_programs() {
    let cases = [
        ("program = 'python3'", "arguments = ['{manifest_dir}/count.py', '{file}']", "/tools/count.py"),
        ("program = 'bin/count'", "arguments = []", "/tools/bin/count"),
        ("program = '/tools/./count'", "arguments = []", "/tools/count"),
    ];
    for (program, arguments, expected) in cases {
        let text = with_line(3, program).replace(LINES[3], arguments);
        assert_eq!(parse(&text).unwrap().programs, [Path::new(expected)], "{text}");
    }
    assert!(parse(&with_line(3, "program = 'python3'")).unwrap().programs.is_empty());
}

#[test]
fn each_mistake_has_its_line_and_the_expectation() {
    let cases = [
        (1, "", "missing field `name`"),
        (1, "name = 'a b'", "a b"),
        (1, "name = 'mcp__a__b'", "does not begin with mcp__"),
        (1, "naem = 'x'", "unknown field `naem`, expected one of"),
        (2, "description = ' '", "`description`: expected a text for the model"),
        (3, "program = '../count.py'", "outside of the directory of the manifest; expected a path below it"),
        (3, "program = 'a/../../count.py'", "outside of the directory"),
        (3, "program = '/bin/sh'", "outside of the directory"),
        (3, "program = '-x'", "`program`: expected the name or path of a program"),
        (3, "program = '{file}'", "expected a text without placeholders"),
        (4, "arguments = 'count {file}'", "expected a sequence"),
        (4, "arguments = [1]", "expected a text or an array of texts"),
        (4, "arguments = ['{fiel}']", "found the placeholder {fiel}, expected one of depth, file"),
        (4, "arguments = ['{']", "expected the name of an argument in braces"),
        (4, "arguments = ['{manifest_dir}/../x']", "without other placeholders and `..`"),
        (4, "arguments = ['{manifest_dir}/{file}']", "without other placeholders and `..`"),
        (4, "arguments = [\"a\\u0000\"]", "found a zero byte"),
        (5, "effect = 'reed'", "unknown variant `reed`, expected one of"),
        (5, "effect = 'write'", "`writes`: expected at least one path"),
        (5, "effect = 'network'", "`hosts`: expected at least one host"),
        (5, "hosts = ['api.example.org']", "`hosts`: expected the effect network"),
        (5, "effect = 'network'\nhosts = ['https://a']", "expected the name of a host"),
        (6, "reads = ['{manifest_dir}/x']", "expected a path in the workspace"),
        (6, "reads = ['']", "expected a path in the workspace"),
        (6, "writes = ['{file}']", "`writes`: expected the effect write or execute"),
        (6, "timeout = '25h'", "`timeout`: found `25h`, expected a time from 1ms to 24h"),
        (6, "limits = { output_lines = 0 }", "`limits`: expected numbers from 1 to"),
        (6, "environment = { 'A=B' = 'c' }", "`environment`: found `A=B`, expected the name"),
        (7, "parameters = { type = 'string' }", "object"),
        (
            7,
            "parameters = { type = 'object', properties = { file = { type = 7 }, depth = {} } }",
            "a JSON Schema",
        ),
        (7, "parameters = 'object'", "expected a map"),
    ];
    for (number, line, expected) in cases {
        let problems = parse(&with_line(number, line)).unwrap_err();
        let text: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(text.iter().any(|problem| problem.contains(expected)), "{line}: {text:?}");
        assert!(text.iter().all(|problem| problem.starts_with("m.toml: line ")), "{line}: {text:?}");
    }
}

#[test]
fn the_line_of_a_mistake_is_the_line_of_its_value() {
    let text = with_line(4, "arguments = [\n  'a',\n  '{fiel}',\n]").replace(LINES[5], "reads = ['{other}']");
    let problems = parse(&text).unwrap_err();
    let origins: Vec<&str> = problems.iter().map(|problem| problem.origin.as_str()).collect();
    assert_eq!(origins, ["m.toml: line 6", "m.toml: line 9"]);
    // A syntax error is one mistake.
    let problems = parse("name = 'a'\ndescription = \n").unwrap_err();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].origin, "m.toml: line 2");
}
