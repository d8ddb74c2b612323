//! What a campaign found: counts, percentiles, the worst problems, tables by family and kernel, and all of it as CSV.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::draw::Problem;
use super::limits::Limit;
use super::measure::{Outcome, exceeds};

/// Errors at one target beyond so many tolerances of the field's mean are counted; they break no promise.
const TAIL: f64 = 30.0;
const WORST: usize = 10;

#[derive(Default)]
struct Line {
    problems: usize,
    over: usize,
    tails: usize,
    velocity: f64,
    gradient: f64,
}

impl Line {
    fn add(&mut self, o: &Outcome) {
        self.problems += 1;
        self.over += o.over() as usize;
        self.tails += (o.single_target > TAIL) as usize;
        self.velocity = self.velocity.max(o.velocity);
        self.gradient = self.gradient.max(o.gradient);
    }
}

#[derive(Default)]
pub struct Tally {
    all: Vec<(Problem, Outcome)>,
}

impl Tally {
    pub fn add(&mut self, p: Problem, o: Outcome) {
        self.all.push((p, o));
    }

    pub fn count(&self) -> usize {
        self.all.len()
    }

    pub fn over(&self) -> usize {
        self.all.iter().filter(|(_, o)| o.over()).count()
    }

    /// Problems in which the direct sum itself, the reference, is not much better than the tolerance.
    pub fn unreliable_references(&self) -> usize {
        self.all.iter().filter(|(_, o)| exceeds(o.direct, 0.1)).count()
    }

    /// Whether no problem is over, and the direct sum is right in all.
    pub fn passed(&self) -> bool {
        self.count() > 0 && self.over() == 0 && self.all.iter().all(|(_, o)| o.direct <= 1.0)
    }

    pub fn report(&self) -> String {
        let mut t = String::new();
        let say = |t: &mut String, line: String| writeln!(t, "{line}").expect("to a string");
        let count = |f: &dyn Fn(&Outcome) -> bool| self.all.iter().filter(|(_, o)| f(o)).count();
        let by_family = self.table(|p| p.shape.family.to_owned());
        let by_kernel = self.table(Problem::kernel);
        let by_precision = self.table(|p| {
            let arrays = if p.single_arrays { "f32" } else { "f64" };
            format!("{arrays} arrays, {} asked for", if p.single() { "f32" } else { "f64" })
        });
        let used = |o: &Outcome| ["AUTO", "direct", "FMM", "treecode"].get(o.method as usize).copied().unwrap_or("?");
        let by_expansion = self.table(|p| {
            let name = if p.expansion == wakefmm::options::WFMM_EXPANSION_HARMONICS {
                "harmonics"
            } else {
                "pseudo-particles"
            };
            name.to_owned()
        });
        let mut by_method = BTreeMap::<String, Line>::new();
        for (p, o) in &self.all {
            let asked = if p.method == wakefmm::options::WFMM_METHOD_AUTO { ", by AUTO" } else { "" };
            by_method.entry(format!("{}{asked}", used(o))).or_default().add(o);
        }
        let by_periods = self.table(|p| ["open", "one period", "two periods", "three periods"][p.periods()].to_owned());
        let tables = [
            ("family", by_family),
            ("kernel", by_kernel),
            ("precision", by_precision),
            ("method", by_method),
            ("domain", by_periods),
            ("expansion", by_expansion),
        ];
        for (title, table) in tables {
            say(
                &mut t,
                format!("\n{title:30} problems   over  tails  velocity  gradient (worst, in 1 and 30 tolerances)"),
            );
            for (name, l) in table {
                let Line { problems, over, tails, velocity, gradient } = l;
                say(&mut t, format!("{name:30} {problems:8} {over:6} {tails:6} {velocity:9.3} {gradient:9.3}"));
            }
        }
        let mut order: Vec<&(Problem, Outcome)> = self.all.iter().collect();
        order.sort_by(|a, b| b.1.worst().total_cmp(&a.1.worst()));
        say(&mut t, "\nthe worst:".to_owned());
        for (p, o) in order.iter().take(WORST) {
            say(&mut t, line(p, o));
        }
        for (name, f) in [("velocity", (|o| o.velocity) as fn(&Outcome) -> f64), ("gradient", |o| o.gradient)] {
            say(&mut t, format!("{name}: {}", self.percentiles(f)));
        }
        say(
            &mut t,
            format!(
                "{} problems, {} of them by FMM, {} by treecode; {} with one target beyond {TAIL} tolerances of the mean; direct sum and plain \
             loop apart by more than 0.1 tolerances in {}, by {:.2e} at most",
                self.count(),
                count(&|o| o.method == wakefmm::options::WFMM_METHOD_FMM),
                count(&|o| o.method == wakefmm::options::WFMM_METHOD_TREECODE),
                count(&|o| o.single_target > TAIL),
                self.unreliable_references(),
                self.all.iter().map(|(_, o)| o.direct).fold(0.0, f64::max),
            ),
        );
        let left_out: usize = self.all.iter().map(|(_, o)| o.undetermined).sum();
        let numbers = self.all.iter().filter(|(_, o)| o.undetermined > 0);
        let numbers: Vec<String> = numbers.map(|(p, o)| format!("#{} {}", p.index, o.undetermined)).collect();
        say(
            &mut t,
            format!(
                "{left_out} targets of {} problems left out: the last digit of their coordinates decides over their field ({})",
                numbers.len(),
                numbers.join(", ")
            ),
        );
        let (velocity, gradient) = (count(&|o| exceeds(o.velocity, 1.0)), count(&|o| exceeds(o.gradient, 1.0)));
        let unseen = count(&|o| o.over() && o.failure.is_none() && o.estimated <= 1.0);
        let failed = count(&|o| o.failure.is_some() && !o.refused());
        let refused = count(&|o| o.refused());
        let at = |limit: Limit| count(&|o| o.missed() && o.limit == Some(limit));
        let (cores, beside) = (at(Limit::Cores), at(Limit::BesideSlab));
        say(
            &mut t,
            format!(
                "{} over ({:.3} %): velocity {velocity}, gradient {gradient}, failed calls {failed}, refused periodic sums {refused}, missed where cores of segments reach too far {cores}, where all images cancel beside a slab {beside}; in {unseen} the report's estimate is within the tolerance",
                self.over(),
                100.0 * self.over() as f64 / self.count().max(1) as f64
            ),
        );
        t
    }

