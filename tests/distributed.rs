//! Sessions of many ranks: each rank's field against the direct sum of one process over all sources, at all targets.
//!
//! Enters: small problems, split in every way, over a group of threads. No test waits longer than its time limit.

mod ranks;

use ranks::domains::keeps;
use ranks::support::cases::{Case, Kind, case};
use ranks::*;
use wakefmm::backend::Field;
use wakefmm::options::*;
use wakefmm::plan::Plan;

#[test]
fn direct_sums_are_those_of_one_process_however_elements_are_split() {
    let wake = case("helical wake", Kind::Both, 400, 300, 1.0);
    let charges = charges(300, 200);
    for (c, field) in [(&wake, VELOCITY), (&charges, POTENTIAL)] {
        let (u, g) = exact(c, field);
        for ranks in [1, 2, 3, 4, 8] {
            for (name, split) in SPLITS {
                let got = together(c, ranks, split, &plan_options(WFMM_METHOD_DIRECT, 1e-6), field);
                let errors = (relative_l2(&got.0, &u), relative_l2(&got.1, &g));
                assert!(errors.0 < 1e-13 && errors.1 < 1e-13, "{ranks} ranks, {name}: {errors:?}");
                assert!(got.3 < 1e-13, "{ranks} ranks, {name}: check says {:e}", got.3);
                assert!(got.2.recipe().starts_with("Direct sum"), "{}", got.2.recipe());
            }
        }
    }
}

/// Whether a kernel is singular is said of the elements of all ranks, on all ranks.
#[test]
fn kernels_without_a_radius_anywhere_are_singular_on_every_rank() {
    let mut c = case("cube", Kind::Segments, 200, 50, 1.0);
    let o = plan_options(WFMM_METHOD_DIRECT, 1e-4);
    let singular = |c: &Case, split: Split| {
        let told = on_all(2, |rank, end| {
            let mut plan = plan_on(&session_options(), end, &o);
            let (mine, _) = part(c, split, rank, 2);
            fill(&mut plan, &mine).unwrap();
            field_of(&mut plan, VELOCITY, mine.targets.len()).unwrap();
            (plan.report().singular, plan.recipe().contains("singular"))
        });
        assert_eq!(told[0], told[1]);
        told[0]
    };
    // Radii on one rank only.
    let n = c.segment_core.len();
    c.segment_core.iter_mut().enumerate().for_each(|(k, r)| *r = if k < n / 2 { 0.1 } else { 0.0 });
    assert_eq!(singular(&c, SPLITS[0].1), (0, false));
    // None, and one rank without segments.
    c.segment_core.iter_mut().for_each(|r| *r = 0.0);
    assert_eq!(singular(&c, SPLITS[1].1), (1, true));
}

/// The FMM within its tolerance, in field and gradient, and the error that is told near the true one.
fn holds(
    c: &Case,
    what: &str,
    ranks: usize,
    split: (&str, Split),
    tolerance: f64,
    field: Field,
    exact: &(Vec<f64>, Vec<f64>),
) {
    holds_by(c, what, ranks, split, &plan_options(WFMM_METHOD_FMM, tolerance), field, exact);
}

/// The same with these options, by the method that is asked for; the plan of the first rank.
fn holds_by(
    c: &Case,
    what: &str,
    ranks: usize,
    split: (&str, Split),
    o: &wfmm_plan_options,
    field: Field,
    exact: &(Vec<f64>, Vec<f64>),
) -> Plan {
    let plan = keeps(&session_options(), c, what, ranks, split, o, field, exact);
    assert_eq!(plan.report().method, o.method, "{what}, {ranks} ranks, {}: {}", split.0, plan.recipe());
    plan
}

#[test]
fn the_fmm_keeps_its_tolerance_however_elements_are_split() {
    let c = case("helical wake", Kind::Both, 3000, 2500, 1.0);
    let want = exact(&c, VELOCITY);
    for ranks in [1, 2, 3, 4, 8] {
        for split in SPLITS {
            holds(&c, "helical wake", ranks, split, 1e-4, VELOCITY, &want);
        }
    }
}

