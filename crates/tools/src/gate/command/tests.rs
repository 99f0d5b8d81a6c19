use serde_json::json;

use super::*;
use crate::gate::Permission;

/// Rules by command. Those that deny precede those that ask, and these those that allow.
#[derive(Debug)]
struct CommandRules {
    rules: Vec<(CommandPattern, Permission)>,
    otherwise: Permission,
}

impl CommandRules {
    fn new() -> Self {
        Self { rules: Vec::new(), otherwise: Permission::Ask }
    }

    fn with(mut self, pattern: &str, permission: Permission) -> Self {
        self.rules.push((CommandPattern::parse(pattern).unwrap(), permission));
        self
    }

    /// Sets the permission of commands without a rule.
    fn otherwise(mut self, permission: Permission) -> Self {
        self.otherwise = permission;
        self
    }

    /// Returns the permission of a call, and the pattern that denies it or asks about it.
    fn judge(&self, arguments: &Value) -> (Permission, Option<(&CommandPattern, CommandMention)>) {
        let line = CommandLine::of_arguments(arguments);
        for permission in [Permission::Deny, Permission::Ask] {
            let mut mentions = self
                .patterns(permission)
                .filter_map(|pattern| line.mention(pattern).map(|mention| (pattern, mention)));
            if let Some(found) = mentions.next() {
                return (permission, Some(found));
            }
        }
        let allowed: Vec<&CommandPattern> = self.patterns(Permission::Allow).collect();
        (if line.is_only(&allowed) { Permission::Allow } else { self.otherwise }, None)
    }

    fn patterns(&self, of: Permission) -> impl Iterator<Item = &CommandPattern> {
        self.rules.iter().filter(move |(_, permission)| *permission == of).map(|(pattern, _)| pattern)
    }
}

fn rules() -> CommandRules {
    let rules = [
        ("git status", Permission::Allow),
        ("git log *", Permission::Allow),
        ("cargo *", Permission::Allow),
        ("npm run test:*", Permission::Allow),
        ("rm *", Permission::Deny),
        ("git push *", Permission::Deny),
        ("cargo publish *", Permission::Ask),
    ];
    rules
        .into_iter()
        .fold(CommandRules::new(), |rules, (pattern, permission)| rules.with(pattern, permission))
}

/// Returns `ok`, `deny RULE`, `ask RULE`, or `ask` if no rule matches.
fn verdict(rules: &CommandRules, arguments: &Value) -> String {
    let (permission, found) = rules.judge(arguments);
    let rule = found.map(|(pattern, _)| format!(" {pattern}")).unwrap_or_default();
    match permission {
        Permission::Allow => "ok".to_owned(),
        Permission::Deny => format!("deny{rule}"),
        Permission::Ask => format!("ask{rule}"),
    }
}

#[test]
fn the_strictest_rule_that_matches_decides() {
    let cases = [
        ("git status", "ok"),
        ("git status -s", "ask"),
        ("git log", "ok"),
        ("git log --oneline -5", "ok"),
        ("cargo test && git status; git log | cargo fmt", "ok"),
        ("cargo test 2>&1", "ok"),
        ("npm run test:unit", "ok"),
        ("npm run tests", "ask"),
        ("ls", "ask"),
        ("cargo test; ls", "ask"),
        // A rule does not allow what the shell would interpret.
        ("cargo test > /etc/passwd", "ask"),
        ("cargo test $(ls)", "ask"),
        ("npm `ls`", "ask"),
        ("npm $X", "ask"),
        ("PATH=. cargo test", "ask"),
        ("cargo test & ls", "ask"),
        ("/evil/cargo test", "ask"),
        ("", "ask"),
        ("git log # it's\nls # it's", "ask"),
        ("git log # the last ones", "ok"),
        ("cargo run ~/x", "ask"),
        ("cat <<'E' | git log\n$(ls)\nE", "ask"),
        ("! git status", "ask"),
        ("time git status", "ask"),
        ("git() { ls; }; git log", "ask"),
        // It may be any subcommand.
        ("cargo `ls`", "ask cargo publish *"),
        ("cargo $X", "ask cargo publish *"),
        // A denial matches anywhere.
        ("rm -rf /", "deny rm *"),
        ("rm", "deny rm *"),
        ("/bin/rm x", "deny rm *"),
        ("cargo test && rm x", "deny rm *"),
        ("sudo -n rm x", "deny rm *"),
        ("find . | xargs rm", "deny rm *"),
        ("echo $(rm x)", "deny rm *"),
        ("echo `rm x`", "deny rm *"),
        ("(rm x)", "deny rm *"),
        ("X=1 rm x", "deny rm *"),
        ("if true; then rm x; fi", "deny rm *"),
        ("bash -c 'cd /; rm x'", "deny rm *"),
        ("bash -c \"sh -c 'rm x'\"", "deny rm *"),
        ("r\\m x", "deny rm *"),
        ("'rm' x", "deny rm *"),
        ("cargo test\nrm x", "deny rm *"),
        ("git push origin main", "deny git push *"),
        ("cargo publish", "ask cargo publish *"),
        ("cargo publish; rm x", "deny rm *"),
        ("rmdir x", "ask"),
        ("git log # it's\nrm x # it's", "deny rm *"),
        ("bash <<E\nrm x\nE", "deny rm *"),
        ("env X=1 rm x", "deny rm *"),
        ("eval 'rm x'", "deny rm *"),
        ("echo \"a $(rm x)\"", "deny rm *"),
        ("git status |& rm x", "deny rm *"),
        ("r''m x", "deny rm *"),
        ("git log \\\n; rm x", "deny rm *"),
    ];
    let rules = rules();
    for (line, expected) in cases {
        assert_eq!(verdict(&rules, &json!({"command": line})), expected, "{line}");
        assert_eq!(verdict(&rules, &json!({"cmd": line})), expected, "{line}");
        assert_eq!(verdict(&rules, &json!({"command": ["bash", "-lc", line]})), expected, "{line}");
    }
}

