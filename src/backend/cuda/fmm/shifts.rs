//! M2M and L2L: one matrix each, for octant 7; those of the other octants differ in signs by the classes of coefficients.
//!
//! Enters: the coefficients of every class. Leaves: in which order the kernels take them, and which fragments of the two matrices
//! are kept: a degree of the parent takes from degrees up to its own, a degree of the child from degrees from its own on.

/// Tiles of coefficients sorted by class at most, and layout of the table in words, as in kernels/fmm_mma.cuh.
const MOST_SORTED: usize = 40;
const SORTED_TILES: usize = 0;
const CLASS_END: usize = 8;
const SORTED_CLASS: usize = 16;
const SORTED_COLUMN: usize = SORTED_CLASS + MOST_SORTED;
pub const UP_HEAD: usize = SORTED_COLUMN + 8 * MOST_SORTED;
const DOWN_HEAD: usize = UP_HEAD + MOST_SORTED;
const WORDS: usize = DOWN_HEAD + 8 * 32;

/// The table `Fmm::op` for expansions of `tiles` tiles; `fragments` counts those of all operators.
pub fn table(classes: &[Vec<u32>; 8], tiles: usize, fragments: &mut usize) -> Vec<u32> {
    let mut words = vec![0; WORDS];
    words[SORTED_COLUMN..UP_HEAD].fill(u32::MAX);
    let mut head = |steps: usize| {
        let head = (*fragments << 6 | steps) as u32;
        *fragments += steps;
        head
    };
    let mut sorted = 0;
    for (class, members) in classes.iter().enumerate() {
        for tile in members.chunks(8) {
            words[SORTED_COLUMN + 8 * sorted..][..tile.len()].copy_from_slice(tile);
            words[SORTED_CLASS + sorted] = class as u32;
            let degrees = tile[tile.len() - 1].isqrt() as usize + 1;
            words[UP_HEAD + sorted] = head((degrees * degrees).div_ceil(8));
            sorted += 1;
        }
        words[CLASS_END + class] = sorted as u32;
    }
    words[SORTED_TILES] = sorted as u32;
    for tile in 0..tiles {
        let degree = (8 * tile as u32).isqrt();
        for (class, members) in classes.iter().enumerate() {
            let below = members.iter().filter(|k| k.isqrt() < degree).count();
            let kept = if below == members.len() { 0 } else { members.len().div_ceil(8) - below / 8 };
            words[DOWN_HEAD + 8 * tile + class] = head(kept);
        }
    }
    words
}

/// How M2M and L2L are launched: parts of the columns, at most a tile for each of eight warps; and L2L's bytes of shared memory.
#[derive(Debug, Clone, Copy)]
pub struct Parts {
    pub up: u32,
    pub down: u32,
    pub shared: usize,
}

impl Parts {
    /// For the operators of `table`, of `fragment` bytes each; two blocks shall fit `shared` bytes.
    pub fn new(table: &[u32], tiles: usize, real_bytes: usize, fragment: usize, shared: usize) -> Self {
        let sorted = table[SORTED_TILES] as usize;
        let of_tile =
            |tile: usize| table[DOWN_HEAD + 8 * tile..][..8].iter().map(|head| (head & 63) as usize).sum::<usize>();
        let bytes = |parts: usize| {
            let of_part = |part: usize| (part..tiles).step_by(parts).map(of_tile).sum::<usize>();
            16 * (8 * sorted + 4) * real_bytes + fragment * (0..parts).map(of_part).max().unwrap_or(0)
        };
        let least = tiles.div_ceil(8);
        let down = (least..tiles).find(|parts| bytes(*parts) <= shared / 2 - 4096).unwrap_or(tiles);
        Self { up: sorted.div_ceil(8) as u32, down: down as u32, shared: bytes(down) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cuda::fmm::truncation::classes;

    /// Every block of degrees that is not zero has its fragment: M2M below the diagonal, L2L above.
    #[test]
    fn kept_fragments_hold_both_triangles() {
        for order in 2..=16usize {
            let (count, tiles) = (order * order, (order * order).div_ceil(8));
            let classes = classes(order);
            let table = table(&classes, tiles, &mut 0);
            let column =
                |k: usize| table[SORTED_COLUMN..UP_HEAD].iter().position(|c| *c as usize == k).expect("sorted");
            let class =
                |k: usize| classes.iter().position(|members| members.contains(&(k as u32))).expect("in a class");
            for parent in 0..count {
                for child in 0..count {
                    let (sorted, owner) = (column(parent) / 8, class(parent));
                    assert_eq!(table[SORTED_CLASS + sorted] as usize, owner);
                    if child.isqrt() <= parent.isqrt() {
                        assert!(
                            child / 8 < (table[UP_HEAD + sorted] & 63) as usize,
                            "order {order}: {child} to {parent}"
                        );
                        let steps = (table[DOWN_HEAD + 8 * (child / 8) + owner] & 63) as usize;
                        let end = table[CLASS_END + owner] as usize;
                        assert!((end - steps..end).contains(&sorted), "order {order}: {parent} to {child}");
                    }
                }
            }
        }
    }
}
