//! A camera: the C struct with its defaults and constants, the checked form, and where points appear in a picture.
//!
//! Enters: a host's camera, the bounds of what is drawn. Leaves: for a point of space its position in pixels, its depth along the line of
//! sight, and how many pixels a unit of length takes there.

use crate::error::{Error, Result, WFMM_ERR_CONSTANT, WFMM_ERR_VALUE, number};
use crate::flow::options::ElementKind;
use crate::math::biot_savart::{Vec3, cross, dot, norm, sub};
use crate::options::{code, finite, value_error};

codes! {
    /// How a camera maps space to a picture.
    enum Projection {
        /// What is farther is smaller; the default.
        Perspective = 0 => WFMM_PROJECTION_PERSPECTIVE,
        /// Parallel lines of sight.
        Orthographic = 1 => WFMM_PROJECTION_ORTHOGRAPHIC,
    }

    /// What the colors of a picture say.
    enum Coloring {
        /// The kind of the element; the default.
        Kind = 0 => WFMM_COLOR_KIND,
        /// The speed: of dust its own, else the fluid's there; of segments the mean of their ends.
        Speed = 1 => WFMM_COLOR_SPEED,
        /// The order in which the elements of a kind came: the newest at the upper end of the scale.
        Age = 2 => WFMM_COLOR_AGE,
        /// Points: the number of points behind each other, as the opacity of the pixel. Lines: their kind.
        Density = 3 => WFMM_COLOR_DENSITY,
    }

    /// How points act on what is behind them.
    enum Blending {
        /// They cover it: 1 - exp(-opacity x points in a pixel); the default.
        Opacity = 0 => WFMM_BLENDING_OPACITY,
        /// They add light to it.
        Additive = 1 => WFMM_BLENDING_ADDITIVE,
    }
}

/// Where a picture of a flow is taken from and how its elements look. Fill with `wfmm_camera_init` and change what is wanted.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(non_camel_case_types)]
pub struct wfmm_camera {
    /// Size of this struct as the caller knows it.
    pub struct_size: u32,
    /// `WFMM_PROJECTION_*`; default PERSPECTIVE.
    pub projection: i32,
    /// `WFMM_COLOR_*`; default KIND.
    pub color: i32,
    /// `WFMM_BLENDING_*` of points; default OPACITY.
    pub blending: i32,
    /// Kinds that are drawn: the sum of 1 << `WFMM_KIND_*`; default 31, all.
    pub kinds: i32,
    /// 1, the default: eye and target give the direction only, and the camera stands where all that is drawn just fits
    /// in. 0: the camera stands at eye.
    pub fit: i32,
    /// Where the camera is; default (2, -3, 1.5).
    pub eye: [f64; 3],
    /// The point in the middle of the picture; default 0.
    pub target: [f64; 3],
    /// A direction that points upwards in the picture; default z.
    pub up: [f64; 3],
    /// Angle between the lower and the upper edge in degrees, of a perspective; default 40.
    pub field_of_view: f64,
    /// Length between the lower and the upper edge, of an orthographic picture without fit; default 1.
    pub view_height: f64,
    /// What is closer to the plane of the eye, or behind it, is not drawn; 0, the default: a thousandth of the distance
    /// of eye and target.
    pub near_distance: f64,
    /// Diameter of tracers and dust in pixels at the distance of the target; a perspective makes it smaller or fainter beyond; default 1.5.
    /// Particles have their cores' size, if that is larger.
    pub point_size: f64,
    /// Width of segments in pixels; default 2.
    pub line_width: f64,
    /// Opacity of a point; 0, the default: so that pixels with points are about half covered.
    pub opacity: f64,
    /// Speeds at the ends of the color scale; equal, the default: the range of what is drawn.
    pub color_range: [f64; 2],
    /// Red, green, blue, alpha behind everything, 0 to 1; default a dark blue without transparency.
    pub background: [f64; 4],
    /// Distance of the lines of a grid on the ground plane, which is drawn where the camera is above it; 0, the default: none.
    pub grid: f64,
}

impl Default for wfmm_camera {
    fn default() -> Self {
        Self {
            struct_size: size_of::<Self>() as u32,
            projection: WFMM_PROJECTION_PERSPECTIVE,
            color: WFMM_COLOR_KIND,
            blending: WFMM_BLENDING_OPACITY,
            kinds: ALL_KINDS,
            fit: 1,
            eye: [2.0, -3.0, 1.5],
            target: [0.0; 3],
            up: [0.0, 0.0, 1.0],
            field_of_view: 40.0,
            view_height: 1.0,
            near_distance: 0.0,
            point_size: 1.5,
            line_width: 2.0,
            opacity: 0.0,
            color_range: [0.0; 2],
            background: [0.04, 0.06, 0.1, 1.0],
            grid: 0.0,
        }
    }
}

