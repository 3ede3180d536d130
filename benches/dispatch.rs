//! What the engine costs per node in CPU time, with nodes that do next to nothing.
//!
//! Each group runs the same number of boxed futures in a bare loop first: its ratio to that is what `README.md` quotes.

#![allow(missing_docs, clippy::unwrap_used)]

mod workloads;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::pin::Pin;
use std::time::Duration;
use workloads::{BESIDE, CHAINS, FAN_OUTS, Shape, Workload};

/// The CPU time of the process: other processes of a shared machine hardly change it.
struct CpuTime;

static FORMAT: WallTime = WallTime;

impl Measurement for CpuTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        let now = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    }

    fn end(&self, started: Duration) -> Duration {
        self.start() - started
    }

    fn add(&self, one: &Duration, other: &Duration) -> Duration {
        *one + *other
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        FORMAT.formatter()
    }
}

/// The least any engine pays: a boxed future per node, awaited one after the other.
async fn bare(nodes: usize) -> i64 {
    let mut count = 0_i64;
    for _ in 0..nodes {
        let step: Pin<Box<dyn Future<Output = i64> + Send>> =
            Box::pin(async move { black_box(count) + 1 });
        count = step.await;
    }
    count
}

fn dispatch(criterion: &mut Criterion<CpuTime>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let chains = CHAINS.map(|nodes| (nodes, Shape::Chain(nodes)));
    let fan_outs = FAN_OUTS.map(|tasks| (tasks, Shape::FanOut(tasks)));
    for (size, shape) in chains.into_iter().chain(fan_outs) {
        let mut group = criterion.benchmark_group(shape.to_string());
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function("bare loop", |bench| {
            bench.iter(|| runtime.block_on(bare(black_box(size))));
        });
        for checkpoints in [false, true] {
            for beside in BESIDE {
                let workload = Workload {
                    shape,
                    beside,
                    checkpoints,
                };
                let prepared = workload.prepare();
                let name = match checkpoints {
                    false => format!("{beside} B beside"),
                    true => format!("{beside} B beside, checkpoints"),
                };
                group.bench_function(name, |bench| bench.iter(|| prepared.run()));
            }
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .with_measurement(CpuTime)
        .without_plots()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = dispatch
}
criterion_main!(benches);