    fn table(&self, key: impl Fn(&Problem) -> String) -> BTreeMap<String, Line> {
        let mut lines = BTreeMap::<String, Line>::new();
        self.all.iter().for_each(|(p, o)| lines.entry(key(p)).or_default().add(o));
        lines
    }

    fn percentiles(&self, f: fn(&Outcome) -> f64) -> String {
        let mut values: Vec<f64> = self.all.iter().map(|(_, o)| f(o)).collect();
        values.sort_by(f64::total_cmp);
        let mut text = String::from("of what is allowed");
        for percent in [50.0, 90.0, 99.0, 99.9, 100.0] {
            let rank = (percent / 100.0 * values.len() as f64).ceil() as usize;
            let value = values.get(rank.saturating_sub(1)).copied().unwrap_or(0.0);
            write!(text, ", {percent} %: {value:.3}").expect("to a string");
        }
        text
    }

    /// A line a problem, in the order of their numbers.
    pub fn csv(&self) -> String {
        let mut order: Vec<&(Problem, Outcome)> = self.all.iter().collect();
        order.sort_by_key(|(p, _)| p.index);
        let mut t = String::from(
            "index,family,kernel,sources,targets,tolerance,velocity,gradient,one_target,direct,estimated,method,order,\
             depth,precision,over,description\n",
        );
        for (p, o) in order {
            let numbers = [p.tolerance, o.velocity, o.gradient, o.single_target, o.direct, o.estimated];
            let numbers: Vec<String> = numbers.iter().map(|x| format!("{x:.4e}")).collect();
            writeln!(
                t,
                "{},{},{},{},{},{},{},{},{},{},{},\"{}\"",
                p.index,
                p.shape.family,
                p.kernel(),
                o.sources,
                o.targets,
                numbers.join(","),
                o.method,
                o.order,
                o.depth,
                o.precision,
                o.over() as i32,
                p.description(o.sources, o.targets)
            )
            .expect("to a string");
        }
        t
    }
}

/// Everything about one problem.
pub fn line(p: &Problem, o: &Outcome) -> String {
    let found = match &o.failure {
        Some(message) => format!("failed: {message}"),
        None => format!("velocity {:.3} gradient {:.3}", o.velocity, o.gradient),
    };
    let what = p.description(o.sources, o.targets);
    format!("{found} | {what} | {} | {}", o.account(), o.recipe.trim().replace('\n', "; "))
}
