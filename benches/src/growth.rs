//! How the processor time of sessions grows, with the loop by hand beside it.

use std::sync::Arc;

use crate::curve::{Curve, Line};
use crate::lab::{self, Moments, Note};
use crate::measure::{Moment, Spread, milliseconds};
use crate::plan::{PARENT, Plan};
use crate::report::Report;
use crate::round::{Bench, Setup, Trip, work, work_by_hand};

/// Measures one curve.
type Draw = fn(&Bench) -> Curve;

const CURVES: [(&str, Draw); 6] = [
    ("rounds", rounds),
    ("history", history),
    ("tools", tools),
    ("calls", calls),
    ("sessions", sessions),
    ("subagents", subagents),
];

const ROUNDS: [usize; 11] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000];
const HISTORIES: [usize; 6] = [10_000, 100_000, 500_000, 2_000_000, 8_000_000, 20_000_000];
const TOOLS: [usize; 6] = [1, 5, 20, 80, 200, 500];
const CALLS: [usize; 7] = [1, 3, 8, 20, 50, 100, 200];
const SESSIONS: [usize; 6] = [1, 4, 16, 64, 250, 1_000];
const SUBAGENTS: [usize; 6] = [1, 3, 8, 20, 50, 100];

const OURS: &str = "Pintle";
const FLOOR: &str = "by hand";

/// How often each point is measured.
const REPEATS: usize = 3;

pub(crate) fn run(wanted: &str) -> Report {
    let bench = Bench::new();
    let wanted = CURVES.iter().filter(|(name, _)| name.contains(wanted));
    Report { curves: wanted.map(|(_, draw)| draw(&bench)).collect(), ..Report::default() }
}

fn rounds(bench: &Bench) -> Curve {
    let trip = Trip { tool: "note", rounds: 2_000 };
    let head = bench.head(Setup::default);
    let ours: Vec<_> = (0..REPEATS).map(|_| bench.subject(&bench.place(trip), Setup::default())).collect();
    let floors: Vec<_> = (0..REPEATS).map(|_| bench.floor(&head, &bench.place(trip))).collect();
    let line = |name, runs: &[Vec<Moment>]| {
        let point = |round: usize| {
            // Around the round, a tenth to both sides.
            let (from, to) = ((round - round.div_ceil(10)).max(1) - 1, (round + round / 10).min(trip.rounds));
            median(runs.iter().filter_map(|moments| each(moments.get(from)?, moments.get(to)?, to - from)))
        };
        Line { name, points: ROUNDS.into_iter().map(|round| (number(round), point(round))).collect() }
    };
    Curve {
        file: "growth-rounds",
        title: "CPU of a round, by its number",
        x: "round of the session",
        y: "µs of CPU",
        lines: vec![line(OURS, &ours), line(FLOOR, &floors)],
    }
}

fn history(bench: &Bench) -> Curve {
    let setup = |bytes| Setup { start: Some(lab::history(bytes)), ..Setup::default() };
    let lines = both(bench, &HISTORIES, 6, |bytes| (setup(bytes), 1));
    Curve {
        file: "growth-history",
        title: "CPU of a round, by the history that it sends",
        x: "bytes of history",
        y: "µs of CPU",
        lines,
    }
}

fn tools(bench: &Bench) -> Curve {
    let setup = |count| {
        let mut setup = Setup::default();
        let registry = &mut setup.profile.tool_registry;
        for index in 1..count {
            registry.register(Note::new(format!("note_{index}"))).expect("the tool is well formed");
        }
        setup
    };
    let lines = both(bench, &TOOLS, 20, |count| (setup(count), 1));
    Curve {
        file: "growth-tools",
        title: "CPU of a round, by the tools that it offers besides the profile's",
        x: "tools",
        y: "µs of CPU",
        lines,
    }
}

fn calls(bench: &Bench) -> Curve {
    let lines = both(bench, &CALLS, 6, |count| (Setup::default(), count));
    Curve {
        file: "growth-calls",
        title: "CPU of a round, by the calls that it has at once",
        x: "calls",
        y: "µs of CPU",
        lines,
    }
}

