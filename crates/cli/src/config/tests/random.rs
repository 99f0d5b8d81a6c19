//! Random flags, files and variables. The seed is fixed.

use super::case::Case;

/// Values of keys, by name.
const KEYS: &[(&str, &[&str])] = &[
    ("provider", &["openai", "gemini", "openai-compatible"]),
    ("model", &["m", "n"]),
    ("base_url", &["http://h/v1", "http://g"]),
    ("reasoning_effort", &["low", "high"]),
    ("profile", &["p", "own.toml"]),
    ("timeout", &["9s", "7m"]),
    ("catalog", &["c.json"]),
    ("toolset", &["native", "spec"]),
    ("mode", &["plan", "ask", "edit", "auto"]),
    ("after_plan", &["ask", "edit", "auto"]),
    ("sandbox", &["auto", "full", "writes", "off"]),
    ("network", &["on", "off"]),
    ("confine", &["true", "false"]),
    ("read_before_write", &["true", "false"]),
    ("wait_approval", &["true", "false"]),
    ("max_turns", &["0", "3", "9"]),
    ("max_tool_rounds", &["0", "3", "9"]),
    ("compact_at", &["0", "50"]),
    ("theme", &["light"]),
];

/// Keys whose values are no strings in a file.
const BARE: &[&str] =
    &["confine", "read_before_write", "wait_approval", "max_turns", "max_tool_rounds", "compact_at"];

/// Flags that may be typed together.
const FLAGS: &[&[&str]] = &[
    &["--provider=openai", "--provider=scripted", "--provider=gemini"],
    &["--model=x"],
    &["--base-url=http://x"],
    &["--script=/s.toml"],
    &["--dialect=gemini"],
    &["--profile=p", "--profile=q.toml"],
    &["--reasoning-effort=medium"],
    &["--timeout=1m"],
    &["--catalog=x.json"],
    &["--env=docker:box", "--env=local"],
    &["--dir=/x"],
    &["--toolset=spec", "--toolset=native"],
    &["--mode=plan", "--mode=ask", "--mode=edit", "--mode=auto"],
    &["--after-plan=ask", "--after-plan=auto"],
    &["--sandbox=full", "--sandbox=auto", "--sandbox=writes", "--no-sandbox"],
    &["--network=on", "--network=off"],
    &["--confine"],
    &["--read-before-write"],
    &["--wait-approval"],
    &["--max-turns=0", "--max-turns=5"],
    &["--max-tool-rounds=0", "--max-tool-rounds=5"],
    &["--compact-at=0", "--compact-at=70"],
    &["--deny=shell"],
    &["--allow=read_file"],
    &["--max-tokens=5", "--budget=day.cost=3"],
    &["--at-limit=ask"],
    &["--unknown-price=ask"],
];

/// Flags that a session may remember together.
const REMEMBERED: &[&[&str]] = &[
    &["--provider=anthropic", "--provider=scripted", "--profile=p", "--profile=/w/q.toml"],
    &["--model=r"],
    &["--base-url=https://r/v1", "--base-url=https://me:secret@r/v1?key=k"],
    &["--script=/r.toml"],
    &["--reasoning-effort=low"],
    &["--catalog=/r.json"],
    &["--env=docker:kept", "--env=ssh:me@box"],
    &["--dir=/r"],
    &["--toolset=spec"],
    &["--mode=plan", "--mode=ask", "--mode=edit", "--mode=auto"],
    &["--after-plan=ask", "--after-plan=auto"],
    &["--wait-approval"],
    &["--sandbox=full", "--sandbox=writes", "--no-sandbox"],
    &["--network=on", "--network=off"],
    &["--confine"],
    &["--read-before-write"],
    &["--deny=@write"],
    &["--allow=shell(ls)"],
];

/// Variables of providers.
const VARIABLES: &[(&str, &str)] = &[
    ("OPENAI_BASE_URL", "http://o"),
    ("GEMINI_BASE_URL", "http://g"),
    ("ANTHROPIC_BASE_URL", "http://a"),
    ("ANTHROPIC_API_KEY", "k"),
    ("GEMINI_API_KEY", "k"),
];

/// Generator of pseudorandom cases.
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    /// Returns a number below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        // Xorshift.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    /// Returns one of each of some groups, each of which is chosen in one of `rarity` cases.
    fn some<T: Copy>(&mut self, groups: &[&[T]], rarity: usize) -> Vec<T> {
        let mut chosen = Vec::new();
        for group in groups {
            if self.below(rarity) == 0 {
                chosen.push(group[self.below(group.len())]);
            }
        }
        chosen
    }

    /// Returns a case with flags and remembered flags.
    pub(super) fn flags(&mut self) -> Case {
        let mut case = Case { flags: self.some(FLAGS, 6).join(" "), ..Case::default() };
        if self.below(2) == 0 {
            for flag in self.some(REMEMBERED, 4) {
                let (name, value) =
                    flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
                let value = value.map(str::to_owned).into_iter().collect();
                case.remembered.insert(name.trim_start_matches('-').to_owned(), value);
            }
        }
        case
    }

    /// Returns the case with files and variables.
    pub(super) fn with_configuration(&mut self, flags: &Case) -> Case {
        let mut case = flags.clone();
        case.user = format!("{}[profiles.p]\n{}", self.keys(4, true), self.keys(5, false));
        case.project = format!("{}[profiles.p]\n{}", self.keys(4, true), self.keys(6, false));
        case.untrusted = self.below(3) == 0;
        for (key, values) in KEYS {
            if self.below(10) == 0 {
                let value = values[self.below(values.len())];
                case.variables.insert(format!("PINTLE_{}", key.to_uppercase()), value.to_owned());
            }
        }
        for (name, value) in VARIABLES {
            if self.below(5) == 0 {
                case.variables.insert((*name).to_owned(), (*value).to_owned());
            }
        }
        case
    }

    /// Returns lines of a file.
    fn keys(&mut self, rarity: usize, has_profile: bool) -> String {
        let mut lines = String::new();
        for (key, values) in KEYS {
            if self.below(rarity) == 0 && (has_profile || *key != "profile") {
                let value = values[self.below(values.len())];
                let is_bare = BARE.contains(key);
                lines.push_str(&if is_bare {
                    format!("{key} = {value}\n")
                } else {
                    format!("{key} = \"{value}\"\n")
                });
            }
        }
        lines
    }
}
