//! Particles that act over a short distance, dealt out to ranks along a space-filling curve, with copies of those that act from others.
//!
//! Enters: each rank's own particles, wherever they are. Leaves: on each rank those of its range of the curve, and the particles of other
//! ranks, or their images in a plane, that reach one of them. Alone, a rank has what it had.

use std::borrow::Cow;

use rayon::prelude::*;

use super::gaussians::reach2;
use super::state::row;
use crate::backend::cpu::tree::{Root, bounds, key};
use crate::backend::curve::{Way, around_all, joined, splitters};
use crate::distributed::Peers;
use crate::math::biot_savart::Vec3;
use crate::memory;
use crate::options::Plane;

/// Boxes that describe the particles of a rank.
const BOXES: usize = 64;
/// Numbers of a box on its way.
const BOX_WORDS: usize = 6;

/// Position, strength and squared core of a particle.
pub type Member = [f64; 7];

/// See the head of this file.
pub struct Neighbours {
    peers: Peers,
    /// From the given particles to those of the range, and from these to ranks whose particles they reach; none alone.
    ways: Option<[Way; 2]>,
}

impl Neighbours {
    /// Of this rank's particles; returned are those of the range.
    pub fn new(peers: &Peers, given: Vec<Member>, plane: Option<Plane>) -> (Self, Vec<Member>) {
        if !peers.are_many() {
            return (Self { peers: peers.clone(), ways: None }, given);
        }
        let root = Root::around(&[around_all(peers, bounds(&positions(&given), &[]))]);
        let keys = memory::collect(given.iter().map(|p| key(row(p, 0), root)));
        let ends = splitters(peers, given.len(), |k| (keys[k], 1.0));
        let way = Way::along(&keys, &ends);
        let here: Vec<Member> = joined(&peers.share(way.packed(|k| given[k])));
        let (boxes, counts) = peers.gather(&boxes_of(&positions(&here), root));
        let acts_on = |rank: usize| {
            let first = counts[..rank].iter().sum::<usize>();
            let boxes = boxes[first..first + counts[rank]].as_chunks::<BOX_WORDS>().0;
            let whole = around(boxes);
            let acts = |p: &Member| {
                let reach2 = reach2(p[6]);
                let reaches = |x: Vec3| {
                    distance2(x, &whole) <= reach2 && boxes.iter().any(|of_piece| distance2(x, of_piece) <= reach2)
                };
                reaches(row(p, 0)) || plane.is_some_and(|plane| reaches(plane.mirror(row(p, 0))))
            };
            let mut found = vec![];
            memory::extend(&mut found, (0..here.len() as u32).filter(|&k| acts(&here[k as usize])));
            found
        };
        let of_rank = |rank: usize| if rank == peers.rank() { vec![] } else { acts_on(rank) };
        let copies = memory::par_collect((0..peers.size()).into_par_iter().map(of_rank));
        (Self { peers: peers.clone(), ways: Some([way, Way::of(copies)]) }, here)
    }

    /// `N` numbers of each particle of the range and, behind them, of those of others that reach it.
    pub fn with_others<'a, const N: usize>(&self, own: &'a [f64]) -> Cow<'a, [f64]> {
        let Some([_, copies]) = &self.ways else { return Cow::Borrowed(own) };
        let rows = own.as_chunks::<N>().0;
        let came = self.peers.share(copies.packed(|k| rows[k]));
        let mut all = memory::with_room(own.len() + came.iter().map(Vec::len).sum::<usize>());
        all.extend_from_slice(own);
        came.iter().for_each(|rows| all.extend_from_slice(rows));
        Cow::Owned(all)
    }

    /// Numbers of the particles of the range, `rows` each, to where these were given: of the own ones, in their order.
    pub fn back(&self, values: Vec<f64>, rows: usize) -> Vec<f64> {
        match &self.ways {
            Some([way, _]) => way.back(&self.peers, &values, rows),
            None => values,
        }
    }
}

fn positions(members: &[Member]) -> Vec<Vec3> {
    memory::collect(members.iter().map(|p| row(p, 0)))
}

/// Boxes around pieces of the curve with equally many positions: lower and upper corners.
fn boxes_of(x: &[Vec3], root: Root) -> Vec<f64> {
    let mut order = memory::collect(x.iter().enumerate().map(|(k, x)| (key(*x, root), k as u32)));
    order.par_sort_unstable();
    let of_piece = |piece: &[(u64, u32)]| {
        let (low, high) = bounds(&memory::collect(piece.iter().map(|&(_, k)| x[k as usize])), &[]);
        row(&low, 0).into_iter().chain(high)
    };
    let pieces = order.chunks(order.len().div_ceil(BOXES).max(1));
    let mut words = vec![];
    memory::extend(&mut words, pieces.flat_map(of_piece));
    words
}

/// The box around all; of none, nothing is near it.
fn around(boxes: &[[f64; BOX_WORDS]]) -> [f64; BOX_WORDS] {
    let [a, b] = [f64::INFINITY, f64::NEG_INFINITY];
    let join = |w: [f64; BOX_WORDS], b: &[f64; BOX_WORDS]| {
        std::array::from_fn(|i| if i < 3 { w[i].min(b[i]) } else { w[i].max(b[i]) })
    };
    boxes.iter().fold([a, a, a, b, b, b], join)
}

/// The squared distance of a position from a box.
fn distance2(x: Vec3, b: &[f64; BOX_WORDS]) -> f64 {
    (0..3).map(|i| (b[i] - x[i]).max(x[i] - b[3 + i]).max(0.0).powi(2)).sum()
}
