//! Targets that are sources: in single precision the near field knows the pair of each with itself, in whatever order the caller
//! has them and whatever else is a target. The driver holds what the kernels find against a search by position.

use super::*;

/// Sources and targets: small trees by clusters and by blocks, and those of the kernels for any size.
const SIZES: [[usize; 2]; 3] = [[900, 1100], [9000, 6000], [17_000, 4000]];

/// Every third source in another order, and as many other points.
fn some_sources_and_others(mut c: Case, m: usize, r: &mut Random) -> (Case, usize) {
    let positions = if c.charge.is_empty() { &c.position } else { &c.charge_position };
    let mut targets: Vec<_> = positions.iter().step_by(3).copied().take(m / 2).collect();
    let own = targets.len();
    targets.extend(c.targets.iter().take(m - own));
    for k in (1..targets.len()).rev() {
        targets.swap(k, (r.unit() * (k + 1) as f64) as usize);
    }
    c.targets = targets;
    (c, own)
}

fn each_is_found(settings: &[(&str, &str)], name: &str) {
    let settings = [settings, &[("EMULATED_OWN_SOURCES", "1")]].concat();
    let text = with_gpu(&format!("own_sources::{name}"), &settings, || {
        let (cpu, gpu) = (Session::cpu(2), Session::gpu());
        let mut r = Random::new(13);
        let kinds = [(Kind::Charges, 0), (Kind::Particles, WFMM_REG_NONE), (Kind::Particles, WFMM_REG_GAUSS_ERF)];
        for (k, (kind, core)) in kinds.into_iter().enumerate() {
            for (s, ([n, m], distribution)) in SIZES.iter().zip(["cube", "64 clusters", "two thin rings"]).enumerate() {
                if !takes(k + s, 2) {
                    continue;
                }
                let (c, own) = some_sources_and_others(case(distribution, kind, *n, *m, 1.0).rounded(), *m, &mut r);
                let want = reference(&cpu, &c, 0, core);
                let o = options(WFMM_METHOD_FMM, 1e-2, 0, core, 0);
                println!("\nown: {own} of {m} targets");
                let (got, outcome) = evaluate::<f32>(&gpu, &c, &o);
                assert_eq!(outcome.method, WFMM_METHOD_FMM, "{}", outcome.recipe);
                close(&got, &want, 1e-2, &format!("{kind:?} {distribution}: {}", outcome.recipe));
            }
        }
    });
    if text.is_empty() {
        return; // the child
    }
    // Each announcement is followed by what every evaluation of the problem found.
    let mut announced = String::new();
    let mut found = 0;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("own: ") {
            announced = format!("{rest} are sources");
        } else if line.ends_with(" targets are sources") {
            assert_eq!(line, announced);
            found += 1;
        }
    }
    let problems = (0..3 * SIZES.len()).filter(|number| takes(number / SIZES.len() + number % SIZES.len(), 2)).count();
    assert!(found >= problems, "{found} near fields\n{text}");
}

#[test]
fn in_another_order_with_other_targets() {
    each_is_found(&[], "in_another_order_with_other_targets");
}

#[test]
fn on_gpus_without_clusters() {
    each_is_found(&[("FAKE_CUDA", "ampere")], "on_gpus_without_clusters");
}
