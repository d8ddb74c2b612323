//! What a plan keeps on the GPU from one evaluation to the next, and what it needs where sources and images in a plane nearly cancel.

use super::*;

fn velocity(plan: &mut Plan<f64>, m: usize) -> Vec<f64> {
    let mut u = vec![0.0; 3 * m];
    plan.velocity(&mut u, None);
    u
}

/// Trees of few segments take them whole, where there are few targets too; others have room for pieces.
#[test]
fn segments_stay_while_their_targets_become_few() {
    with_gpu("kept::segments_stay_while_their_targets_become_few", &[], || {
        let (cpu, gpu) = (Session::cpu(1), Session::gpu());
        let all = case("cube", Kind::Segments, 1500, 20_000, 1.0);
        let o = options(WFMM_METHOD_FMM, 1e-3, WFMM_REG_NONE, WFMM_REG_NONE, 0);
        for counts in [[20_000, 1000, 20_000], [1000, 20_000, 1000]] {
            let mut plan = Plan::new(&gpu, &o);
            fill(&mut plan, &all);
            for m in counts {
                let c = Case { targets: all.targets[..m].to_vec(), ..all.clone() };
                plan.targets(&flat(&c.targets));
                let want = reference(&cpu, &c, WFMM_REG_NONE, WFMM_REG_NONE);
                let error = relative_l2(&velocity(&mut plan, m), &want.main);
                assert!(error <= 1e-3 && plan.report().method == WFMM_METHOD_FMM, "{m} of {counts:?}: {error:.1e}");
            }
        }
    });
}

/// `WFMM_FLAG_REPRODUCIBLE`: neither trees nor their depth outlive the inputs that they are of.
#[test]
fn earlier_problems_do_not_show_where_bits_must_repeat() {
    with_gpu("kept::earlier_problems_do_not_show_where_bits_must_repeat", &[], || {
        let gpu = Session::gpu();
        for &kind in values(&[Kind::Segments], &[Kind::Segments, Kind::Particles]) {
            let (c, other) = (case("cube", kind, 2500, 2000, 1.0), case("64 clusters", kind, 4000, 6000, 3.0));
            let o = options(WFMM_METHOD_FMM, 1e-3, WFMM_REG_VATISTAS, WFMM_REG_GAUSS_ERF, 0);
            let o = wfmm_plan_options { flags: WFMM_FLAG_REPRODUCIBLE, ..o };
            let of = |plan: &mut Plan<f64>, c: &Case| {
                fill(plan, c);
                velocity(plan, c.targets.len())
            };
            let want = of(&mut Plan::new(&gpu, &o), &c);
            let mut used = Plan::new(&gpu, &o);
            of(&mut used, &other);
            assert!(of(&mut used, &c) == want, "{kind:?}: another problem shows");
            let wider: Vec<[f64; 3]> = c.targets.iter().map(|x| x.map(|v| 1.3 * v - 0.1)).collect();
            used.targets(&flat(&wider));
            velocity(&mut used, wider.len());
            used.targets(&flat(&c.targets));
            assert!(velocity(&mut used, c.targets.len()) == want, "{kind:?}: other targets show");
            assert!(velocity(&mut used, c.targets.len()) == want, "{kind:?}: the second of two shows");
        }
    });
}

/// Few targets beside a plane, which are mirrored in place of the sources, in single arrays; then targets far from it by the same plan.
#[test]
fn targets_beside_a_plane_have_the_digits_of_single_arrays() {
    with_gpu("kept::targets_beside_a_plane_have_the_digits_of_single_arrays", &[], || {
        let (cpu, gpu, mut r) = (Session::cpu(1), Session::gpu(), Random::new(17));
        let position = 100.25;
        let mut above = |least: f64, most: f64| [r.unit(), r.unit(), position + r.log_between(least, most)];
        let mut c = Case::default();
        for k in 0..1200 {
            c.position.push(above(1e-4, 1e-3));
            c.strength.push([f64::from(k % 7) - 3.0, f64::from(k % 5) - 2.0, 0.0]);
        }
        c.particle_core = vec![0.0; c.position.len()];
        let of = options(WFMM_METHOD_FMM, 1e-4, WFMM_REG_NONE, WFMM_REG_NONE, 0);
        let mut plan = Plan::<f32>::new(&gpu, &wfmm_plan_options { plane_axis: 3, plane_position: position, ..of });
        for (least, most) in [(0.05, 0.2), (0.5, 2.0)] {
            c.targets = (0..100).map(|_| above(least, most)).collect();
            let c = c.clone().rounded();
            let want = reference(&cpu, &c.with_images(2, position), WFMM_REG_NONE, WFMM_REG_NONE);
            fill(&mut plan, &c);
            let mut u = vec![0.0; 300];
            plan.velocity(&mut u, None);
            let error = relative_l2(&u.iter().map(|&u| f64::from(u)).collect::<Vec<_>>(), &want.main);
            assert!(
                plan.recipe().contains("mirror images in the ground plane are evaluated together"),
                "{}",
                plan.recipe()
            );
            assert!(error <= 1e-4, "{error:.1e}: {}", plan.recipe());
        }
    });
}
