//! How many instructions the engine spends per node, counted by callgrind: the same on a busy machine as on an idle one.
//!
//! ```text
//! cargo bench --bench instructions              prints the table; fails if a number is over its limit
//! cargo bench --bench instructions -- --save    takes what was measured as the new limits
//! ```
//!
//! A process of its own prepares a workload and runs it once; then callgrind starts to count, and it runs some more.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod workloads;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use workloads::{BESIDE, CHAINS, FAN_OUTS, Prepared, Shape, Workload};

/// Where the limits stand.
const LIMITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions.txt");
/// How far above its limit a number may be: another compiler, another processor.
const SLACK: f64 = 1.05;
/// What a step of a chain should cost at most.
const TARGET: f64 = 3_000.0;
/// How far the steps of graphs of all sizes, with states of all sizes, may be apart.
const SPREAD: f64 = 1.05;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let save = match words[..] {
        ["run", at, times] => {
            run(at.parse().unwrap(), times.parse().unwrap());
            return ExitCode::SUCCESS;
        }
        [] => false,
        ["--save"] => true,
        _ => {
            eprintln!("instructions: unknown arguments; the one option is --save");
            return ExitCode::from(2);
        }
    };
    match report(save) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("instructions: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What is counted: every shape, with every amount of other state, without checkpoints and with. A graph of one node is
/// nearly all opening and closing.
fn counted() -> Vec<Workload> {
    let ones = [Shape::Chain(1), Shape::FanOut(1)].into_iter();
    let chains = CHAINS.into_iter().map(Shape::Chain);
    let fan_outs = FAN_OUTS.into_iter().map(Shape::FanOut);
    let mut counted = Vec::new();
    for shape in ones.chain(chains).chain(fan_outs) {
        for checkpoints in [false, true] {
            counted.extend(BESIDE.map(|beside| Workload {
                shape,
                beside,
                checkpoints,
            }));
        }
    }
    counted
}

fn size(workload: Workload) -> usize {
    match workload.shape {
        Shape::Chain(size) | Shape::FanOut(size) => size,
    }
}

/// The measured process: the workload of this number.
fn run(at: usize, times: usize) {
    let prepared = counted()[at].prepare();
    prepared.run();
    measured(&prepared, times);
}

/// What callgrind counts, by its name.
#[inline(never)]
fn measured(prepared: &Prepared, times: usize) {
    for _ in 0..times {
        prepared.run();
    }
}

/// Prints the table. False if a number is over its limit.
fn report(save: bool) -> Result<bool, String> {
    let workloads = counted();
    let runs = measure(&workloads)?;
    let of = |workload: Workload| {
        let at = workloads.iter().position(|other| *other == workload);
        runs[at.unwrap()]
    };
    let limits = limits()?;
    let mut found = String::new();
    let mut within = true;
    let mut steps: Vec<(f64, Workload)> = Vec::new();
    println!(
        "{:<40} {:>12} {:>10} {:>10} {:>10}",
        "workload", "a whole run", "per node", "one more", "limit"
    );
    for (workload, run) in workloads.iter().zip(&runs) {
        let one = of(Workload {
            shape: match workload.shape {
                Shape::Chain(_) => Shape::Chain(1),
                Shape::FanOut(_) => Shape::FanOut(1),
            },
            ..*workload
        });
        let nodes = size(*workload);
        // Of one node, the run is what is held to a limit; of more, what each further one adds.
        let (held, more) = match nodes {
            1 => (*run, String::new()),
            _ => {
                let more = (run - one) / (nodes - 1) as f64;
                (more, format!("{more:.0}"))
            }
        };
        if nodes > 1 && matches!(workload.shape, Shape::Chain(_)) {
            steps.push((held, *workload));
        }
        let name = workload.to_string();
        writeln!(found, "{held:>8.0} {name}").unwrap();
        let limit = limits.get(&name);
        let over = limit.is_some_and(|limit| held > limit * SLACK);
        within &= !over && (limit.is_some() || save);
        println!(
            "{name:<40} {run:>12.0} {:>10.0} {more:>10} {:>10} {}",
            run / nodes as f64,
            limit.map_or_else(|| "none".to_owned(), |limit| format!("{limit:.0}")),
            if over { "OVER" } else { "" },
        );
    }
    println!();
    for checkpoints in [false, true] {
        let these = steps.iter().filter(|(_, of)| of.checkpoints == checkpoints);
        let costs = these.map(|(cost, _)| *cost);
        let (least, most) = costs.fold((f64::MAX, 0.0_f64), |(least, most), cost| {
            (least.min(cost), most.max(cost))
        });
        println!(
            "a step of a chain{}: {least:.0} to {most:.0}; they are {:.1} % apart (target {:.0} %){}",
            if checkpoints { " with checkpoints" } else { "" },
            (most / least - 1.0) * 100.0,
            (SPREAD - 1.0) * 100.0,
            match checkpoints {
                false if most > TARGET => format!("; OVER the target of {TARGET:.0}"),
                false => format!("; within the target of {TARGET:.0}"),
                true => String::new(),
            },
        );
    }
    if save {
        std::fs::write(LIMITS, found).map_err(|error| format!("{LIMITS}: {error}"))?;
        println!("saved as the limits in {LIMITS}");
        return Ok(true);
    }
    if !within {
        println!(
            "some numbers are over their limits in {LIMITS}, or have none; if that is meant, save them with --save"
        );
    }
    Ok(within)
}

/// The limits by workload; none if there is no file yet.
fn limits() -> Result<BTreeMap<String, f64>, String> {
    let text = match std::fs::read_to_string(LIMITS) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(format!("{LIMITS}: {error}")),
    };
    text.lines()
        .map(|line| {
            let (limit, name) = line.trim_start().split_once(' ').unwrap_or_default();
            match limit.parse() {
                Ok(limit) => Ok((name.to_owned(), limit)),
                Err(_) => Err(format!("{LIMITS}: `{line}` is no number and a workload")),
            }
        })
        .collect()
}

/// The instructions of one run of each workload. Two processes at a time.
fn measure(workloads: &[Workload]) -> Result<Vec<f64>, String> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(vec![Ok(0.0); workloads.len()]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(workload) = workloads.get(at) else {
                        return;
                    };
                    let times = (2_000 / size(*workload)).clamp(1, 100);
                    let counted = count(at, times).map(|all| all / times as f64);
                    results.lock().unwrap_or_else(PoisonError::into_inner)[at] = counted;
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().collect()
}

/// The instructions of so many runs of a workload.
fn count(at: usize, times: usize) -> Result<f64, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=instructions::measured")
        .arg(own)
        .args(["run", &at.to_string(), &times.to_string()])
        .output()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                "there is no `valgrind`, which counts; install the package of that name".to_owned()
            }
            _ => format!("valgrind: {error}"),
        })?;
    let said = String::from_utf8_lossy(&output.stderr);
    let counted = said
        .lines()
        .find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    match counted {
        Some(counted) if counted > 0.0 && output.status.success() => Ok(counted),
        _ => Err(format!("valgrind failed:\n{said}")),
    }
}