const ALL_KINDS: i32 = (1 << ElementKind::ALL.len()) - 1;

/// Pixels of a side.
const SIDE_MAX: i32 = 32_768;
/// Of the picture's half height and width what is drawn fills, with fit.
const FILLED: f64 = 0.94;

/// A camera, checked, for a picture of `width` by `height` pixels.
#[derive(Debug, Clone)]
pub struct Camera {
    pub width: usize,
    pub height: usize,
    pub coloring: Coloring,
    pub blending: Blending,
    pub point_size: f64,
    pub line_width: f64,
    pub opacity: f64,
    pub color_range: [f64; 2],
    pub background: [f64; 4],
    pub grid: f64,
    kinds: i32,
    fit: bool,
    near: f64,
    view: View,
    given: wfmm_camera,
}

/// What a projection needs.
#[derive(Debug, Clone, Copy)]
pub struct View {
    pub eye: Vec3,
    pub right: Vec3,
    pub up: Vec3,
    pub forward: Vec3,
    /// The middle of the picture in pixels.
    pub middle: [f64; 2],
    /// Pixels of a unit of length: at depth 1 of a perspective, anywhere else.
    pub focal: f64,
    pub parallel: bool,
    pub near: f64,
    /// Depth of the target.
    pub reference: f64,
}

/// A point of space in a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spot {
    pub x: f64,
    pub y: f64,
    pub depth: f64,
    /// Pixels of a unit of length there.
    pub scale: f64,
}

fn side(name: &str, n: i32) -> Result<usize> {
    if (1..=SIDE_MAX).contains(&n) {
        return Ok(n as usize);
    }
    Error::fail(WFMM_ERR_VALUE, format!("{name} = {n}; accepted: 1 to {SIDE_MAX} pixels"))
}

fn within(name: &str, x: f64, low: f64, high: f64) -> Result<f64> {
    if (low..=high).contains(&finite(name, x)?) {
        return Ok(x);
    }
    value_error(name, number(x), &format!("{low} to {high}"))
}

fn direction(v: Vec3) -> Option<Vec3> {
    let length = norm(v);
    (length > 0.0).then(|| v.map(|x| x / length))
}

impl Camera {
    pub fn checked(c: &wfmm_camera, width: i32, height: i32) -> Result<Self> {
        let projections = "WFMM_PROJECTION_PERSPECTIVE or _ORTHOGRAPHIC";
        let colorings = "WFMM_COLOR_KIND, _SPEED, _AGE or _DENSITY";
        let blendings = "WFMM_BLENDING_OPACITY or _ADDITIVE";
        let projection = code("projection", c.projection, Projection::from_code(c.projection), projections)?;
        if !(0..=ALL_KINDS).contains(&c.kinds) {
            return Error::fail(WFMM_ERR_CONSTANT, format!("kinds = {}; accepted: 0 to {ALL_KINDS}", c.kinds));
        }
        if !(0..=1).contains(&c.fit) {
            return Error::fail(WFMM_ERR_CONSTANT, format!("fit = {}; accepted: 0 or 1", c.fit));
        }
        for (name, v) in [("eye", c.eye), ("target", c.target), ("up", c.up)] {
            v.into_iter().enumerate().try_for_each(|(k, x)| finite(&format!("{name}[{k}]"), x).map(|_| ()))?;
        }
        for (k, x) in c.background.into_iter().enumerate() {
            within(&format!("background[{k}]"), x, 0.0, 1.0)?;
        }
        finite("color_range[0]", c.color_range[0])?;
        finite("color_range[1]", c.color_range[1])?;
        let (width, height) = (side("width", width)?, side("height", height)?);
        let large = 1e6;
        let near = within("near_distance", c.near_distance, 0.0, f64::MAX)?;
        let mut camera = Self {
            width,
            height,
            coloring: code("color", c.color, Coloring::from_code(c.color), colorings)?,
            blending: code("blending", c.blending, Blending::from_code(c.blending), blendings)?,
            point_size: within("point_size", c.point_size, 0.1, 1000.0)?,
            line_width: within("line_width", c.line_width, 0.1, 1000.0)?,
            opacity: within("opacity", c.opacity, 0.0, large)?,
            color_range: c.color_range,
            background: c.background,
            grid: within("grid", c.grid, 0.0, f64::MAX)?,
            kinds: c.kinds,
            fit: c.fit == 1,
            near,
            view: View::at(c)?,
            given: *c,
        };
        let half = within("field_of_view", c.field_of_view, 1e-3, 179.0)?.to_radians() / 2.0;
        let length = within("view_height", c.view_height, f64::MIN_POSITIVE, f64::MAX)?;
        camera.view.middle = [0.5 * width as f64, 0.5 * height as f64];
        camera.view.parallel = projection == Projection::Orthographic;
        camera.view.focal =
            if camera.view.parallel { height as f64 / length } else { 0.5 * height as f64 / half.tan() };
        camera.view.near = if near > 0.0 { near } else { 1e-3 * camera.view.reference };
        Ok(camera)
    }