#[test]
fn a_denial_knows_the_spellings_of_a_command() {
    let only = CommandRules::new().with("git push *", Permission::Deny).otherwise(Permission::Allow);
    for line in [
        "git -C . push origin",
        "git --no-pager push",
        "git -c core.pager=cat push",
        "git --git-dir=.git push",
        "git --git-dir .git --work-tree . push",
        "git -p -C a -C b push origin main",
        "/usr/lib/git-core/git-push origin",
        "sudo -u me git -C . push",
        "timeout 5 nice -n 5 git --bare push",
        "echo push | xargs git",
        "xargs -n1 git -C .",
        "sudo xargs git",
        "env -S 'git push'",
        "env -S'git -C . push'",
        "env '--split-string=git push'",
        "git $(echo push)",
        "git `echo push` origin",
        "git $P",
        "git \"$P\" origin",
        "git -C . ${P}",
        "git pus?",
        "git${IFS}push",
        "git$IFS push",
        "{git,push}",
        "git {push,origin}",
        "$'git' push",
        "$\"git\" push",
        "git -c alias.p=push p",
        "git --config-env=a=B push",
        "bash <<<'git -C . push'",
        "python3 -c \"import os; os.system('git -C . push')\"",
        "cargo test || git -c a=b push",
        "find . -exec git push {} +",
        "cd x && (git -C y push)",
        "sh -c 'exec git \"$@\"' sh push",
        // Quotes, escapes and expansions.
        r"git $'\x70ush'",
        r"git $'pu\163h' origin",
        r"$'\u0067it' push",
        r"\git push",
        r"git pu\sh",
        "git pus{h,}",
        "git p{us,x}h",
        "git pus{h..h}",
        "{git,} push",
        "{sudo,git} push",
        "eval {git,push}",
        r"sh -c {git,x}\ push",
        "git -c {alias.p=push,x} p",
        "git {a,$X}",
        "git {a,pus{h,}}",
        // A shell that expands no braces pushes.
        "git -C {a,b} push",
        "git {-p,{-p,-p},push}",
        "git pus[h]",
        "git @(push)",
        "git \"$(echo push)\"",
        "git \"$(echo \"a b\")\" push",
        "git -C $(pwd) push",
        "git -C \"$(echo \"a b\")\" push",
        "git -C $X status",
        "git \"$X\" push --force",
        "git${IFS%??}push",
        "git ${X:-push}",
        "git \"${X[@]}\"",
        // A program that the shell computes.
        "~/bin/git push",
        "/usr/bin/gi? push",
        "$X push",
        "A=b sudo -u me \"$X\" push",
        "X=git; if true; then $X push; fi",
        "$X",
        "find . -name git -exec {} push \\;",
        // Redirections.
        "git >x push",
        "git </dev/null push",
        "git &>x push",
        "git >&2 push",
        "git 2>x push",
        "git {fd}>x push",
        // Programs of the shell.
        "command git push",
        "command -p git push",
        "builtin command git push",
        "exec -a x git push",
        "coproc git push",
        "coproc p { git push; }",
        r"eval git pu\\sh",
        "eval \"$X\"",
        "eval 'git pu''sh'",
        "bash -c \"$X\"",
        "sudo bash -o pipefail -ec \"$X\"",
        "sh <<<\"$X\"",
        "sh <<<git\\ push",
        "sh <<E\nit's\ngit push\nE",
        "cat <<E | sh\n$X push\nE",
        "cat <<E\n$(git push)\nE",
        "cat <<'E'\nit's\nE\ngit 'push'",
        "cat <(git push)",
        "cat >(git push)",
        "su -c'git push'",
        "env -vS'git push'",
        "xargs -I% git %",
        "xargs -I % sh -c 'git %'",
        // Functions and aliases.
        "p() { git \"$@\"; }; p push",
        "function p { git push; }; p",
        "alias g=git; g push",
        "alias p='git push'; p",
        "git -c ALIAS.p=push p",
        "git -c \"$X\" p",
        "git --config-env=alias.p=X p",
        "git --config-env alias.p=X p",
        "git -c include.path=x p",
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0=push git p",
        "git config alias.p push && git p",
        "git -c core.pager='git push' log",
        // Substitutions with other grammar in them.
        "echo $(case x in a) git push;; *) b;; esac)",
        "case $x in a) git push;; esac",
        "[[ a ]] && git push",
        "(( 1 )) && git push",
        "{ a; } && git push",
        "git -C a} push",
        "git -C { push",
    ] {
        assert_eq!(verdict(&only, &json!({"command": line})), "deny git push *", "{line}");
    }
    let rules = rules().otherwise(Permission::Allow);
    for (line, expected) in [
        ("cargo +nightly publish", "ask cargo publish *"),
        ("cargo --color never publish", "ask cargo publish *"),
        // The directory of another command.
        ("git -C push status", "ok"),
        ("git -c push log", "ok"),
        ("git log -- $X", "ok"),
        ("git status; echo push", "ok"),
        ("git -C \"$X\" log", "ok"),
        ("git -C \"$(pwd)\" log $X", "ok"),
        ("git log >push", "ok"),
        ("git log $'\\x70ush'", "ok"),
        ("git status a{b,c}", "ok"),
        ("git st{ash,atus}", "ok"),
        ("git {log,-1}", "ok"),
        ("git -C {a,log}", "ok"),
        // It runs `git gi push`.
        ("gi{t,} push", "ok"),
        ("cargo {test,build} {a,b}{c,d}", "ok"),
        ("git -c alias.p=push status", "ok"),
        ("$HOME/bin/tool push", "ok"),
        ("X=$(pwd)/$Y; export Z=$X/$Y; ls -l $X \"$Y\" *", "ok"),
        ("for x in *; do echo \"$x\" push; done", "ok"),
        ("case $x in $y|*) echo push;; (z*) ls;; esac", "ok"),
        ("if [[ -n $x && $y == z* ]] || [ $x ]; then ls; fi", "ok"),
        ("(( $i > 1 && $j )); x=(a $y); echo $(( $i + 1 )) ${x[$i]} ${y:-$z}", "ok"),
        ("cat >x <<E\n$TITLE push\n* an item\nE\nls", "ok"),
        ("cat <<<\"$X push\"", "ok"),
        ("echo '{\"a\": {\"b\": \"c } $d\"}}' \"$x push\"", "ok"),
        ("find . -name x -exec ls {} +", "ok"),
        ("sudo ls $X; timeout 5 ls \"$X\"", "ok"),
    ] {
        assert_eq!(verdict(&rules, &json!({"command": line})), expected, "{line}");
    }
}

