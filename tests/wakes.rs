//! The wakes that speed and accuracy are measured on have the sizes of the published cases.

#[path = "../bench/support/mod.rs"]
mod support;

use support::wakes::{hover, lattice};

#[test]
fn sizes_are_those_of_the_published_cases() {
    let w = lattice(300, 0.0);
    assert_eq!((w.segments(), w.nodes.len()), (36_960, 18_963));
    assert_eq!(w.ends.len(), 2 * w.segments());
    let w = hover(60, 144, 20_000, 1);
    assert_eq!((w.segments(), w.targets.len()), (34_560, 54_564));
    assert!(w.core.iter().all(|&c| (0.004..0.12).contains(&c)));
}