    /// By name, as numbers: what all ranks must say alike.
    pub fn fields(&self) -> Vec<(&'static str, f64)> {
        // Every field by name: a new one does not compile before it is compared or left out on purpose.
        let wfmm_camera {
            struct_size: _,
            projection,
            color,
            blending,
            kinds,
            fit,
            eye,
            target,
            up,
            field_of_view,
            view_height,
            near_distance,
            point_size,
            line_width,
            opacity,
            color_range: [slowest, fastest],
            background: [red, green, blue, alpha],
            grid,
        } = self.given;
        vec![
            ("width", self.width as f64),
            ("height", self.height as f64),
            ("projection", f64::from(projection)),
            ("color", f64::from(color)),
            ("blending", f64::from(blending)),
            ("kinds", f64::from(kinds)),
            ("fit", f64::from(fit)),
            ("eye[0]", eye[0]),
            ("eye[1]", eye[1]),
            ("eye[2]", eye[2]),
            ("target[0]", target[0]),
            ("target[1]", target[1]),
            ("target[2]", target[2]),
            ("up[0]", up[0]),
            ("up[1]", up[1]),
            ("up[2]", up[2]),
            ("field_of_view", field_of_view),
            ("view_height", view_height),
            ("near_distance", near_distance),
            ("point_size", point_size),
            ("line_width", line_width),
            ("opacity", opacity),
            ("color_range[0]", slowest),
            ("color_range[1]", fastest),
            ("background[0]", red),
            ("background[1]", green),
            ("background[2]", blue),
            ("background[3]", alpha),
            ("grid", grid),
        ]
    }

    pub fn draws(&self, kind: ElementKind) -> bool {
        self.kinds >> kind as i32 & 1 == 1
    }

    /// Bounds of a point that `view` needs: the largest of each over all points.
    pub fn bounds(&self, x: Vec3) -> Bounds {
        let v = &self.view;
        let [a, b, c] = [v.right, v.up, v.forward].map(|axis| dot(axis, sub(x, v.eye)));
        let [slope_a, slope_b] = self.slopes();
        [a - slope_a * c, -a - slope_a * c, b - slope_b * c, -b - slope_b * c, c, -c]
    }

    /// The view from the camera's own eye, which `bounds` is relative to.
    pub fn own_view(&self) -> &View {
        &self.view
    }

    /// Tangents of the half angles that what is drawn may fill; 0 where lines of sight are parallel.
    pub fn slopes(&self) -> [f64; 2] {
        let v = &self.view;
        if v.parallel { [0.0; 2] } else { v.middle.map(|half| FILLED * half / v.focal) }
    }

    /// The view that shows what lies within the bounds of all points; `None`: nothing is drawn. Also the range of depths.
    pub fn view(&self, bounds: Option<Bounds>) -> (View, [f64; 2]) {
        let mut view = self.view;
        let Some([a, minus_a, b, minus_b, far, minus_close]) = bounds else { return (view, [0.0, 1.0]) };
        let mut range = [-minus_close, far];
        if self.fit {
            let middle = 0.5 * (range[0] + range[1]);
            let (size_a, size_b) = (0.5 * (a + minus_a), 0.5 * (b + minus_b));
            let [slope_a, slope_b] = self.slopes();
            let depth = if view.parallel {
                let [x, y] = view.middle.map(|half| FILLED * half);
                let size = (size_a / x).max(size_b / y);
                // A single point: as it was.
                view.focal = if size > 0.0 { 1.0 / size } else { view.focal };
                range[0] - (range[1] - range[0]) - view.reference
            } else {
                let depth = (-size_a / slope_a).min(-size_b / slope_b).min(range[0] - 0.01 * (range[1] - range[0]));
                // A single point: from as far as the target was.
                let clear = middle - depth > 1e-9 * (middle.abs() + view.reference);
                if clear { depth } else { middle - view.reference }
            };
            let aside = [0.5 * (a - minus_a), 0.5 * (b - minus_b)];
            for i in 0..3 {
                view.eye[i] += aside[0] * view.right[i] + aside[1] * view.up[i] + depth * view.forward[i];
            }
            range = range.map(|c| c - depth);
            view.reference = middle - depth;
            view.near = if self.near > 0.0 { self.near } else { 1e-3 * view.reference };
        }
        range[0] = range[0].max(view.near);
        (view, range)
    }
}

