//! The wakes that speed and accuracy are measured on have the sizes of the published cases.

#[path = "../bench/support/mod.rs"]
mod support;

use support::accuracy::options;
use support::api::{Plan, Session, flat};
use support::wakes::{hover, lattice};
use wakefmm::options::*;

#[test]
fn sizes_are_those_of_the_published_cases() {
    let w = lattice(300, 0.0);
    assert_eq!((w.segments(), w.nodes.len()), (36_960, 18_963));
    assert_eq!(w.ends.len(), 2 * w.segments());
    let w = hover(60, 144, 20_000, 1);
    assert_eq!((w.segments(), w.targets.len()), (34_560, 54_564));
    assert!(w.core.iter().all(|&c| (0.004..0.12).contains(&c)));
}

/// What a recipe says before these words.
fn number_before(recipe: &str, words: &str) -> i64 {
    let before = recipe.split(words).next().filter(|b| b.len() < recipe.len());
    let digits = before.and_then(|b| b.rsplit(' ').next()).unwrap_or_else(|| panic!("no '{words}' in: {recipe}"));
    digits.parse().unwrap_or_else(|e| panic!("{digits} before '{words}': {e}"))
}

/// The vortices of a long wake are coherent, so that the modelled errors are too small. Calibration raises the orders of its lists,
/// and does not make them again: most of them are cores.
#[test]
fn calibration_of_a_long_wake_raises_orders_and_keeps_lists() {
    let w = lattice(1200, 0.0);
    let session = Session::cpu(2);
    let o =
        wfmm_plan_options { flags: WFMM_FLAG_REPRODUCIBLE, ..options(WFMM_METHOD_FMM, 1e-3, WFMM_REG_VATISTAS, 0, 0) };
    let mut plan = Plan::<f64>::new(&session, &o);
    plan.segments(&flat(&w.nodes), &w.ends, &w.circulation, Some(&w.core));
    plan.targets(&flat(&w.targets));
    plan.prepare();
    let prepared = plan.recipe();
    plan.velocity(&mut vec![0.0; 3 * w.targets.len()], None);
    let (evaluated, report) = (plan.recipe(), plan.report());
    let of_lists = |recipe: &str| {
        [" cell pairs by M2L", " element pairs directly", " more because"].map(|words| number_before(recipe, words))
    };
    assert_eq!(of_lists(&prepared), of_lists(&evaluated));
    let order = number_before(&prepared.replace(';', " ;"), " ;");
    assert!(i64::from(report.order) > order, "{prepared}\n{evaluated}");
    let error = plan.check(2000, 7);
    assert!(error < 1e-3 && error > 1e-5, "{error:.1e}");
}
