//! What is left out is within the budget, against exact corrections at many positions.

use super::*;
use crate::backend::cpu::tree::Root;
use crate::math::biot_savart::{Induced, particle, segment};
use crate::math::regularization::Part;
use crate::options::Regularization;

struct Random(u64);

impl Random {
    fn even(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
    fn in_ball(&mut self, center: [f64; 3], radius: f64) -> [f64; 3] {
        loop {
            let v: [f64; 3] = std::array::from_fn(|_| 2.0 * self.even() - 1.0);
            if dot(v, v) <= 1.0 {
                return std::array::from_fn(|i| center[i] + radius * v[i]);
            }
        }
    }
}

const SEGMENT: [Regularization; 4] =
    [Regularization::Vatistas, Regularization::LambOseen, Regularization::Scully, Regularization::Offset];

/// Bounds are in single precision: what is less may count as zero.
const NOTHING: f64 = 1e-37;

/// Elements of one tree: segments of a hundredfold spread of lengths and cores, and particles.
fn elements(r: &mut Random, count: usize) -> Vec<CoreElement> {
    let one = |k: usize| {
        let is_segment = !k.is_multiple_of(3);
        let length = 0.1 * 100f64.powf(-r.even());
        let half = if is_segment { r.in_ball([0.0; 3], length) } else { [0.0; 3] };
        let core = if k.is_multiple_of(11) { 0.0 } else { 0.3 * 300f64.powf(-r.even()) };
        CoreElement { middle: r.in_ball([0.0; 3], 1.0), half, strength: 0.1 + r.even(), core, is_segment }
    };
    (0..count).map(one).collect()
}

/// The exact correction at a position: field and gradient.
fn correction(e: &CoreElement, kinds: [Regularization; 2], x: [f64; 3]) -> [f64; 2] {
    let part = Part::Correction;
    let found: Induced = if e.is_segment {
        let [p1, p2] = [-1.0, 1.0].map(|s| std::array::from_fn(|i| e.middle[i] + s * e.half[i]));
        segment(kinds[0], part, x, p1, p2, e.strength / (2.0 * dot(e.half, e.half).sqrt()), e.core)
    } else {
        particle(kinds[1], part, x, e.middle, [e.strength, 0.0, 0.0], e.core)
    };
    [dot(found.velocity, found.velocity).sqrt(), found.gradient.iter().map(|r| dot(*r, *r)).sum::<f64>().sqrt()]
}

#[test]
fn what_is_left_out_is_within_the_budget() {
    let (mut left_out, mut kept, mut needless) = (0, 0, 0);
    for (seed, kind) in SEGMENT.into_iter().enumerate() {
        let mut r = Random(17 + seed as u64);
        let all = elements(&mut r, 240);
        let points: Vec<[f64; 3]> = all.iter().map(|e| e.middle).collect();
        let half: Vec<[f64; 3]> = all.iter().map(|e| e.half).collect();
        let root = Root { corner: [-1.2; 3], edge: 2.4 };
        let (tree, _) = Tree::build(&points, &half, root, 40, None);
        let sorted: Vec<CoreElement> = tree.permutation.iter().map(|&k| all[k as usize]).collect();
        let kinds = [kind, Regularization::Winckelmans];
        let bounds = CoreBounds::new(kinds[0], kinds[1]);
        let cells = CellCores::of(&tree, &sorted, &bounds);
        let (budget, together) = ([1e-3, 2e-2], [f64::INFINITY; 2]);
        let reach = CoreReach::new(&bounds, &cells, budget, together);
        for _ in 0..40 {
            let radius = 0.3 * 30f64.powf(-r.even());
            let target = Cell { center: r.in_ball([0.0; 3], 2.0), radius, ..tree.cells[0] };
            for (k, leaf) in tree.cells.iter().enumerate().filter(|(_, c)| c.is_leaf()) {
                let mut out = vec![];
                reach.elements(leaf.begin..leaf.end, &target, [f64::INFINITY; 2], &mut vec![], &mut out);
                let listed = |k: u32| out.iter().any(|r| r.contains(&k));
                let matters = reach.matters(k as u32, leaf, &target);
                for k in leaf.begin..leaf.end {
                    let positions = (0..40).map(|_| r.in_ball(target.center, radius));
                    let most = positions.map(|x| correction(&sorted[k as usize], kinds, x));
                    let most = most.fold([0.0f64; 2], |a, b| [a[0].max(b[0]), a[1].max(b[1])]);
                    let small = most[0] <= budget[0] * (1.0 + 1e-5) && most[1] <= budget[1] * (1.0 + 1e-5);
                    assert!(small || listed(k), "{kind:?}, element {k}: {most:?} left out");
                    assert!(small || matters, "{kind:?}, element {k}: {most:?} in a cell that does not matter");
                    left_out += (!listed(k)) as u64;
                    kept += listed(k) as u64;
                    needless += (listed(k) && most[0] < 0.1 * budget[0] && most[1] < 0.1 * budget[1]) as u64;
                }
            }
        }
    }
    // The test sees both, and the bounds are not empty of meaning.
    assert!(left_out > 2_000 && kept > 2_000, "{left_out} left out, {kept} kept");
    assert!(4 * needless < kept, "{needless} of {kept} take less than a tenth of the budget");
}

/// Many that may be left out one by one, and not together.
#[test]
fn what_is_left_out_of_a_cell_is_within_the_budget_together() {
    let mut r = Random(5);
    let all: Vec<CoreElement> = (0..60)
        .map(|_| CoreElement {
            middle: r.in_ball([0.0; 3], 0.1),
            half: [0.0; 3],
            strength: 1.0,
            core: 0.05,
            is_segment: false,
        })
        .collect();
    let points: Vec<[f64; 3]> = all.iter().map(|e| e.middle).collect();
    let (tree, _) = Tree::build(&points, &[], Root { corner: [-0.2; 3], edge: 0.4 }, 100, None);
    let sorted: Vec<CoreElement> = tree.permutation.iter().map(|&k| all[k as usize]).collect();
    let kinds = [Regularization::None, Regularization::Winckelmans];
    let bounds = CoreBounds::new(kinds[0], kinds[1]);
    let cells = CellCores::of(&tree, &sorted, &bounds);
    let x = [0.0, 1.0, 0.0];
    let target = Cell { center: x, radius: 1e-9, ..tree.cells[0] };
    let each = sorted.iter().map(|e| correction(e, kinds, x)[0]).fold(0.0, f64::max);
    let exact: f64 = sorted.iter().map(|e| correction(e, kinds, x)[0]).sum();
    let count = |together: f64, most: f64| {
        let reach = CoreReach::new(&bounds, &cells, [3.0 * each, f64::INFINITY], [together, f64::INFINITY]);
        let mut out = vec![];
        let left = reach.elements(0..60, &target, [most, f64::INFINITY], &mut vec![], &mut out);
        assert!(left[0] <= together.min(most), "{left:?} left out");
        let listed: f64 = out.iter().cloned().flatten().map(|k| correction(&sorted[k as usize], kinds, x)[0]).sum();
        assert!(exact - listed <= left[0] * (1.0 + 1e-5), "{} left out, said to be {left:?}", exact - listed);
        out.iter().map(|r| r.len()).sum::<usize>()
    };
    assert_eq!(count(f64::INFINITY, f64::INFINITY), 0);
    assert_eq!(count(f64::INFINITY, each), 60);
    assert_eq!(count(each, f64::INFINITY), 60);
}

/// Sheets of a wake in one cell, along it and across: a target far beside the lines of both needs no correction, and most are.
#[test]
fn cells_matter_near_the_lines_of_their_segments() {
    let (mut beside, mut near) = (0, 0);
    for (seed, kind) in SEGMENT.into_iter().take(3).enumerate() {
        let mut r = Random(3 + seed as u64);
        let one = |k: usize, r: &mut Random| {
            let along = if k.is_multiple_of(3) { [0.05, 0.0, -0.01] } else { [0.0, 0.1, 0.0] };
            let sign = if k.is_multiple_of(2) { 1.0 } else { -1.0 };
            let half = r.in_ball(along.map(|v| sign * v), 0.01);
            let core = 0.05 * 3f64.powf(-r.even());
            CoreElement { middle: r.in_ball([0.0; 3], 0.2), half, strength: 0.1 + r.even(), core, is_segment: true }
        };
        let all: Vec<CoreElement> = (0..60).map(|k| one(k, &mut r)).collect();
        let points: Vec<[f64; 3]> = all.iter().map(|e| e.middle).collect();
        let half: Vec<[f64; 3]> = all.iter().map(|e| e.half).collect();
        let (tree, _) = Tree::build(&points, &half, Root { corner: [-0.5; 3], edge: 1.0 }, 100, None);
        let sorted: Vec<CoreElement> = tree.permutation.iter().map(|&k| all[k as usize]).collect();
        let kinds = [kind, Regularization::None];
        let bounds = CoreBounds::new(kinds[0], kinds[1]);
        let cells = CellCores::of(&tree, &sorted, &bounds);
        let (budget, together) = ([1e-5, 1e-4], [1e-4, 1e-3]);
        let reach = CoreReach::new(&bounds, &cells, budget, together);
        let within_reach = |target: &Cell| {
            let limit = reach.reach[0].segments + tree.cells[0].radius + target.radius;
            dot(target.center, target.center) < 0.9 * limit * limit
        };
        for _ in 0..400 {
            let target = Cell { center: r.in_ball([0.0; 3], 6.0), radius: 0.2 * r.even(), ..tree.cells[0] };
            let Some(left_out) = reach.left_out(0, &tree.cells[0], &target) else {
                near += 1;
                continue;
            };
            beside += within_reach(&target) as u32;
            for _ in 0..20 {
                let x = r.in_ball(target.center, target.radius);
                let (mut one, mut all) = ([0.0f64; 2], [0.0; 2]);
                for e in &sorted {
                    let found = correction(e, kinds, x);
                    (0..2).for_each(|k| (one[k], all[k]) = (one[k].max(found[k]), all[k] + found[k]));
                }
                assert!(within(one, budget.map(|b| b * (1.0 + 1e-5))), "{kind:?}: {one:?} left out");
                assert!(
                    within(all, left_out.map(|b| b * (1.0 + 1e-5) + NOTHING)),
                    "{kind:?}: {all:?} left out, said to be {left_out:?}"
                );
                assert!(
                    within(left_out, together.map(|b| b * (1.0 + 1e-5))),
                    "{kind:?}: {left_out:?} left out together"
                );
            }
        }
    }
    assert!(beside > 200 && near > 100, "{beside} beside the lines, {near} near");
}