#[test]
fn a_denial_leaves_out_texts_that_nothing_runs() {
    let only = CommandRules::new().with("git push *", Permission::Deny).otherwise(Permission::Allow);
    for line in [
        "git commit -m \"remember to git push\"",
        "git -C dir commit -am 'git push' && cargo test | tail -5",
        "git tag -m 'git push' v1; git log --grep 'git push' | head -1",
        "git commit -F - <<'E'\n`git push` is next\nE",
        "git commit -F - <<E\ngit push\nE\ncargo test",
        "git commit -m \"$(cat <<'E'\nRemember to git push\nE\n)\" && git status",
        "grep -r \"git push\" . | grep -v x | wc -l",
        "rg -n 'git push' src >found; cat found",
        "echo git push",
        "echo git push >&2",
        "echo \"$(echo git push)\"",
        "printf 'git push'",
        "cat >notes.md <<'E'\ngit push\nE",
        "cat <<<'git push' | sed 's/git push/git pull/'",
        "if ! grep -q 'git push' x; then echo 'no git push'; fi",
        "[ \"$x\" = 'git push' ]",
        "diff <(git push-x) x; echo git push",
        "gh pr create --title x --body 'after git push'",
    ] {
        assert_eq!(verdict(&only, &json!({"command": line})), "ok", "{line}");
    }
    let commit = json!({"command": ["git", "commit", "-m", "git push"]});
    assert_eq!(verdict(&only, &commit), "ok");
    for line in [
        "echo git push | sh",
        "echo git push |& sh",
        "echo git push |\n# as a script\nsh",
        "echo git push | cat | bash -s",
        "echo git push | xargs",
        "echo git push | tee x",
        "echo git push | ./x",
        "echo git push || true; echo git push | python3",
        "(echo git push) | sh",
        "{ echo git push; } | sh",
        "for x in a; do echo git push; done | sh",
        "echo git push | while read x; do $x; done",
        "echo git push >x; sh x",
        "echo git push | cat >x && ./x",
        "cat >x <<'E'\ngit push\nE\nmake",
        "echo git push >.git/hooks/pre-commit; git commit -m x",
        "echo git push > >(sh)",
        "sh <(echo git push)",
        "sh < <(echo git push)",
        "sh -c \"$(echo git push)\"",
        "eval \"$(cat <<'E'\ngit push\nE\n)\"",
        "echo \"$(echo git push)\" | sh",
        "x=$(echo git push); eval $x",
        "x='git push'",
        "cat <<E\n$(git push)\nE",
        "git commit -F - <<E\n`git push`\nE",
        "git commit -m \"$(git push)\"",
        "cat <<'E' | sh\ngit push\nE",
        "cat <<'E' | python3\ngit push\nE",
        "exec 3> >(sh); echo git push >&3",
        "echo() { sh -c \"$*\"; }; echo git push",
        "alias echo=command\necho git push",
        "export PATH=.:$PATH; echo git push",
        "PATH=. echo git push",
        "./echo git push",
        "sudo echo git push",
        "printf -v x 'git push'",
        "rg --pre 'git push' x",
        "rg $X 'git push' x",
        "find . $X git push \\;",
        "sed '1e git push' x",
        "awk 'BEGIN { system(\"git push\") }'",
        "git rebase -x 'git push' main",
        "git submodule foreach git push",
        "foo git push",
    ] {
        assert_eq!(verdict(&only, &json!({"command": line})), "deny git push *", "{line}");
    }
    let deep = format!("echo {} echo $( git push)", "$(echo ".repeat(250));
    assert_eq!(verdict(&only, &json!({"command": deep})), "deny git push *");
    for arguments in
        [json!({"chars": "echo git push\n"}), json!({"command": ["./sh", "-c", "echo git push"]})]
    {
        assert_eq!(verdict(&only, &arguments), "deny git push *", "{arguments}");
    }
}

