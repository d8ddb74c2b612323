//! What a plan keeps on the GPU from one evaluation to the next.

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
        for kind in [Kind::Segments, Kind::Particles] {
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
