//! Structs that the kernels of pictures take. kernels/picture_args.cuh is generated from this file by `make generate`.

// The comments go into kernels/picture_args.cuh as they are.
#![allow(rustdoc::broken_intra_doc_links)]

use crate::backend::cuda::pointer::{ConstPointer, Pointer};

/// How points of space become pixels: src/flow/picture/camera.rs.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ViewArg {
    pub eye: [f64; 3],
    pub right: [f64; 3],
    pub up: [f64; 3],
    pub forward: [f64; 3],
    /// The middle of the picture in pixels.
    pub middle: [f64; 2],
    /// Pixels of a unit of length: at depth 1 of a perspective, anywhere else.
    pub focal: f64,
    /// What is closer is not drawn.
    pub near: f64,
    /// Depth of the target.
    pub reference: f64,
    /// 1: lines of sight are parallel.
    pub parallel: i64,
}

/// Elements of a kind.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct LayerArg {
    /// [n_points][3]
    pub position: ConstPointer<f64>,
    /// [n_points][3], where colors say speeds.
    pub velocity: ConstPointer<f64>,
    /// [n][2] numbers of points, from `base` on; null: the elements are points.
    pub ends: ConstPointer<i32>,
    /// [n] squares of core radii, or null.
    pub core2: ConstPointer<f64>,
    /// [n] identities where colors say ages; null: they count from `first_id`.
    pub id: ConstPointer<i64>,
    pub n: i64,
    pub n_points: i64,
    pub base: i64,
    pub first_id: i64,
    /// What the color scale says: 0 the kind, 1 speed, 2 age.
    pub value: i64,
    /// Values at the ends of the scale.
    pub low: f64,
    pub high: f64,
    /// Of the kind: red, green, blue from the third byte down.
    pub color: u32,
    /// Where the canvas has the kind's weight.
    pub channel: u32,
}

/// What is drawn, pixel by pixel, before it becomes colors: src/flow/picture/canvas.rs.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CanvasArg {
    /// [pixels] Complement of the closest line's entry: depth in the upper half, then red, green, blue, coverage. Null: no lines.
    pub lines: Pointer<u64>,
    /// [pixels][channels] Sums over points in front of the line.
    pub front: Pointer<u64>,
    /// The same behind it; null without lines.
    pub behind: Pointer<u64>,
    pub width: i64,
    pub height: i64,
    /// Words of a pixel.
    pub channels: i64,
    /// 0: a weight for each kind of points; 1: red, green, blue and weight, a word each; 2: red and green, blue and weight, the first in
    /// the lower half of a word.
    pub sums: i64,
}

/// How elements look, and how a pixel becomes a color: src/flow/picture/colors.rs.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct StyleArg {
    /// A weight of one.
    pub one: f64,
    /// Diameter of points at the distance of the target, in pixels; largest radii of points and of particles.
    pub point_size: f64,
    pub radius_max: [f64; 2],
    /// A particle's radius in core radii.
    pub cores: f64,
    pub line_width: f64,
    /// How much farther a line counts where it covers nothing of a pixel.
    pub edge: f64,
    /// Depths between which lines fade into the background, and its share in the end.
    pub depths: [f64; 2],
    pub faded: f64,
    /// Of a weight of one; 0: so that the mean pixel with points has the depth `mean_depth`.
    pub opacity: f64,
    pub mean_depth: f64,
    /// Red, green, blue, alpha.
    pub background: [f64; 4],
    /// The same as bytes, as the kinds' colors are.
    pub background_color: u32,
    /// 1: colors say the opacity of a pixel.
    pub density: u32,
    /// 1: points add light to what is behind them.
    pub additive: u32,
    /// Colors of the canvas' channels by kind.
    pub kinds: [u32; 3],
    /// The color scale.
    pub scale: [u32; 9],
    /// Of the ground plane with a grid; -1: there is none.
    pub ground_axis: i32,
    pub ground: f64,
    pub grid: f64,
}

/// What kernels find before a picture is drawn, and of it. Numbers as `ordered` in kernels/picture.cu makes them; 0: none.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PictureBits {
    /// The largest of right - slope depth, -right - slope depth, the same with up, depth, -depth.
    pub bounds: [u64; 6],
    /// The largest of minus the speed, and of the speed.
    pub speed: [u64; 2],
    /// Of all points, and pixels that have some.
    pub weight: u64,
    pub covered: u64,
    /// The largest weight of a pixel in front of its line or behind it.
    pub most: u64,
    /// Weights that were added to packed sums.
    pub drawn: u64,
}
