//! The generator and the measure of bench/campaign.rs: problems follow from their number, cover what they must, are numbers that
//! the arrays hold, and an error is seen.

#[path = "../bench/campaign"]
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
#[path = "../bench/support/mod.rs"]
mod support;

use campaign::build::build;
use campaign::draw::*;
use campaign::evaluate::Machine;
use campaign::ewald::Ewald;
use campaign::exact::{Exact, elements};
use campaign::families::FAMILIES;
use campaign::limits::Limit;
use campaign::measure::{Outcome, judge, run, run_or_fail};
use campaign::tally::{Tally, line};
use std::collections::BTreeSet;
use support::accuracy::relative_l2;
use support::cases::Case;
use support::periodic::{Images, field_at};
use support::random::Random;
use support::tier::full;
use wakefmm::options::*;

const SIZES: (usize, usize) = (1, 3000);

/// All numbers of a case.
fn numbers(c: &Case) -> Vec<f64> {
    let vectors = [&c.points, &c.position, &c.strength, &c.charge_position, &c.targets];
    let numbers = [&c.circulation, &c.segment_core, &c.particle_core, &c.charge];
    let components = vectors.into_iter().flatten().flatten();
    components.chain(numbers.into_iter().flatten()).copied().collect()
}

#[test]
fn a_problem_follows_from_its_seed_and_number() {
    for index in 0..40 {
        let (a, b) = (Problem::draw(7, index, SIZES), Problem::draw(7, index, SIZES));
        assert_eq!(a.description(1, 1), b.description(1, 1));
        assert_eq!(numbers(&build(&a, 0)), numbers(&build(&b, 0)));
        let other = Problem::draw(8, index, SIZES);
        assert_ne!(a.description(1, 1), other.description(1, 1));
    }
}

#[test]
fn everything_is_drawn() {
    let all: Vec<Problem> = (0..3000).map(|k| Problem::draw(1, k, (1, 200_000))).collect();
    let count = |f: &dyn Fn(&Problem) -> String| all.iter().map(f).collect::<BTreeSet<_>>().len();
    assert_eq!(count(&|p| p.shape.family.to_owned()), FAMILIES.len());
    assert_eq!(count(&Problem::kernel), 6 + 7 + 2);
    assert_eq!(count(&|p| format!("{} {}", p.single_arrays, p.precision)), 6);
    assert_eq!(count(&|p| p.core_rule.to_owned()), CORES.len());
    assert_eq!(count(&|p| p.strength_rule.to_owned()), STRENGTHS.len());
    assert_eq!(count(&|p| p.length_rule.to_owned()), LENGTHS.len());
    assert_eq!(count(&|p| p.target_rule.to_owned()), TARGETS.len());
    assert_eq!(count(&|p| p.history.to_owned()), HISTORIES.len());
    assert_eq!(count(&|p| p.method.to_string()), METHODS.len());
    let share = |f: &dyn Fn(&Problem) -> bool| all.iter().filter(|p| f(p)).count() as f64 / all.len() as f64;
    assert!(share(&|p| p.gradient) > 0.5);
    assert!(share(&|p| p.sources > 20_000) > 0.2 && share(&|p| p.sources < 100) > 0.05);
    assert!(all.iter().any(|p| p.tolerance < 1e-11) && all.iter().any(|p| p.single() && p.tolerance < 6e-6));
    assert!(all.iter().any(|p| p.unit < 3e-7) && all.iter().any(|p| p.unit > 3e6));
}

#[test]
fn numbers_are_in_the_range_of_their_arrays() {
    for index in 0..600 {
        let p = Problem::draw(3, index, (1, 1500));
        for stream in [0, 1] {
            let c = build(&p, stream);
            assert!(elements(&c) > 0 && !c.targets.is_empty(), "{}", p.description(0, 0));
            let limit = if p.single_arrays { 1e30 } else { 1e100 };
            assert!(numbers(&c).iter().all(|x| x.abs() < limit), "{}", p.description(0, 0));
            assert!(c.segment_core.iter().chain(&c.particle_core).all(|&x| x >= 0.0));
            assert!(!p.single_arrays || numbers(&c).iter().all(|&x| x == x as f32 as f64));
        }
    }
}

