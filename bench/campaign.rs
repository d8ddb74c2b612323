//! Random problems against exact sums: the error at every target, velocity and gradient.
//!
//! `make campaign` runs it. Arguments: `seed=`, `problems=`, `first=` number of the first, `only=` number of the one that is
//! repeated, `match=TEXT,TEXT` those whose description contains all of these, `above=X` and `below=X` those of such tolerances, `minn=` and `maxn=` sizes, `seconds=` after which no problem is
//! begun (30 seconds later those that are not done are given up), `threads=` problems at a time, `backend=cpu|cuda`,
//! `reference=cpu|cuda` who sums directly, `periodic=` how many of a hundred are periodic (10), `cubes=1` with three equal periods, as on GPUs until 2026-11-26,
//! `pseudo=` how many of the FMM's are by pseudo-particles (3), `pairs=` in how many neighbours have opposite strengths (3), `planes=`
//! how many are above a ground plane (3), both 0 until 2026-11-26, `ranks=` how many are dealt out to several ranks, on CPUs or sharing the GPU (0), `file=` a line a problem as CSV. A problem follows from seed, number and sizes.
//! Ends with a failure where a tolerance was missed.

mod campaign {
    pub mod build;
    pub mod draw;
    pub mod evaluate;
    pub mod ewald;
    pub mod exact;
    pub mod families;
    pub mod limits;
    pub mod measure;
    pub mod ranks;
    pub mod tally;
}
mod support;

use campaign::draw::Problem;
use campaign::evaluate::Machine;
use campaign::measure::{Outcome, run_or_fail};
use campaign::tally::{Tally, line};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::api::Session;
use support::arguments::argument;

/// After the time is up, until what is not done is given up.
const GRACE: Duration = Duration::from_secs(30);

fn number(key: &str, default: u64) -> u64 {
    argument(key).map_or(default, |n| n.parse().unwrap_or_else(|_| panic!("{key}={n} is no number")))
}

/// What was asked for, and what is under way.
struct Request {
    seed: u64,
    first: u64,
    end: u64,
    sizes: (usize, usize),
    periodic: u64,
    cubes: bool,
    pseudo: u64,
    pairs: u64,
    planes: u64,
    ranks: u64,
    texts: Vec<String>,
    tolerances: [f64; 2],
    deadline: Instant,
    cuda: Option<Arc<Session>>,
    cuda_reference: Option<Arc<Session>>,
    next: AtomicU64,
    begun: Mutex<BTreeMap<u64, String>>,
}

fn request() -> Request {
    let first = argument("only").map_or(number("first", 0), |_| number("only", 0));
    let count = if argument("only").is_some() { 1 } else { number("problems", 1000) };
    let backend = argument("backend").unwrap_or("cpu".to_owned());
    let reference = argument("reference").unwrap_or(backend.clone());
    for name in [&backend, &reference] {
        assert!(["cpu", "cuda"].contains(&name.as_str()), "{name}: cpu or cuda");
    }
    let cuda = (backend == "cuda" || reference == "cuda").then(|| Arc::new(Session::gpu()));
    Request {
        seed: number("seed", 1),
        first,
        end: first + count,
        sizes: (number("minn", 1).max(1) as usize, number("maxn", 200_000).max(1) as usize),
        periodic: number("periodic", 10),
        cubes: number("cubes", 0) > 0,
        pseudo: number("pseudo", 3),
        pairs: number("pairs", 3),
        planes: number("planes", 3),
        ranks: number("ranks", 0),
        texts: argument("match").map_or(vec![], |texts| texts.split(',').map(str::to_owned).collect()),
        tolerances: [support::arguments::number("above", 0.0), support::arguments::number("below", f64::INFINITY)],
        deadline: Instant::now() + Duration::from_secs(number("seconds", 1_000_000)),
        cuda_reference: cuda.clone().filter(|_| reference == "cuda"),
        cuda: cuda.filter(|_| backend == "cuda"),
        next: AtomicU64::new(first),
        begun: Mutex::default(),
    }
}

