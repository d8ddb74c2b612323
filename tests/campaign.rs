//! The generator and the measure of bench/campaign.rs: problems follow from their number, cover what they must, are numbers that
//! the arrays hold, and an error is seen.

#[path = "../bench/campaign"]
mod campaign {
    pub mod build;
    pub mod draw;
    pub mod evaluate;
    pub mod exact;
    pub mod measure;
    pub mod places;
    pub mod tally;
}
#[path = "../bench/support/mod.rs"]
mod support;

use campaign::build::build;
use campaign::draw::*;
use campaign::evaluate::Machine;
use campaign::exact::{elements, plain};
use campaign::measure::{judge, run};
use campaign::places::FAMILIES;
use campaign::tally::Tally;
use std::collections::BTreeSet;
use support::cases::Case;

const SIZES: (usize, usize) = (1, 3000);

/// All numbers of a case.
fn numbers(c: &Case) -> Vec<f64> {
    let places = [&c.points, &c.position, &c.strength, &c.charge_position, &c.targets];
    let lists = [&c.circulation, &c.segment_core, &c.particle_core, &c.charge];
    let places = places.into_iter().flatten().flatten();
    places.chain(lists.into_iter().flatten()).copied().collect()
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
    let exact = plain(&p, &case, &all);
    let size = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let (main, gradient) = (size(&exact.main), size(&exact.gradient));
    for (velocity, slope, over) in
        [(0.0, 0.0, false), (0.9, 0.9, false), (1.1, 0.0, true), (0.0, 1.1, true), (f64::NAN, 0.0, true)]
    {
        let mut got = plain(&p, &case, &all);
        got.main[17] += velocity * p.tolerance * main;
        got.gradient[50] += 30.0 * slope * p.tolerance * gradient;
        let found = judge(&p, &case, &got, &exact);
        assert_eq!(found.over(), over, "{velocity} {slope}: {} {}", found.velocity, found.gradient);
        assert!(over || (found.velocity - velocity).abs() < 1e-3 && (found.gradient - slope).abs() < 1e-3);
        let mut tally = Tally::default();
        tally.add(p.clone(), found);
        assert_eq!((tally.passed(0), tally.over()), (!over, over as usize));
        assert!(tally.passed(1));
        assert!(tally.report().contains(if over { "1 over" } else { "0 over" }) && tally.csv().lines().count() == 2);
    }
    assert!(!Tally::default().passed(9));
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