/// What is far from a rank's targets comes as multipoles, which the treecode evaluates there.
#[test]
fn the_treecode_keeps_its_tolerance_however_elements_are_split() {
    let wake = case("helical wake", Kind::Both, 3000, 2500, 1.0);
    let want = exact(&wake, VELOCITY);
    for (ranks, split) in [(1, 2), (2, 0), (3, 1), (4, 3), (8, 4)] {
        for tolerance in [1e-3, 1e-6] {
            let o = plan_options(WFMM_METHOD_TREECODE, tolerance);
            let plan = holds_by(&wake, "treecode", ranks, SPLITS[split], &o, VELOCITY, &want);
            assert!(plan.recipe().starts_with("Treecode"), "{}", plan.recipe());
            assert_eq!(plan.report().precision == WFMM_PRECISION_F32, tolerance == 1e-3, "{}", plan.recipe());
        }
    }
    let charges = charges(4000, 3000);
    let o = plan_options(WFMM_METHOD_TREECODE, 1e-4);
    let plan = holds_by(&charges, "treecode of charges", 3, SPLITS[3], &o, POTENTIAL, &exact(&charges, POTENTIAL));
    assert!(plan.report().far_pairs > 0, "{}", plan.recipe());
}

/// Few targets of many sources, at a low accuracy, are the treecode's, on many ranks as on one; by costs that are not measured.
#[test]
fn auto_finds_the_treecode_on_many_ranks() {
    let mut c = case("cube", Kind::Particles, 200_000, 1500, 1.0);
    c.particle_core.iter_mut().for_each(|s| *s = 0.0);
    let plain = Field::Velocity { gradient: false };
    let want = exact(&c, plain);
    for ranks in [1, 2] {
        let o = wfmm_plan_options { flags: WFMM_FLAG_REPRODUCIBLE, ..plan_options(WFMM_METHOD_AUTO, 1e-2) };
        let (u, _, plan, _) = together(&c, ranks, SPLITS[2].1, &o, plain);
        assert!(relative_l2(&u, &want.0) <= o.tolerance, "{}", plan.recipe());
        assert_eq!(plan.report().method, WFMM_METHOD_TREECODE, "{}", plan.recipe());
    }
}

/// Strengths of pseudo-particles travel in place of multipoles.
#[test]
fn pseudo_particles_keep_their_tolerance_on_many_ranks() {
    let wake = case("helical wake", Kind::Both, 400, 300, 1.0);
    let charges = charges(500, 300);
    let mut most = 0;
    for (k, (c, field)) in [(&wake, VELOCITY), (&charges, POTENTIAL)].into_iter().enumerate() {
        let want = exact(c, field);
        for (ranks, split) in [(2, 0), (3, 1 + k), (4, 3 + k)] {
            let o = plan_options(WFMM_METHOD_FMM, 1e-2);
            let o = wfmm_plan_options { expansion: WFMM_EXPANSION_PSEUDO_PARTICLES, leaf_capacity: 10, ..o };
            let plan = holds_by(c, "pseudo-particles", ranks, SPLITS[split], &o, field, &want);
            assert_eq!(plan.report().precision, WFMM_PRECISION_F64, "{}", plan.recipe());
            assert!(plan.report().far_pairs > 0, "{}", plan.recipe());
            most = most.max(number(&plan.recipe(), "sources of others and "));
        }
    }
    assert!(most > 0, "every cell was opened");
}

#[test]
fn velocities_are_in_single_precision_where_that_serves() {
    let c = case("helical wake", Kind::Both, 3000, 2500, 1.0);
    // Too close for single precision, on different ranks; too strong for it.
    let (mut close, mut strong) = (c.clone(), c.clone());
    close.targets[2000] = close.position[3].map(|x| x + 1e-9);
    let factor = 1e152;
    strong.strength.iter_mut().flatten().chain(&mut strong.circulation).for_each(|a| *a *= factor);
    let fmm = plan_options(WFMM_METHOD_FMM, 1e-3);
    let (single, double) = (WFMM_PRECISION_F32, WFMM_PRECISION_F64);
    let cases = [
        ("the library's choice", &c, fmm, single),
        ("single is asked for", &c, wfmm_plan_options { precision: single, ..fmm }, single),
        ("single is asked for, too close", &close, wfmm_plan_options { precision: single, ..fmm }, double),
        ("double is asked for", &c, wfmm_plan_options { precision: double, ..fmm }, double),
        ("a tight tolerance", &c, wfmm_plan_options { tolerance: 9e-5, ..fmm }, double),
        ("reproducible", &c, wfmm_plan_options { flags: WFMM_FLAG_REPRODUCIBLE, ..fmm }, double),
        ("a close pair", &close, fmm, double),
        ("strengths out of range", &strong, fmm, double),
    ];
    for (what, c, o, precision) in cases {
        let want = exact(c, VELOCITY);
        for ranks in [1, 3] {
            let (u, g, plan, found) = together(c, ranks, SPLITS[2].1, &o, VELOCITY);
            let errors = (relative_l2(&u, &want.0), relative_l2(&g, &want.1));
            let told = format!("{what}, {ranks} ranks: {errors:?}, check {found:e}; {}", plan.recipe());
            assert!(errors.0 <= o.tolerance && errors.1 <= 30.0 * o.tolerance && found <= o.tolerance, "{told}");
            assert_eq!((plan.report().precision, plan.report().method), (precision, WFMM_METHOD_FMM), "{told}");
            assert_eq!(plan.recipe().contains("Single precision serves"), precision == single, "{told}");
        }
    }
}