/// Errors at one of 200 targets, in its velocity and in its gradient, and no number.
#[test]
fn an_error_is_seen() {
    let mut p = Problem::draw(5, 0, (200, 200));
    (p.gradient, p.target_rule) = (true, "box");
    let case = build(&p, 0);
    let all: Vec<usize> = (0..case.targets.len()).collect();
    let exact = Exact::new(&p, &case).field(&all);
    let size = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let (main, gradient) = (size(&exact.main), size(&exact.gradient));
    for (velocity, slope, over) in
        [(0.0, 0.0, false), (0.9, 0.9, false), (1.1, 0.0, true), (0.0, 1.1, true), (f64::NAN, 0.0, true)]
    {
        let mut got = Exact::new(&p, &case).field(&all);
        got.main[17] += velocity * p.tolerance * main;
        got.gradient[50] += 30.0 * slope * p.tolerance * gradient;
        let found = judge(&p, &case, &got, &exact);
        assert_eq!(found.over(), over, "{velocity} {slope}: {} {}", found.velocity, found.gradient);
        assert!(over || (found.velocity - velocity).abs() < 1e-3 && (found.gradient - slope).abs() < 1e-3);
        let mut tally = Tally::default();
        tally.add(p.clone(), found);
        assert_eq!((tally.passed(), tally.over()), (!over, over as usize));
        assert!(tally.report().contains(if over { "1 over" } else { "0 over" }) && tally.csv().lines().count() == 2);
    }
    assert!(!Tally::default().passed());
}

/// Small problems of every family: no call fails, and the direct sum is the plain loop's.
#[test]
fn direct_sums_are_those_of_the_plain_loop() {
    let machine = Machine::new(None, None);
    for index in 0..150 {
        let p = Problem::draw(11, index, (1, 300));
        let found = run(&machine, &p);
        assert!(found.direct < 0.1, "{} {}", p.description(found.sources, found.targets), found.account());
    }
}

/// The two references for periodic sums know nothing of each other: Ewald's sum, and blocks of images whose limit is extrapolated
/// (with three periods Ewald's sum of another code).
#[test]
fn periodic_references_agree() {
    let mut r = Random::new(5);
    for period in [[1.0, 1.3, 0.8], [1.0, 0.0, 1.2], [0.0, 0.9, 0.0]] {
        for (kind, core) in [(0, 0.0), (0, 0.05), (1, 0.0), (2, 0.0)] {
            let mut c = Case::default();
            for k in 0..6 {
                let x = r.in_cube().map(|v| 0.8 * v);
                match kind {
                    0 => {
                        c.position.push(x);
                        c.strength.push(r.signed());
                        c.particle_core.push(core);
                    }
                    1 => {
                        let d = r.signed();
                        c.points.extend([x, std::array::from_fn(|i| x[i] + 0.1 * d[i])]);
                        c.ends.extend([2 * k, 2 * k + 1]);
                        c.circulation.push(r.between(-1.0, 1.0));
                        c.segment_core.push(core);
                    }
                    _ => {
                        c.charge_position.push(x);
                        c.charge.push((k % 2) as f64 - 0.5);
                    }
                }
            }
            let codes = (WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF);
            let regularizations = [codes.0, codes.1].map(|c| Regularization::from_code(c).unwrap());
            let ewald = Ewald::new(&c, period, regularizations, 1e-11);
            let images = Images::new(period);
            for _ in 0..5 {
                let x = r.in_cube().map(|v| 0.8 * v);
                let (u, g) = field_at(&c, &images, codes, x);
                let want: Vec<f64> = u.into_iter().chain(g).collect();
                let got: Vec<f64> = ewald.at(x, 0.0).iter().map(|v| v / (4.0 * std::f64::consts::PI)).collect();
                let e = relative_l2(&got[..want.len()], &want);
                assert!(e < 1e-10, "{period:?} kind {kind} core {core}: {e:.1e}");
            }
        }
    }
}

