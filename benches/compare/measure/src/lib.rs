//! What the runners of all Rust engines share, so that each is measured in the same way.

use rustix::time::{ClockId, clock_gettime};
use std::process::ExitCode;
use std::time::Duration;
pub use tokio::runtime::Runtime;

/// What a runner is asked to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// N distinct nodes in a row; each adds 1 to one number of the state.
    Chain,
    /// The same, with a checkpoint in memory for each step.
    ChainCheckpoints,
    /// One node sends N tasks, each with an input of its own; their results meet in a list and a sum.
    FanOut,
}

/// One run of a graph: makes it, and gives how many nodes it ran. Panics if the result is wrong.
pub type Run = Box<dyn Fn(&Runtime)>;

/// The main function of a runner: `RUNNER WORKLOAD SIZE MILLISECONDS`.
///
/// Prints the CPU time of a node in nanoseconds, or `none` if the engine has no such workload. The graph is built
/// once, outside the measurement, and run again and again.
pub fn measure(build: impl Fn(Workload, usize) -> Option<Run>) -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, workload, size, milliseconds] = &arguments[..] else {
        eprintln!("usage: RUNNER chain|chain-checkpoints|fan-out SIZE MILLISECONDS");
        return ExitCode::from(2);
    };
    let workload = match &**workload {
        "chain" => Workload::Chain,
        "chain-checkpoints" => Workload::ChainCheckpoints,
        "fan-out" => Workload::FanOut,
        other => panic!("unknown workload `{other}`"),
    };
    let size: usize = size.parse().expect("SIZE is a number");
    let time = Duration::from_millis(milliseconds.parse().expect("MILLISECONDS is a number"));
    let Some(run) = build(workload, size) else {
        println!("none");
        return ExitCode::SUCCESS;
    };
    // One thread, so that an engine that spawns its tasks is not charged for idle workers.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    run(&runtime);
    let started = cpu_time();
    let mut runs = 0_u32;
    let taken = loop {
        run(&runtime);
        runs += 1;
        let taken = cpu_time() - started;
        if taken >= time {
            break taken;
        }
    };
    println!(
        "{:.1}",
        taken.as_nanos() as f64 / f64::from(runs) / size as f64
    );
    ExitCode::SUCCESS
}

/// The CPU time of this process, all threads together.
fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