/// Largest of right - slope depth, -right - slope depth, the same with up, depth, -depth, relative to the eye.
pub type Bounds = [f64; 6];

impl View {
    /// Position and directions; the rest is set by `Camera::checked`.
    fn at(c: &wfmm_camera) -> Result<Self> {
        let toward = sub(c.target, c.eye);
        let Some(forward) = direction(toward) else {
            return Error::fail(WFMM_ERR_VALUE, "eye and target are the same point; the camera needs a direction");
        };
        let right = direction(c.up).and_then(|up| {
            let right = cross(forward, up);
            (norm(right) > 1e-9).then(|| direction(right)).flatten()
        });
        let Some(right) = right else {
            return Error::fail(WFMM_ERR_VALUE, "up is zero or along the line of sight; another direction is needed");
        };
        let (up, reference) = (cross(right, forward), norm(toward));
        let (middle, focal, near) = ([0.0; 2], 0.0, 0.0);
        Ok(Self { eye: c.eye, right, up, forward, middle, focal, parallel: false, near, reference })
    }

    /// A point relative to the eye: to the right, up, and its depth.
    pub fn relative(&self, x: Vec3) -> Vec3 {
        let d = sub(x, self.eye);
        [dot(d, self.right), dot(d, self.up), dot(d, self.forward)]
    }

    /// Where a point relative to the eye is seen; its depth is `near` at least.
    pub fn spot(&self, [a, b, depth]: Vec3) -> Spot {
        let scale = if self.parallel { self.focal } else { self.focal / depth };
        Spot { x: self.middle[0] + scale * a, y: self.middle[1] - scale * b, depth, scale }
    }

    /// Where a point is seen; `None` where it is not in front of the camera.
    pub fn see(&self, x: Vec3) -> Option<Spot> {
        let c = self.relative(x);
        (c[2] >= self.near).then(|| self.spot(c))
    }

    /// The line of sight through a point of the picture: a point and a direction.
    pub fn sight(&self, x: f64, y: f64) -> (Vec3, Vec3) {
        let (a, b) = ((x - self.middle[0]) / self.focal, (self.middle[1] - y) / self.focal);
        let aside = |i: usize| a * self.right[i] + b * self.up[i];
        if self.parallel {
            (std::array::from_fn(|i| self.eye[i] + aside(i)), self.forward)
        } else {
            (self.eye, std::array::from_fn(|i| self.forward[i] + aside(i)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn camera(c: wfmm_camera) -> Camera {
        Camera::checked(&c, 200, 100).unwrap()
    }

    #[test]
    fn a_known_point_is_seen_where_geometry_says() {
        let c = wfmm_camera { eye: [0.0, -2.0, 0.0], fit: 0, field_of_view: 90.0, ..Default::default() };
        let (view, _) = camera(c).view(None);
        let spot = view.see([0.5, 0.0, 0.25]).unwrap();
        // Half of the height, 50 pixels, is 2 at the target.
        assert!((spot.x - 112.5).abs() < 1e-12 && (spot.y - 43.75).abs() < 1e-12 && (spot.depth - 2.0).abs() < 1e-12);
        assert!(view.see([0.0, -2.1, 0.0]).is_none());
        let (at, along) = view.sight(spot.x, spot.y);
        let reached: Vec3 = std::array::from_fn(|i| at[i] + 2.0 * along[i]);
        assert!(norm(sub(reached, [0.5, 0.0, 0.25])) < 1e-12);
    }

    #[test]
    fn everything_fits_and_touches_an_edge() {
        let points = [[0.0, 0.0, 0.0], [7.0, 1.0, -2.0], [3.0, 9.0, 5.0], [-4.0, 2.0, 2.0]];
        for projection in [WFMM_PROJECTION_PERSPECTIVE, WFMM_PROJECTION_ORTHOGRAPHIC] {
            let camera = camera(wfmm_camera { projection, ..Default::default() });
            let all = points.map(|x| camera.bounds(x));
            let bounds: Bounds = std::array::from_fn(|k| all.iter().fold(f64::MIN, |m, b| m.max(b[k])));
            let (view, range) = camera.view(Some(bounds));
            let (mut x, mut y) = (0.0f64, 0.0f64);
            for spot in points.map(|x| view.see(x).unwrap()) {
                x = x.max((spot.x - 100.0).abs() / 100.0);
                y = y.max((spot.y - 50.0).abs() / 50.0);
                assert!(spot.depth >= range[0] - 1e-9 && spot.depth <= range[1] + 1e-9);
            }
            assert!((x.max(y) - FILLED).abs() < 1e-9, "{x} {y}");
        }
    }
}