impl Request {
    /// The next problem, noted as begun; none where there are no more or the time is up.
    fn take(&self) -> Option<Problem> {
        while Instant::now() < self.deadline {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.end {
                return None;
            }
            let mut p = Problem::draw(self.seed, index, self.sizes)
                .in_periods(self.periodic)
                .by_pseudo_particles(self.pseudo)
                .in_pairs(self.pairs)
                .above_planes(self.planes)
                .on_ranks(self.ranks);
            if self.cubes {
                p.period = [p.period.into_iter().fold(0.0, f64::max); 3];
            }
            let description = p.description(p.sources, p.targets);
            let is_wanted = self.texts.iter().all(|text| description.contains(text.as_str()));
            let [above, below] = self.tolerances;
            if is_wanted && (above..=below).contains(&p.tolerance) {
                self.begun.lock().expect("no panic holds it").insert(index, description);
                return Some(p);
            }
        }
        None
    }

    /// Descriptions of the problems that are not done.
    fn unfinished(&self) -> Vec<String> {
        self.begun.lock().expect("no panic holds it").values().cloned().collect()
    }
}

/// Takes problem after problem.
fn work(w: &Request, found: Sender<(Problem, Outcome)>) {
    let machine = Machine::new(w.cuda.clone(), w.cuda_reference.clone());
    while let Some(p) = w.take() {
        let outcome = run_or_fail(&machine, &p);
        w.begun.lock().expect("no panic holds it").remove(&p.index);
        if found.send((p, outcome)).is_err() {
            return;
        }
    }
}

/// Counts what comes in, and says every ten seconds how far it is.
fn collect(w: &Request, found: Receiver<(Problem, Outcome)>) -> Tally {
    let (mut tally, begin, mut said) = (Tally::default(), Instant::now(), Instant::now());
    while Instant::now() < w.deadline + GRACE {
        match found.recv_timeout(Duration::from_secs(1)) {
            Ok((p, o)) => {
                if o.over() {
                    println!("OVER {}", line(&p, &o));
                }
                tally.add(p, o);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return tally,
        }
        if said.elapsed() > Duration::from_secs(10) {
            said = Instant::now();
            println!("{:.0} s: {} problems, {} over", begin.elapsed().as_secs_f64(), tally.count(), tally.over());
            std::io::stdout().flush().expect("standard output");
        }
    }
    tally
}

fn main() {
    let (w, begin) = (Arc::new(request()), Instant::now());
    let workers = number("threads", std::thread::available_parallelism().map_or(1, |n| n.get() as u64));
    let machine = w.cuda.as_ref().map_or_else(|| Session::cpu(1).describe(), |s| s.describe());
    let (least, most) = w.sizes;
    println!(
        "seed {}, problems {} to {}, sizes {least} to {most}, {workers} at a time on {machine}",
        w.seed,
        w.first,
        w.end - 1
    );
    let (sender, receiver) = channel();
    for _ in 0..workers {
        let (sender, w) = (sender.clone(), w.clone());
        std::thread::spawn(move || work(&w, sender));
    }
    drop(sender);
    let tally = collect(&w, receiver);
    print!("{}", tally.report());
    for p in w.unfinished() {
        println!("not done in time: {p}");
    }
    println!(
        "{:.0} s; again: seed={} minn={least} maxn={most} periodic={} cubes={} pseudo={} pairs={} planes={} ranks={} only=NUMBER",
        begin.elapsed().as_secs_f64(),
        w.seed,
        w.periodic,
        u8::from(w.cubes),
        w.pseudo,
        w.pairs,
        w.planes,
        w.ranks
    );
    if let Some(file) = argument("file") {
        std::fs::write(&file, tally.csv()).expect("the table can be written");
    }
    std::io::stdout().flush().expect("standard output");
    std::process::exit(!tally.passed() as i32);
}
