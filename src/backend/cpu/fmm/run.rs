//! One run of a prepared far field: expansions, calibration, the field, its check, and all of that again where it misses.
//!
//! Enters: what was prepared. Leaves: the field, and in the recipe what was found of it.

use super::choice::{self, Recipe};
use super::expansions::Expansions;
use super::field::{self, Evaluation};
use super::sample::among;
use super::{Prepared, Sink, SourceSet, essential, rows};
use crate::backend::cpu::lists::{Scheme, Subset};
use crate::backend::verdict::Verdict;
use crate::memory;
use crate::report::{PASS_COUNT, Pass};
use crate::simd::Real;
use std::time::Instant;

/// A retry aims at this part of the tolerance.
const RETRY_AIM: f64 = 0.3;

/// See the head of this file.
pub struct Run<'a, T: Real, const C: usize> {
    pub prepared: &'a mut Prepared<T, C>,
    pub expansions: &'a mut Expansions<T>,
    pub recipe: &'a mut Recipe,
    pub seconds: &'a mut [f64; PASS_COUNT],
    pub sources: &'a mut dyn SourceSet<T, C>,
}

impl<T: Real, const C: usize> Run<'_, T, C> {
    /// The field at all targets, judged on a sample; tightened and repeated where it misses. False: it still misses.
    pub fn judged(&mut self, sink: &mut Sink<'_, T>) -> bool {
        for retry in 0.. {
            self.upward();
            if retry == 0 {
                self.calibrate();
                self.upward();
            }
            let trees = &self.prepared.trees;
            self.downward(Subset(trees.division.cells(&trees.target).as_deref()));
            self.at_targets();
            let verdict = self.write_and_judge(sink);
            let p = &mut *self.prepared;
            self.recipe.sampled_error = verdict.error;
            self.recipe.retries = retry;
            if verdict.holds(p.request.tolerance) {
                return true;
            }
            // Numbers that are none cannot be judged, nor would more digits mend them.
            if retry == p.request.retries() || !verdict.error.is_finite() {
                return false;
            }
            log::debug!("sampled error {:.2e} misses {:.2e}: tightening", verdict.error, p.request.tolerance);
            let factor = (RETRY_AIM * p.request.tolerance / verdict.upper).min(RETRY_AIM);
            p.statistics.budget = p.statistics.budget.scaled(factor, factor);
            self.list_again();
        }
        unreachable!("the loop returns")
    }

    /// Lists for a budget that became smaller: cells of other ranks that served until now may have to be opened.
    fn list_again(&mut self) {
        let p = &mut *self.prepared;
        if p.trees.peers.are_many() {
            essential::join(self.sources, &mut p.trees, p.choice.scheme, &mut p.statistics, p.request);
            self.expansions.forget_sources();
        }
        p.choice.build_lists(self.sources, &p.trees, &p.statistics, &p.cost, p.request);
        *self.recipe = p.choice.recipe.clone();
    }

    /// Orders, or lists, follow what errors the sampled targets really have: the model must hold for sources of any kind.
    fn calibrate(&mut self) {
        let p = &mut *self.prepared;
        if p.choice.calibrated || p.request.order > 0 || p.choice.recipe.far_pairs == 0 {
            return;
        }
        p.choice.calibrated = true;
        let (tolerance, in_single) = (p.request.tolerance, p.choice.close > 0.0);
        // The error of pseudo-particles is not that of the model: no more of it is allowed than the model says.
        let most = if p.request.is_pseudo() { 1.0 } else { choice::MOST_LOOSENED };
        let Some(mut error) = self.calibration_error() else { return };
        let aim = choice::CALIBRATION_AIM * tolerance;
        let factor = |error: f64| (aim / error.max(f64::MIN_POSITIVE)).clamp(0.03, most);
        let tightened_below = if in_single { choice::TIGHTENED_BELOW_IN_SINGLE } else { choice::TIGHTENED_BELOW };
        if self.raises_orders(factor(error), tightened_below) {
            self.order_again(factor(error), choice::ORDERS_RAISED);
            self.upward();
            error = self.calibration_error().unwrap_or(error);
            // Cores that were left out may have the rest of the error; in single precision rounding has it.
            if error <= choice::RAISED_AIM * tolerance || in_single {
                return;
            }
        }
        let factor = factor(error);
        if factor < tightened_below {
            let budget = &mut self.prepared.statistics.budget;
            *budget = budget.scaled(factor, factor.max(0.3));
            self.list_again();
        } else if factor > choice::LOOSENED_ABOVE {
            self.order_again(factor, 0);
        }
    }

    /// Whether orders alone can mend an error that is one over `factor` times what is aimed at: lists, and the cores that matter in
    /// far pairs, take longer to find than higher orders.
    fn raises_orders(&self, factor: f64, tightened_below: f64) -> bool {
        let p = &*self.prepared;
        let is_moderate = (choice::LEAST_BY_ORDERS..tightened_below).contains(&factor);
        is_moderate && p.choice.scheme == Scheme::Fmm && !p.request.is_pseudo()
    }

    /// Other orders for the present lists, up to `raised` above the highest of them.
    fn order_again(&mut self, factor: f64, raised: usize) {
        let p = &mut *self.prepared;
        p.statistics.budget = p.statistics.budget.scaled(factor, 1.0);
        p.choice.assign_orders::<C>(&p.trees, &p.statistics, &p.cost, p.request, raised);
        *self.recipe = p.choice.recipe.clone();
    }

    /// The error at the sample that calibrates, with present lists and orders; none where it is not worth while.
    fn calibration_error(&mut self) -> Option<f64> {
        let p = &*self.prepared;
        match p.choice.scheme {
            Scheme::Fmm => {
                let chains = p.statistics.sample.chains(&p.trees);
                if !p.trees.peers.any(chains.is_some()) {
                    return None;
                }
                self.downward(Subset(chains.as_deref()));
            }
            Scheme::Treecode if p.statistics.sample.is_most(&p.trees) => return None,
            Scheme::Treecode => self.at_targets(),
        }
        let p = &*self.prepared;
        let field = self.evaluation().at(&p.statistics.sample.targets, p.request.gradient);
        let field = p.statistics.sample.whole(&p.trees, memory::collect(field.iter().map(|v| v.f64())));
        let error = p.statistics.calibration_error(&field);
        log::debug!("calibration: sampled error {error:.2e} at order {}", p.choice.recipe.order);
        Some(error)
    }

    /// The field at all targets, and what an independent sample says of it.
    fn write_and_judge(&mut self, sink: &mut Sink<'_, T>) -> Verdict {
        let (p, sources) = (&mut *self.prepared, &*self.sources);
        let judges = p.choice.recipe.judges;
        let judge = memory::copy(&p.statistics.judge(sources, &p.trees, p.request, judges).targets);
        let start = Instant::now();
        let e = Evaluation::new(sources, &p.trees, &p.choice, self.expansions);
        let mut written = e.everywhere(p.request.gradient, sink, &p.trees.division.leaves(&p.trees.target), &judge);
        let spent = start.elapsed().as_secs_f64();
        // The two are one loop over the leaves; divided by the model.
        let near = p.choice.near_seconds(spent);
        self.seconds[Pass::P2p as usize] = near;
        match p.choice.scheme {
            Scheme::Fmm => self.seconds[Pass::L2p as usize] = spent - near,
            Scheme::Treecode => self.seconds[Pass::M2p as usize] += spent - near,
        }
        p.trees.division.sum(&mut written.norms);
        p.trees.division.sum(&mut written.judged);
        written.norms = written.of_all(&p.trees);
        written.targets = p.trees.all_targets as u64;
        written.judged = p.statistics.judge(sources, &p.trees, p.request, judges).whole(&p.trees, written.judged);
        let verdict = p.statistics.verdict(&written);
        if verdict.holds(p.request.tolerance) || !verdict.is_inconclusive(p.request.tolerance) {
            return verdict;
        }
        // Few targets leave it open: more of them decide.
        let judge = p.statistics.more_judges(sources, &p.trees, p.request, 2 * judges);
        let own = p.trees.division.own_of(&judge.targets);
        let field = Evaluation::new(sources, &p.trees, &p.choice, self.expansions)
            .at(&judge.targets[own.clone()], p.request.gradient);
        let mut judged = among([rows(C, p.request.gradient), judge.targets.len()], own, &field);
        p.trees.division.sum(&mut judged);
        let judged = judge.whole(&p.trees, judged);
        p.statistics.verdict(&field::Written { judged, ..written })
    }

    /// Positions of some sorted targets and the field there, `[row][k]`, without gradient; not where targets are divided among ranks.
    pub fn at(&mut self, targets: &[u32]) -> (Vec<[f64; 3]>, Vec<T>) {
        debug_assert!(!self.prepared.trees.division.is_of_many());
        self.upward();
        self.downward(Subset::ALL);
        self.at_targets();
        let p = &*self.prepared;
        // Rows of M2P come all together; local expansions are differentiated as wanted.
        let mut field = self.evaluation().at(targets, p.choice.scheme == Scheme::Treecode && p.request.gradient);
        field.truncate(rows(C, false) * targets.len());
        (memory::collect(targets.iter().map(|&k| p.trees.points[k as usize])), field)
    }

    fn evaluation(&self) -> Evaluation<'_, T, C> {
        Evaluation::new(&*self.sources, &self.prepared.trees, &self.prepared.choice, self.expansions)
    }

    fn upward(&mut self) {
        let p = &*self.prepared;
        self.expansions.upward::<C>(&*self.sources, &p.trees, &p.choice, self.seconds);
    }

    fn downward(&mut self, subset: Subset<'_>) {
        let p = &*self.prepared;
        self.expansions.downward::<C>(&p.trees, &p.choice, subset, self.seconds);
    }

    fn at_targets(&mut self) {
        let p = &*self.prepared;
        self.expansions.at_targets::<C>(&p.trees, &p.choice, p.request.gradient, self.seconds);
    }
}