/// A short run in slabs, tubes and boxes: nothing is over, and little is refused.
#[test]
fn periodic_problems_keep_their_tolerance() {
    let machine = Machine::new(None, None);
    let (mut tally, mut domains, mut refused) = (Tally::default(), BTreeSet::new(), 0);
    for index in 0..25 {
        let p = Problem::draw(13, index, (1, 150)).in_periods(100);
        let found = run_or_fail(&machine, &p);
        refused += found.refused() as usize;
        assert!(!found.over(), "{}", line(&p, &found));
        domains.insert(p.periods());
        tally.add(p, found);
    }
    assert!(domains.len() == 3 && refused < 10, "{refused} refused");
    assert!(tally.report().contains(&format!("refused periodic sums {refused},")));
    assert!((0..200).all(|k| Problem::draw(13, k, SIZES).in_periods(0).periods() == 0));
}

/// Where all images cancel beside a slab and the recipe says so, a small absolute error is counted apart, and a larger one is not.
#[test]
fn what_cancels_beside_a_slab_is_counted_apart() {
    let p = Problem::draw(1247, 14189, (1, 20_000)).in_periods(3).by_pseudo_particles(3).in_pairs(3).above_planes(3);
    assert!(p.periods() == 2 && p.gradient);
    let case = build(&p, 0);
    let exact = Exact::new(&p, &case);
    let want = exact.field(&[0, 1]);
    let limit = |velocity: f64, gradient: f64, recipe: &str| {
        let outcome = Outcome { velocity, gradient, recipe: recipe.into(), ..Outcome::default() };
        Limit::beside_slab(&exact, &outcome, &want)
    };
    let said = "All targets are at least 1e0 beside the slab";
    assert_eq!(limit(0.5, 1.2, said), Some(Limit::BesideSlab));
    for (velocity, gradient, recipe) in [(0.5, 1.2, ""), (0.5, 0.9, said), (0.5, 1000.0, said), (1.2, 1.2, said)] {
        assert_eq!(limit(velocity, gradient, recipe), None, "{velocity} {gradient} {recipe}");
    }
}

/// The same of neighbours with opposite strengths, of ground planes and of several ranks.
#[test]
fn pairs_planes_and_ranks_keep_their_tolerance() {
    let machine = Machine::new(None, None);
    let changes: [fn(Problem) -> Problem; 3] = [|p| p.in_pairs(100), |p| p.above_planes(100), |p| p.on_ranks(100)];
    for (k, change) in changes.into_iter().enumerate() {
        for index in 0..40 {
            let p = change(Problem::draw(19 + k as u64, index, (1, 500)));
            assert!([p.pair > 0.0, p.plane.is_some(), p.ranks.is_some()][k]);
            let found = run_or_fail(&machine, &p);
            assert!(!found.over(), "{}", line(&p, &found));
        }
    }
    let draw = |k| Problem::draw(19, k, SIZES);
    let plain = |p: Problem| p.pair == 0.0 && p.plane.is_none() && p.ranks.is_none();
    assert!((0..200).all(|k| plain(draw(k).in_pairs(0).above_planes(0).on_ranks(0))));
}

/// The same of pseudo-particles.
#[test]
fn pseudo_particles_keep_their_tolerance() {
    let (machine, mut tried) = (Machine::new(None, None), 0);
    for index in 0..if full() { 60 } else { 24 } {
        let p = Problem::draw(17, index, (1, 400)).by_pseudo_particles(100);
        if p.expansion == WFMM_EXPANSION_PSEUDO_PARTICLES {
            tried += 1;
            let found = run_or_fail(&machine, &p);
            assert!(!found.over(), "{}", line(&p, &found));
        }
    }
    assert!(tried > if full() { 10 } else { 4 });
    let harmonics = |k| Problem::draw(17, k, SIZES).by_pseudo_particles(0).expansion == WFMM_EXPANSION_HARMONICS;
    assert!((0..200).all(harmonics));
}
