//! What the CPU engine tells: recipe, report, memory.

#[path = "../bench/support/mod.rs"]
mod support;

use support::accuracy::{fill, options};
use support::api::{Plan, Session};
use support::cases::{Case, Kind, case};
use wakefmm::options::*;
use wakefmm::report::wfmm_report;

fn plan_of(session: &Session, c: &Case) -> Plan<f64> {
    let o = options(WFMM_METHOD_FMM, 1e-4, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF, 0);
    let mut plan = Plan::new(session, &o);
    fill(&mut plan, c);
    plan
}

fn velocity(plan: &mut Plan<f64>, c: &Case) {
    plan.velocity(&mut vec![0.0; 3 * c.targets.len()], None);
}

#[test]
fn what_was_prepared_is_told_before_an_evaluation() {
    let session = Session::cpu(2);
    let c = case("cube", Kind::Particles, 6000, 6000, 1.0);
    let mut plan = plan_of(&session, &c);
    let inputs = plan.report().host_bytes;
    assert!(plan.recipe().starts_with("Nothing was chosen"), "{}", plan.recipe());
    plan.prepare();
    let recipe = plan.recipe();
    assert!(recipe.starts_with("FMM in f32") && !recipe.contains("Error found"), "{recipe}");
    let r = plan.report();
    // Copies of positions alone are 48 bytes an element; trees and lists come to more.
    assert!(r.host_bytes - inputs > 48 * 12_000, "{} of {inputs}", r.host_bytes);
    // Nothing was evaluated.
    let nothing = wfmm_report { struct_size: r.struct_size, host_bytes: r.host_bytes, ..Default::default() };
    assert_eq!(format!("{r:?}"), format!("{nothing:?}"));
    velocity(&mut plan, &c);
    // Calibration may have changed the orders since.
    let (told, now) = (recipe.split(" a pair of cells").next().unwrap(), plan.recipe());
    assert!(now.starts_with(told) && now.contains("Error found"), "{now}");
    assert!(plan.report().order > 0);
}

#[test]
fn memory_is_that_of_both_fields() {
    let session = Session::cpu(2);
    let mut c = case("cube", Kind::Particles, 6000, 3000, 1.0);
    (c.charge_position, c.charge) = (vec![[0.5; 3]; 10], vec![1.0; 10]);
    let mut plan = plan_of(&session, &c);
    velocity(&mut plan, &c);
    let one = plan.report().host_bytes;
    plan.potential(&mut vec![0.0; 3000], None);
    let both = plan.report().host_bytes;
    assert!(both > one, "{one} with one field, {both} with both");
}

#[test]
fn pairs_of_the_core_correction_are_told() {
    let session = Session::cpu(2);
    for (kind, core) in [(Kind::Particles, 0.0), (Kind::Particles, 0.1), (Kind::Both, 0.1)] {
        let mut c = case("cube", kind, 6000, 6000, 1.0);
        c.particle_core.fill(core);
        let mut plan = plan_of(&session, &c);
        velocity(&mut plan, &c);
        let (r, recipe) = (plan.report(), plan.recipe());
        assert_eq!(r.core_pairs > 0, core > 0.0, "{recipe}");
        assert!(r.core_pairs < r.near_pairs, "{recipe}");
        assert!(recipe.contains(&format!("{} more because their cores", r.core_pairs)), "{recipe}");
        assert!(recipe.contains(&format!("{} element pairs directly", r.near_pairs - r.core_pairs)), "{recipe}");
    }
}

#[test]
fn a_check_after_a_field_of_no_sources_is_of_that_field() {
    let session = Session::cpu(2);
    let c = case("cube", Kind::Particles, 6000, 3000, 1.0);
    let mut plan = plan_of(&session, &c);
    plan.charges(&[], &[]);
    velocity(&mut plan, &c);
    assert!(plan.check(100, 1) > 0.0);
    plan.potential(&mut vec![1.0; 3000], None);
    assert_eq!(plan.check(100, 1), 0.0);
}
