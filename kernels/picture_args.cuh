// The structs that kernels of pictures take.
// Generated from src/backend/cuda/picture/args.rs by `make generate`; do not edit.

#pragma once

#include "pointer.cuh"

namespace picture {

/// How points of space become pixels: src/flow/picture/camera.rs.
struct View {
    double eye[3];
    double right[3];
    double up[3];
    double forward[3];
    /// The middle of the picture in pixels.
    double middle[2];
    /// Pixels of a unit of length: at depth 1 of a perspective, anywhere else.
    double focal;
    /// What is closer is not drawn.
    double near;
    /// Depth of the target.
    double reference;
    /// 1: lines of sight are parallel.
    long long parallel;
};

/// Elements of a kind.
struct Layer {
    /// [n_points][3]
    ConstPointer<double> position;
    /// [n_points][3], where colors say speeds.
    ConstPointer<double> velocity;
    /// [n][2] numbers of points, from `base` on; null: the elements are points.
    ConstPointer<int> ends;
    /// [n] squares of core radii, or null.
    ConstPointer<double> core2;
    /// [n] identities where colors say ages; null: they count from `first_id`.
    ConstPointer<long long> id;
    long long n;
    long long n_points;
    long long base;
    long long first_id;
    /// What the color scale says: 0 the kind, 1 speed, 2 age.
    long long value;
    /// Values at the ends of the scale.
    double low;
    double high;
    /// Of the kind: red, green, blue from the third byte down.
    unsigned color;
    /// Where the canvas has the kind's weight.
    unsigned channel;
};

/// What is drawn, pixel by pixel, before it becomes colors: src/flow/picture/canvas.rs.
struct Canvas {
    /// [pixels] Complement of the closest line's entry: depth in the upper half, then red, green, blue, coverage. Null: no lines.
    Pointer<unsigned long long> lines;
    /// [pixels][channels] Sums over points in front of the line.
    Pointer<unsigned long long> front;
    /// The same behind it; null without lines.
    Pointer<unsigned long long> behind;
    long long width;
    long long height;
    /// Words of a pixel.
    long long channels;
    /// 0: a weight for each kind of points; 1: red, green, blue and weight, a word each; 2: red and green, blue and weight, the first in
    /// the lower half of a word.
    long long sums;
};

/// How elements look, and how a pixel becomes a color: src/flow/picture/colors.rs.
struct Style {
    /// A weight of one.
    double one;
    /// Diameter of points at the distance of the target, in pixels; largest radii of points and of particles.
    double point_size;
    double radius_max[2];
    /// A particle's radius in core radii.
    double cores;
    double line_width;
    /// How much farther a line counts where it covers nothing of a pixel.
    double edge;
    /// Depths between which lines fade into the background, and its share in the end.
    double depths[2];
    double faded;
    /// Of a weight of one; 0: so that the mean pixel with points has the depth `mean_depth`.
    double opacity;
    double mean_depth;
    /// Red, green, blue, alpha.
    double background[4];
    /// The same as bytes, as the kinds' colors are.
    unsigned background_color;
    /// 1: colors say the opacity of a pixel.
    unsigned density;
    /// 1: points add light to what is behind them.
    unsigned additive;
    /// Colors of the canvas' channels by kind.
    unsigned kinds[3];
    /// The color scale.
    unsigned scale[9];
    /// Of the ground plane with a grid; -1: there is none.
    int ground_axis;
    double ground;
    double grid;
};

/// What kernels find before a picture is drawn, and of it. Numbers as `ordered` in kernels/picture.cu makes them; 0: none.
struct PictureBits {
    /// The largest of right - slope depth, -right - slope depth, the same with up, depth, -depth.
    unsigned long long bounds[6];
    /// The largest of minus the speed, and of the speed.
    unsigned long long speed[2];
    /// Of all points, and pixels that have some.
    unsigned long long weight;
    unsigned long long covered;
    /// The largest weight of a pixel in front of its line or behind it.
    unsigned long long most;
    /// Weights that were added to packed sums.
    unsigned long long drawn;
};

}  // namespace picture