#[test]
fn a_denial_says_how_the_line_contains_the_command() {
    let rules = rules();
    for line in ["git push", "sudo git push", "foo git push; git push"] {
        let (permission, found) = rules.judge(&json!({"command": line}));
        assert_eq!(found.unwrap().1.explanation(permission), None, "{line}");
    }
    for (line, expected) in [
        ("foo git push", "an argument of `foo` contains the denied command, and `foo` may run it"),
        ("foo 'git push'", "an argument of `foo` contains the denied command, and `foo` may run it"),
        ("foo <<E\ngit push\nE", "the input of `foo` contains the denied command, and `foo` may run it"),
        (
            "echo git push | sh",
            "of `echo` contains the denied command, and another command of the line may run the output",
        ),
        ("x='git push'", "a variable contains the denied command"),
        ("$X foo", "the name of the program is computed by the shell, and may be the denied command"),
        ("git -C $X log", "the shell computes words, which may make it the denied command"),
        ("foo cargo publish", "an argument of `foo` contains the command of the rule"),
    ] {
        let (permission, found) = rules.judge(&json!({"command": line}));
        let explanation = found.unwrap().1.explanation(permission).unwrap();
        assert!(explanation.contains(expected), "{line}: {explanation}");
    }
}

/// Each line has 100 KiB of a construct that may be costly.
#[test]
fn a_hostile_line_is_judged() {
    let denied = CommandPattern::parse("git push *").unwrap();
    let wild = CommandPattern::parse("* --force").unwrap();
    for part in [
        "{",
        "[",
        "$(",
        "\"$(",
        "`",
        "${",
        "`${",
        "((",
        "{a,",
        "{a}",
        "{a,b}",
        "{a,b} ",
        "git {a,b}{c,d}{e,f}{g,h}{i,j} ",
        "a ",
        "git ",
        "$X ",
        "$X/y ",
        "do ",
        "! ",
        "! { ",
        "git $X ",
        "xargs {} ",
        "'a b' ",
        "a;",
        "git a;",
        "echo x|",
        "foo<<<a;",
        "foo <<E\n",
        "<<E ",
        "eval ",
        "sh -c 'x y' ",
        "alias a='b c' ",
        "case x in ",
        "env go ",
        "${a}",
        "# \n",
        "\\\\\"",
    ] {
        let line = format!("{}; git push", part.repeat(100 * 1024 / part.len()));
        let parsed = CommandLine::parse(&line);
        let _launcher = parsed.launcher();
        let _wild = parsed.mention(&wild);
        // What follows a comment or an open quote is no command.
        if !part.contains(['#', '"']) {
            assert!(parsed.mentions(&denied), "{part}");
        }
    }
    let many = format!("git push {}", "a ".repeat(50 * 1024));
    assert_eq!(CommandLine::parse(&many).mention(&denied), Some(CommandMention::Command));
    let costly = CommandLine::parse(&"git ".repeat(25 * 1024));
    assert_eq!(costly.mention(&denied), Some(CommandMention::TooComplex));
}