/// Both sides over so many rounds; a setup also says how many calls each round has.
fn both(bench: &Bench, xs: &[usize], rounds: usize, setup: impl Fn(usize) -> (Setup, usize)) -> Vec<Line> {
    let points = xs.iter().map(|x| {
        let calls = setup(*x).1;
        let plan = Plan::Rounds { tool: "note".to_owned(), rounds: rounds + 1, calls };
        let head = bench.head(|| setup(*x).0);
        let cost = |moments: Vec<Moment>| {
            // From the end of the first round to that of the last.
            each(moments.get(calls - 1)?, moments.last()?, rounds)
        };
        let ours = (0..REPEATS).filter_map(|_| cost(bench.subject(&bench.model.place(&plan), setup(*x).0)));
        let ours = median(ours);
        let floor = median((0..REPEATS).filter_map(|_| cost(bench.floor(&head, &bench.model.place(&plan)))));
        (number(*x), ours, floor)
    });
    let points: Vec<_> = points.collect();
    vec![
        Line { name: OURS, points: points.iter().map(|(x, ours, _)| (*x, *ours)).collect() },
        Line { name: FLOOR, points: points.iter().map(|(x, _, floor)| (*x, *floor)).collect() },
    ]
}

fn sessions(bench: &Bench) -> Curve {
    let plan = Plan::rounds("note", 3);
    let head: Arc<[u8]> = bench.head(Setup::default).into();
    let ours = |count: usize| {
        at_once(bench, count, || {
            work(bench.model.place(&plan), bench.folder().to_path_buf(), Setup::default(), Moments::default())
        })
    };
    let floor = |count: usize| {
        at_once(bench, count, || work_by_hand(bench.model.place(&plan), head.to_vec(), Moments::default()))
    };
    let point = |count: usize, side: &dyn Fn(usize) -> f64| {
        (number(count), median((0..REPEATS).map(|_| side(count))) / number(count))
    };
    Curve {
        file: "growth-sessions",
        title: "CPU of a session of three rounds, by the sessions at once",
        x: "sessions",
        y: "µs of CPU each",
        lines: vec![
            Line { name: OURS, points: SESSIONS.into_iter().map(|count| point(count, &ours)).collect() },
            Line { name: FLOOR, points: SESSIONS.into_iter().map(|count| point(count, &floor)).collect() },
        ],
    }
}

fn subagents(bench: &Bench) -> Curve {
    let head: Arc<[u8]> = bench.head(Setup::default).into();
    let ours = |count: usize| {
        let place = bench.model.place(&Plan::Subagents { count });
        let begun = Moment::now();
        bench.subject(&place, Setup { prompt: PARENT, ..Setup::default() });
        let asked = place.sent().len();
        assert_eq!(asked, count + 3, "each subagent has asked once, and the parent three times");
        microseconds(begun) / number(count)
    };
    let text = Plan::text();
    let floor = |count: usize| {
        let run = || work_by_hand(bench.model.place(&text), head.to_vec(), Moments::default());
        at_once(bench, count, run) / number(count)
    };
    let line = |name, side: &dyn Fn(usize) -> f64| Line {
        name,
        points: SUBAGENTS
            .into_iter()
            .map(|count| (number(count), median((0..REPEATS).map(|_| side(count)))))
            .collect(),
    };
    Curve {
        file: "growth-subagents",
        title: "CPU of a session with subagents of one answer, by their number",
        x: "subagents",
        y: "µs of CPU each",
        lines: vec![line(OURS, &ours), line(FLOOR, &floor)],
    }
}

/// The processor time of so many at once, in microseconds.
fn at_once<F: Future<Output = ()> + Send + 'static>(
    bench: &Bench,
    count: usize,
    work: impl Fn() -> F,
) -> f64 {
    let begun = Moment::now();
    let mut all: tokio::task::JoinSet<()> = tokio::task::JoinSet::new();
    for _ in 0..count {
        all.spawn_on(work(), bench.runtime().handle());
    }
    bench.runtime().block_on(all.join_all());
    microseconds(begun)
}

/// Processor time since then, in microseconds.
fn microseconds(begun: Moment) -> f64 {
    milliseconds(begun.until(Moment::now()).cpu) * 1_000.0
}

/// The processor time of each of some rounds between two moments, in microseconds.
fn each(from: &Moment, to: &Moment, rounds: usize) -> Option<f64> {
    (rounds > 0).then(|| milliseconds(from.until(*to).cpu) * 1_000.0 / number(rounds))
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    Spread::of(values).map_or(f64::NAN, |spread| spread.median)
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
