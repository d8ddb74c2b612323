//! Shares of the ranks: by number at first, then by the work of the evaluation before, or the host's.
//!
//! Enters: a cluster in an empty box, over a group of threads. Leaves: how much the busiest rank has to do.

mod ranks;

use ranks::support::cases::{Case, Kind, case};
use ranks::*;
use wakefmm::backend::Field;
use wakefmm::backend::cpu::distributed::study::{Figures, Study};
use wakefmm::backend::cpu::sources::Particle;
use wakefmm::options::*;
use wakefmm::plan::Plan;

const FIELD: Field = Field::Velocity { gradient: false };
const RANKS: usize = 8;

/// All sources and a third of the targets in a small part of the box, where a target has many neighbours.
fn clustered() -> Case {
    let mut c = case("cube", Kind::Particles, 8000, 24_000, 1.0);
    // Cores reach over some hundred neighbours.
    c.particle_core.iter_mut().for_each(|s| *s = 0.01);
    let shrink = |x: &mut [f64; 3]| *x = x.map(|v| 0.2 + 0.1 * v);
    c.position.iter_mut().for_each(shrink);
    c.targets[..8000].iter_mut().for_each(shrink);
    c
}

/// The busiest rank's work over the mean.
fn imbalance(plan: &Plan) -> f64 {
    let recipe = plan.recipe();
    let rest = recipe.split("the busiest has ").nth(1).unwrap_or_else(|| panic!("{recipe}"));
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

/// Imbalances of three evaluations, between which everything is set again, and the error of the last field.
fn evaluations(c: &Case, flags: u64, want: &[f64]) -> ([f64; 3], f64) {
    let parts = on_all(RANKS, |rank, end| {
        // In double precision and with leaves of a given size, since a share ends where a leaf ends: large leaves make large steps, and the
        // size that a plan chooses depends on the speeds that it measured.
        let (precision, leaf_capacity) = (WFMM_PRECISION_F64, 32);
        let o = wfmm_plan_options { flags, precision, leaf_capacity, ..plan_options(WFMM_METHOD_FMM, 1e-4) };
        let mut plan = plan_of(end, &o);
        // The caller's own division is by the order of the numbers: slabs of nothing.
        let (mine, numbers) = part(c, SPLITS[0].1, rank, RANKS);
        let mut u = vec![];
        let found = [0, 1, 2].map(|_| {
            fill(&mut plan, &mine).unwrap();
            u = field_of(&mut plan, FIELD, numbers.len()).unwrap().0;
            imbalance(&plan)
        });
        (found, numbers, u)
    });
    let mut u = vec![f64::NAN; want.len()];
    for (_, numbers, values) in &parts {
        numbers.iter().zip(values.chunks_exact(3)).for_each(|(&t, v)| u[3 * t..3 * t + 3].copy_from_slice(v));
    }
    assert!(parts.iter().all(|p| p.0 == parts[0].0), "all ranks say the same");
    (parts[0].0, relative_l2(&u, want))
}

#[test]
fn shares_follow_the_work_of_the_evaluation_before() {
    let c = clustered();
    let want = exact(&c, FIELD).0;
    let (found, error) = evaluations(&c, 0, &want);
    println!("busiest over mean: {found:?} by number, then by work; error {error:.1e}");
    assert!(error <= 1e-4, "{error:e}");
    assert!(found[0] > 1.35, "the case is too easy: {found:?}");
    assert!(found[1] < 1.25 && found[2] < 1.25, "{found:?}");
}

#[test]
fn shares_stay_with_the_hosts_partition_and_where_fields_are_reproducible() {
    let c = clustered();
    let want = exact(&c, FIELD).0;
    for flags in [WFMM_FLAG_HOST_PARTITION, WFMM_FLAG_REPRODUCIBLE] {
        let (found, error) = evaluations(&c, flags, &want);
        println!("flags {flags}: busiest over mean {found:?}; error {error:.1e}");
        assert!(error <= 1e-4, "{error:e}");
        assert!(found[0] == found[1] && found[1] == found[2], "nothing is kept from call to call: {found:?}");
    }
}

/// Numbers after `before` in a text.
fn number(text: &str, before: &str) -> f64 {
    let rest = text.split(before).nth(1).unwrap_or_else(|| panic!("no {before} in {text}"));
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

/// Virtual ranks of the study are what a session of as many ranks says of itself; its budget may be calibrated meanwhile.
#[test]
fn virtual_ranks_hold_what_those_of_a_session_hold() {
    let n = 30_000;
    let mut c = case("cube", Kind::Particles, n, n, 1.0);
    c.particle_core.iter_mut().for_each(|s| *s = 0.0);
    let particle = |k: usize| Particle { x: c.position[k], strength: c.strength[k], core: 0.0 };
    let mut study = Study::new(vec![], (0..n).map(particle).collect(), &c.targets, 1e-3);
    let (leaf_capacity, precision) = (study.leaf_capacity() as i32, WFMM_PRECISION_F64);
    for ranks in [2, 6] {
        let told = on_all(ranks, |rank, end| {
            // A plan's first ranges have equal numbers; leaves do not depend on measured costs.
            let o = wfmm_plan_options { leaf_capacity, precision, ..plan_options(WFMM_METHOD_FMM, 1e-3) };
            let mut plan = plan_of(end, &o);
            let (mine, numbers) = part(&c, SPLITS[2].1, rank, ranks);
            fill(&mut plan, &mine).unwrap();
            field_of(&mut plan, FIELD, numbers.len()).unwrap();
            (plan.recipe(), plan.report().cells as f64)
        });
        let (recipe, _) = &told[0];
        let (found, _) = study.figures(ranks, &(0..ranks).collect::<Vec<_>>());
        let most = |of: fn(&Figures) -> usize| found.iter().map(of).max().unwrap() as f64;
        let pairs = [
            (most(|f| f.guests), number(recipe, "own sources at most ")),
            (most(|f| f.multipoles), number(recipe, "sources of others and ")),
        ];
        println!("{ranks} ranks: sources of others, multipoles, of the study and of a session: {pairs:?}");
        for (study, session) in pairs {
            assert!(study > 0.0 && (0.6..1.6).contains(&(study / session)), "{ranks} ranks: {pairs:?}");
        }
        assert_eq!(found.iter().map(|f| f.sources).sum::<usize>(), n);
        assert_eq!(found.iter().map(|f| f.targets).sum::<usize>(), n);
        let sent: f64 = found.iter().map(|f| f.sent).sum();
        let received: f64 = found.iter().map(|f| f.received).sum();
        assert!(sent > 0.0 && (sent / received - 1.0).abs() < 1e-12, "{sent} sent, {received} received");
    }
}