#[test]
fn what_is_allowed_writes_and_runs_nothing_more() {
    let rules =
        ["git log *", "find *", "sort *", "rg *", "sort -o out *", "tar -xf *", "git diff --output=d *"]
            .into_iter()
            .fold(CommandRules::new(), |rules, pattern| rules.with(pattern, Permission::Allow));
    for (line, expected) in [
        ("git log --stat -5 --oneline", "ok"),
        ("git log --output=/etc/profile", "ask"),
        ("git log --outp=x", "ask"),
        ("git log --ext-diff", "ask"),
        ("find . -name '*.rs' -print", "ok"),
        ("find . -delete", "ask"),
        ("find . -exec rm {} +", "ask"),
        ("find . -fprintf x y", "ask"),
        ("sort -u x", "ok"),
        ("sort -uo x y", "ask"),
        ("sort -o out x", "ok"),
        ("sort --o=x y", "ask"),
        ("sort -o other x", "ask"),
        ("sort --compress-program=./x y", "ask"),
        ("rg --pretty x", "ok"),
        ("rg --pre ./x y", "ask"),
        ("tar -xf x.tar", "ok"),
        ("tar -xf x.tar --to-command=./x", "ask"),
        ("git diff --output=d HEAD", "ok"),
    ] {
        assert_eq!(verdict(&rules, &json!({"command": line})), expected, "{line}");
    }
}

#[test]
fn a_command_without_a_rule_has_the_default() {
    let cases = [
        (json!({"command": "ls"}), "ok"),
        (json!({"command": "rm x"}), "deny rm *"),
        (json!({"command": ["ls", "a;rm"]}), "deny rm *"),
        (json!({"command": ["rm", "x"]}), "deny rm *"),
        (json!({"command": 1}), "ok"),
        (json!({"command": "ls", "cmd": "rm x"}), "deny rm *"),
        (json!({"session": 1, "chars": "rm x\n"}), "deny rm *"),
        (json!({}), "ok"),
    ];
    let open = rules().otherwise(Permission::Allow);
    let closed = CommandRules::new().with("*", Permission::Allow).otherwise(Permission::Deny);
    for (arguments, expected) in cases {
        assert_eq!(verdict(&open, &arguments), expected, "{arguments}");
    }
    assert_eq!(verdict(&closed, &json!({"command": "anything at all"})), "ok");
    assert_eq!(verdict(&closed, &json!({"command": "ls", "cmd": "ls"})), "deny", "which one runs?");
    assert_eq!(verdict(&closed, &json!({"command": ["/tmp/bash", "-c", "ls"]})), "deny");
    assert_eq!(verdict(&closed, &json!({"chars": "ls\n"})), "deny", "not a known command");
    assert_eq!(verdict(&closed, &json!({"command": "echo $X"})), "deny");
}
