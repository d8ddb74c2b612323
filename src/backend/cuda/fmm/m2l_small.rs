//! Launch of M2L for trees of three levels at most, kernels/fmm_m2l_small.cuh.

use super::truncation;

use super::recipe::Recipe;

/// Highest order of its expansions.
const MOST_ORDER: usize = 10;
/// Most cells of its trees: `kSmallTileCells`.
const MOST_CELLS: usize = 1024;
/// Binary logarithm of the blocks that share a tile where level 2 is the deepest; on a deeper one there are tiles enough.
const SHARE: u32 = 3;

/// Whether the kernel takes target trees of so many levels. On one H200, 2026-11-21, with 512 leaves, µs against those of the tiles'
/// kernel: order 7 31 for 39 (f32) and 37 for 50 (f64), but order 8 61 for 53 and in two parts 64 for 52.
pub fn takes(recipe: &Recipe, max_level: u32) -> bool {
    let order = recipe.truncation.order;
    match max_level {
        0..=2 => order <= MOST_ORDER,
        3 => order <= 7 && !recipe.two_parts && recipe.components() == 3,
        _ => false,
    }
}

/// Which of the kernels takes expansions of this order: the number of classes that have two tiles of coefficients.
pub fn classes_of_two(order: usize) -> Option<usize> {
    let two = truncation::classes(order).iter().filter(|class| class.len() > 8).count();
    [0, 1, 4, 8].into_iter().find(|most| *most >= two).filter(|_| order <= MOST_ORDER)
}

/// Blocks for target trees of so many levels: none below the second, where nothing is far.
pub fn blocks(max_level: u32, components: usize) -> u32 {
    let share = if max_level == 2 { SHARE } else { 0 };
    (2..=max_level).map(|level| tiles(level, components) << share).sum()
}

/// Numbers of the local expansions' array that the kernel may write to: expansions of its most cells, and after
/// them the sums of all blocks. None where it does not take the tree.
pub fn numbers(recipe: &Recipe, max_level: u32, expansion: usize) -> usize {
    let two = classes_of_two(recipe.truncation.order).filter(|_| takes(recipe, max_level));
    two.map_or(0, |two| MOST_CELLS * expansion + blocks(max_level, recipe.components()) as usize * 128 * (8 + two))
}

/// As many warps as have the registers.
pub fn threads(recipe: &Recipe) -> u32 {
    let many = classes_of_two(recipe.truncation.order).is_some_and(|two| two > 1);
    if recipe.is_f64 || recipe.two_parts || many { 256 } else { 384 }
}

/// Sixteen rows of children of one octant each.
fn tiles(level: u32, components: usize) -> u32 {
    8 * 8u32.pow(level - 1).div_ceil(16 / components as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cuda::fmm::truncation::Truncation;

    /// The kernel has a ticket for every tile.
    #[test]
    fn tickets_are_enough() {
        for components in [1, 3] {
            assert!((2..=3).map(|level| tiles(level, components)).sum::<u32>() <= 128);
        }
        assert_eq!((blocks(1, 3), blocks(2, 3), blocks(2, 1), blocks(3, 3)), (0, 128, 64, 120));
    }

    /// Second tiles are those of the classes that the kernel expects: all, those of one bit at most, or that of none.
    #[test]
    fn second_tiles_are_where_the_kernel_expects_them() {
        for order in 2..=MOST_ORDER {
            let most = classes_of_two(order).expect("a kernel");
            let bits = match most {
                0 => None,
                1 => Some(0),
                4 => Some(1),
                _ => Some(3),
            };
            for (class, members) in truncation::classes(order).iter().enumerate() {
                let two = bits.is_some_and(|bits| class.count_ones() <= bits);
                assert!(members.len() <= if two { 16 } else { 8 }, "order {order}, class {class}");
            }
        }
        assert!(classes_of_two(MOST_ORDER + 1).is_none());
        // Slots are as many as the kernel takes them for, and none is lent to another class.
        for budget in [0.3, 1e-1, 4e-2, 2e-2, 1e-2, 4e-3, 2e-3] {
            let s = Truncation::new(budget, 2, 16);
            assert!(s.order <= MOST_ORDER && s.slots == if s.order <= 6 { 1 } else { 2 }, "{budget}: {}", s.order);
            assert!(s.lends_no_slot());
        }
    }
}