#[test]
fn the_fmm_keeps_its_tolerance_for_every_distribution() {
    for (k, name) in ranks::support::cases::DISTRIBUTIONS.into_iter().enumerate() {
        let kind = [Kind::Particles, Kind::Segments, Kind::Both][k % 3];
        let c = case(name, kind, 2500, 2000, 1.0);
        let want = exact(&c, VELOCITY);
        for (ranks, tolerance) in [(2, 1e-3), (4, 1e-6)] {
            let (u, g, _, found) =
                together(&c, ranks, SPLITS[2].1, &plan_options(WFMM_METHOD_FMM, tolerance), VELOCITY);
            let errors = (relative_l2(&u, &want.0), relative_l2(&g, &want.1));
            println!(
                "{name}, {ranks} ranks, {tolerance:.0e}: {:.1e} and {:.1e}, check {found:.1e}",
                errors.0, errors.1
            );
            assert!(errors.0 <= tolerance && errors.1 <= 30.0 * tolerance, "{name}, {ranks} ranks: {errors:?}");
        }
    }
}

/// Numbers after `before` in a text.
fn number(text: &str, before: &str) -> usize {
    let rest = text.split(before).nth(1).unwrap_or_else(|| panic!("no {before} in {text}"));
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

/// What travels is a surface, not a volume: far less than all sources come to any rank, and most cells as multipoles.
#[test]
fn a_rank_gets_a_small_part_of_the_others_sources() {
    let n = 40_000;
    let mut c = case("cube", Kind::Particles, n, n, 1.0);
    // Without cores, whose corrections reach far at this density.
    c.particle_core.iter_mut().for_each(|s| *s = 0.0);
    let want = exact(&c, Field::Velocity { gradient: false });
    for (ranks, method) in [(2, WFMM_METHOD_FMM), (8, WFMM_METHOD_FMM), (2, WFMM_METHOD_TREECODE)] {
        let o = plan_options(method, 1e-3);
        let (u, _, plan, _) = together(&c, ranks, SPLITS[0].1, &o, Field::Velocity { gradient: false });
        let error = relative_l2(&u, &want.0);
        let recipe = plan.recipe();
        println!("{ranks} ranks: {error:.1e}; {recipe}");
        assert!(error <= 1e-3, "{ranks} ranks: {error:e}");
        let (guests, cells) = (number(&recipe, "own sources at most "), number(&recipe, "sources of others and "));
        let others = n * (ranks - 1) / ranks;
        assert!(4 * guests < 3 * others && cells > 20, "{ranks} ranks: {guests} sources, {cells} cells");
    }
}

#[test]
fn the_fmm_of_charges_keeps_its_tolerance() {
    let c = charges(4000, 3000);
    let want = exact(&c, POTENTIAL);
    for (ranks, tolerance) in [(1, 1e-4), (3, 1e-4), (4, 1e-8)] {
        holds(&c, "charges", ranks, SPLITS[3], tolerance, POTENTIAL, &want);
    }
}

#[test]
fn strengths_targets_and_sources_change_from_call_to_call() {
    let mut c = case("cube", Kind::Particles, 3000, 2000, 1.0);
    let ranks = 3;
    let group: Vec<_> = (0..3).collect();
    let mut moved = vec![];
    for k in group {
        c.position.iter_mut().for_each(|x| x[k] += 0.01);
        c.targets.truncate(2000 - 300 * k);
        moved.push((c.clone(), exact(&c, Field::Velocity { gradient: false }).0));
    }
    let moved = &moved;
    on_all(ranks, |rank, end| {
        let mut plan = plan_of(end, &plan_options(WFMM_METHOD_FMM, 1e-5));
        for (k, (c, want)) in moved.iter().enumerate() {
            let (mine, numbers) = part(c, SPLITS[k].1, rank, ranks);
            fill(&mut plan, &mine).unwrap();
            for factor in [1.0, -2.0] {
                if factor != 1.0 {
                    set_multiples(&mut plan, &mine, factor);
                }
                // Twice: the second time everything is there.
                for _ in 0..2 {
                    let u = field_of(&mut plan, Field::Velocity { gradient: false }, numbers.len()).unwrap().0;
                    let want: Vec<f64> =
                        numbers.iter().flat_map(|&t| want[3 * t..3 * t + 3].iter().map(|v| factor * v)).collect();
                    assert!(numbers.is_empty() || relative_l2(&u, &want) < 3e-5);
                }
            }
        }
    });
}

#[test]
fn no_sources_or_no_targets_anywhere_are_no_error() {
    for (n, m) in [(0, 5), (5, 0), (0, 0)] {
        let mut c = case("cube", Kind::Particles, 5, 5, 1.0);
        c.position.truncate(n);
        c.strength.truncate(n);
        c.particle_core.truncate(n);
        c.targets.truncate(m);
        for method in [WFMM_METHOD_AUTO, WFMM_METHOD_FMM, WFMM_METHOD_DIRECT] {
            let (u, ..) =
                together(&c, 3, SPLITS[2].1, &plan_options(method, 1e-3), Field::Velocity { gradient: false });
            assert!(u.len() == 3 * m && u.iter().all(|&v| v == 0.0));
        }
    }
}

/// Above a ground plane, in it and below it; the case lies in a box of edge about 1.
#[test]
fn a_ground_plane_mirrors_the_sources_of_all_ranks() {
    let wake = case("helical wake", Kind::Both, 1500, 1200, 1.0);
    let charges = charges(1500, 1000);
    for (c, field) in [(&wake, VELOCITY), (&charges, POTENTIAL)] {
        for (axis, position) in [(3, -0.05), (1, 0.4)] {
            let o = |method, tolerance| wfmm_plan_options {
                plane_axis: axis,
                plane_position: position,
                ..plan_options(method, tolerance)
            };
            let want = exact_of(c, field, &o(WFMM_METHOD_DIRECT, 1e-10));
            for (ranks, split) in [(1, 0), (3, 1), (4, 2), (4, 4)] {
                let direct = together(c, ranks, SPLITS[split].1, &o(WFMM_METHOD_DIRECT, 1e-6), field);
                let errors = (relative_l2(&direct.0, &want.0), relative_l2(&direct.1, &want.1));
                assert!(errors.0 < 1e-13 && errors.1 < 1e-13, "{ranks} ranks, direct: {errors:?}");
                assert!(direct.3 < 1e-13, "{ranks} ranks, direct: check says {:e}", direct.3);
                let tolerance = 1e-5;
                let (u, g, plan, found) = together(c, ranks, SPLITS[split].1, &o(WFMM_METHOD_FMM, tolerance), field);
                let errors = (relative_l2(&u, &want.0), relative_l2(&g, &want.1));
                println!("plane {axis} at {position}, {ranks} ranks: {errors:?}, check {found:.1e}");
                assert!(errors.0 <= tolerance && errors.1 <= 30.0 * tolerance, "{ranks} ranks: {errors:?}");
                assert!(found <= tolerance && found > 0.0, "{ranks} ranks: check says {found:e}");
                assert_eq!(plan.report().method, WFMM_METHOD_FMM, "{}", plan.recipe());
            }
        }
    }
}

/// Where the halves cancel all ranks tighten together: vortices along the plane and targets, all of them close to it, so that
/// what is left is a small part of what the halves are by themselves.
#[test]
fn halves_that_cancel_are_computed_again_by_all_ranks() {
    let mut c = case("cube", Kind::Particles, 1500, 900, 1.0);
    c.strength.iter_mut().for_each(|a| a[2] = 0.0);
    c.position.iter_mut().for_each(|x| x[2] *= 1e-5);
    c.targets.iter_mut().for_each(|x| x[2] *= 1e-5);
    c.particle_core.iter_mut().for_each(|s| *s = 1e-7);
    let o = |method, tolerance| wfmm_plan_options {
        plane_axis: 3,
        plane_position: -1e-6,
        ..plan_options(method, tolerance)
    };
    let field = Field::Velocity { gradient: false };
    let want = exact_of(&c, field, &o(WFMM_METHOD_DIRECT, 1e-10)).0;
    let free = exact_of(&c, field, &plan_options(WFMM_METHOD_DIRECT, 1e-10)).0;
    let norm = |u: &[f64]| u.iter().map(|u| u * u).sum::<f64>().sqrt();
    assert!(norm(&want) < 0.3 * norm(&free), "{} of {}", norm(&want), norm(&free));
    for split in [0, 1] {
        let (u, _, _, found) = together(&c, 3, SPLITS[split].1, &o(WFMM_METHOD_FMM, 1e-4), field);
        let error = relative_l2(&u, &want);
        assert!(error <= 1e-4 && found <= 1e-4, "{error:e}, check {found:e}");
    }
}

/// Under the reproducible flag fields do not depend on the number of ranks: where all elements together are in the order of one process,
/// those of expansions have its bits, and direct sums, which add rank after rank, agree to rounding.
#[test]
fn reproducible_fields_are_those_of_one_process() {
    let wake = case("helical wake", Kind::Both, 3000, 2500, 1.0);
    let charges = charges(2500, 2000);
    let pseudo =
        wfmm_plan_options { expansion: WFMM_EXPANSION_PSEUDO_PARTICLES, ..plan_options(WFMM_METHOD_FMM, 1e-2) };
    // Positions far from zero, whose last digits a shift would change.
    let mut far = case("helical wake", Kind::Both, 3000, 2500, 1.0);
    let places = [&mut far.points, &mut far.position, &mut far.targets].into_iter().flatten();
    places.for_each(|x| *x = [x[0] + 1000.1, x[1] - 37.3, x[2] + 0.7]);
    let in_box = wfmm_plan_options { period: [3.0, 3.5, 2.5], ..plan_options(WFMM_METHOD_FMM, 1e-3) };
    let above_plane = wfmm_plan_options { plane_axis: 3, plane_position: -0.2, ..plan_options(WFMM_METHOD_FMM, 1e-4) };
    let cases = [
        ("direct", plan_options(WFMM_METHOD_DIRECT, 1e-4), 1e-13),
        ("FMM", plan_options(WFMM_METHOD_FMM, 1e-4), 0.0),
        ("FMM, tight", plan_options(WFMM_METHOD_FMM, 1e-9), 0.0),
        ("treecode", plan_options(WFMM_METHOD_TREECODE, 1e-3), 0.0),
        ("the library's choice", plan_options(WFMM_METHOD_AUTO, 1e-2), 0.0),
        ("pseudo-particles", pseudo, 0.0),
        ("box", in_box, 0.0),
        ("plane", above_plane, 0.0),
    ];
    for (name, o, apart) in cases {
        let o = wfmm_plan_options { flags: WFMM_FLAG_REPRODUCIBLE, ..o };
        for (c, field) in [(&wake, VELOCITY), (&far, VELOCITY), (&charges, POTENTIAL)] {
            let one = exact_of(c, field, &o);
            for ranks in [1, 2, 4] {
                let (u, g, plan, found) = together(c, ranks, SPLITS[0].1, &o, field);
                let errors = (relative_l2(&u, &one.0), relative_l2(&g, &one.1));
                let told = format!("{name}, {field:?}, {ranks} ranks: {errors:?}, check {found:e}; {}", plan.recipe());
                assert!(errors.0 <= apart && errors.1 <= apart && found <= o.tolerance, "{told}");
                assert_eq!(plan.recipe().contains("as one process would"), apart == 0.0 && ranks > 1, "{told}");
            }
        }
    }
}

/// The same elements in another order, as other ranks have them, are added in another order; the trees are the same.
#[test]
fn reproducible_fields_agree_to_rounding_however_elements_are_split() {
    let c = case("helical wake", Kind::Both, 3000, 2500, 1.0);
    let o = wfmm_plan_options { flags: WFMM_FLAG_REPRODUCIBLE, ..plan_options(WFMM_METHOD_FMM, 1e-4) };
    let one = exact_of(&c, VELOCITY, &o);
    for (name, split) in SPLITS {
        let run = || together(&c, 4, split, &o, VELOCITY);
        let (u, g, ..) = run();
        let errors = (relative_l2(&u, &one.0), relative_l2(&g, &one.1));
        println!("{name}: {errors:?}");
        assert!(errors.0 <= 1e-13 && errors.1 <= 1e-12, "{name}: {errors:?}");
        assert!(u.iter().zip(&run().0).all(|(a, b)| a.to_bits() == b.to_bits()), "{name}: other bits");
    }
}
