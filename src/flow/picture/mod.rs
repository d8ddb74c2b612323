//! Pictures of a flow: its elements as a camera sees them, as bytes and as a PNG file.
//!
//! Enters: the state, a camera. Leaves: four bytes a pixel. Segments are lines, the closest one hides what is behind it; tracers, dust
//! and particles are points, whose weights are summed in front of that line and behind it, so that nothing needs sorting. Of many
//! ranks each draws its own elements, and all get the whole picture. State on a device is drawn there, by the same formulas.
//!
//! ```text
//!   mod      what is drawn, values and bounds        device  the same in device memory        png     files
//!   camera   where points appear        canvas  lines and sums of points        colors  what they make
//! ```

pub mod camera;
mod canvas;
mod colors;
pub(super) mod device;
mod png;

pub use png::write as write_png;

use rayon::prelude::*;

use super::Flow;
use super::options::ElementKind;
use super::state::{State, row};
use super::storage::ALL;
use super::vector::Part;
use crate::error::Result;
use crate::math::biot_savart::{Vec3, norm};
use crate::memory;
use crate::options::Plane;
use crate::session::Session;

use camera::{Bounds, Camera, Coloring, View};
use canvas::{Canvas, ONE, Rgb};
use colors::{Mixer, Paint, mix, of_kind, of_scale};

/// Elements that one thread takes at a time.
const SHARE: usize = 4096;
/// Largest radius in pixels of a point, and of a particle.
const RADIUS_MAX: [f64; 2] = [500.0, 12.0];
/// A particle's radius in core radii: its weight is (1 - r²/radius²)².
const CORES: f64 = 2.0;
/// Share of the background in the color of the farthest lines.
const FADED: f64 = 0.65;
/// Optical depth of the mean pixel with points, where the opacity is the library's choice.
const MEAN_DEPTH: f64 = 0.7;

/// Elements of a kind as they are drawn.
struct Layer<'a> {
    kind: ElementKind,
    position: &'a [f64],
    /// Segments; empty for points.
    ends: &'a [[i32; 2]],
    /// Squares of core radii, of particles.
    core2: &'a [f64],
    id: &'a [i64],
    /// Velocities, where the color says them.
    velocity: &'a [f64],
    /// Values at the ends of the color scale.
    range: [f64; 2],
}

impl Layer<'_> {
    fn elements(&self) -> usize {
        self.id.len()
    }

    /// What the color scale says.
    fn value(&self, coloring: Coloring, k: usize) -> f64 {
        match coloring {
            Coloring::Kind | Coloring::Density => 0.0,
            Coloring::Age => self.id[k] as f64,
            Coloring::Speed if self.ends.is_empty() => norm(row(self.velocity, k)),
            Coloring::Speed => {
                let speed = |e: i32| norm(row(self.velocity, e as usize));
                0.5 * (speed(self.ends[k][0]) + speed(self.ends[k][1]))
            }
        }
    }

    fn color(&self, coloring: Coloring, k: usize) -> Rgb {
        match coloring {
            Coloring::Kind | Coloring::Density => of_kind(self.kind),
            Coloring::Speed | Coloring::Age => {
                let [low, high] = self.range;
                let part = (self.value(coloring, k) - low) / (high - low);
                of_scale(if part.is_finite() { part } else { 1.0 })
            }
        }
    }
}

impl Flow {
    /// A picture: rows from the top, four bytes a pixel. Of many ranks all have the same camera.
    pub fn picture(&mut self, camera: &Camera) -> Result<Vec<u8>> {
        let bytes = 4 * camera.width * camera.height;
        let mut picture = self.session().together("wfmm_flow_picture", || Ok(memory::filled(0u8, bytes)))?;
        self.picture_to(camera, &mut picture)?;
        Ok(picture)
    }

    /// The same to the caller's bytes, which are written last.
    pub fn picture_to(&mut self, camera: &Camera, to: &mut [u8]) -> Result<()> {
        let plane = self.plan_options.plane;
        let (store, mut tools) = self.tools();
        match store.picture(&mut tools, camera, plane, to) {
            Some(drawn) => drawn,
            None => {
                to.copy_from_slice(&self.picture_in_host_memory(camera)?);
                Ok(())
            }
        }
    }

    fn picture_in_host_memory(&mut self, camera: &Camera) -> Result<Vec<u8>> {
        let call = "wfmm_flow_picture";
        let session = self.session().clone();
        session.same(&camera.fields())?;
        let moves = |kind| kind != ElementKind::Dust && camera.draws(kind);
        if session.any(camera.coloring == Coloring::Speed && ALL.into_iter().any(moves))? {
            self.find_velocities(call)?;
        }
        session.collective(call, || {
            let drawn: Vec<_> = ALL.into_iter().filter(|kind| camera.draws(*kind)).collect();
            self.store.read(&drawn)?;
            let mut layers: Vec<_> = drawn.iter().map(|kind| self.layer(*kind, camera.coloring)).collect();
            find_ranges(&session, camera, &mut layers)?;
            let (view, depths) = camera.view(bounds(&session, camera, &layers)?);
            let canvas = draw(&session, camera, &view, depths, &layers)?;
            Ok(develop(&session, camera, &view, &canvas, self.plan_options.plane))
        })
    }

    /// The state was read, and velocities found where colors say them.
    fn layer(&self, kind: ElementKind, coloring: Coloring) -> Layer<'_> {
        let state: &State = self.store.known();
        let velocity = match kind {
            _ if coloring != Coloring::Speed => &[][..],
            ElementKind::Dust => &state.dust.velocity,
            _ => self.fluid_velocity_of(kind),
        };
        let moving = |part| state.moving.part(part);
        let (position, ends, core2, id): (&[f64], &[[i32; 2]], &[f64], &[i64]) = match kind {
            ElementKind::Particles => {
                (moving(Part::ParticlePosition), &[], moving(Part::ParticleCore2), &state.particle_id)
            }
            ElementKind::Filaments => (moving(Part::PointPosition), &state.filaments.ends, &[], &state.filaments.id),
            ElementKind::BoundSegments => (&state.bound_points, &state.bound.ends, &[], &state.bound.id),
            ElementKind::Tracers => (moving(Part::TracerPosition), &[], &[], &state.tracer_id),
            ElementKind::Dust => (&state.dust.position, &[], &[], &state.dust.id),
        };
        Layer { kind, position, ends, core2, id, velocity, range: [0.0, 1.0] }
    }
}

/// The largest of each of N numbers over n things; -infinity without any.
fn largest<const N: usize>(session: &Session, n: usize, of: impl Fn(usize) -> [f64; N] + Sync) -> [f64; N] {
    let least = [f64::NEG_INFINITY; N];
    let larger = |a: [f64; N], b: [f64; N]| std::array::from_fn(|k| a[k].max(b[k]));
    if n < SHARE {
        return (0..n).map(of).fold(least, larger);
    }
    session.pool().install(|| (0..n).into_par_iter().with_min_len(SHARE).map(&of).reduce(|| least, larger))
}

/// The values at the ends of the color scale: of speed one for all kinds, of age one for each.
fn find_ranges(session: &Session, camera: &Camera, layers: &mut [Layer<'_>]) -> Result<()> {
    if !matches!(camera.coloring, Coloring::Speed | Coloring::Age) {
        return Ok(());
    }
    let mut all = [f64::NEG_INFINITY; 2];
    for layer in layers.iter_mut() {
        let mine = largest(session, layer.elements(), |k| {
            let value = layer.value(camera.coloring, k);
            [-value, value]
        });
        let found = session.largest(&mine)?;
        layer.range = [-found[0], found[1]];
        all = std::array::from_fn(|k| all[k].max(found[k]));
    }
    if camera.coloring == Coloring::Speed {
        let [low, high] = camera.color_range;
        let range = if low == high { [-all[0], all[1]] } else { [low, high] };
        layers.iter_mut().for_each(|layer| layer.range = range);
    }
    Ok(())
}

/// Bounds of all that is drawn, on all ranks; nothing where there is nothing.
fn bounds(session: &Session, camera: &Camera, layers: &[Layer<'_>]) -> Result<Option<Bounds>> {
    let mut all = [f64::NEG_INFINITY; 6];
    for layer in layers.iter().filter(|layer| layer.elements() > 0) {
        let of = largest(session, layer.position.len() / 3, |k| camera.bounds(row(layer.position, k)));
        all = std::array::from_fn(|k| all[k].max(of[k]));
    }
    let found = session.largest(&all)?;
    Ok(found[0].is_finite().then(|| std::array::from_fn(|k| found[k])))
}

fn draw(session: &Session, camera: &Camera, view: &View, depths: [f64; 2], layers: &[Layer<'_>]) -> Result<Canvas> {
    let lines = session.any(layers.iter().any(|layer| !layer.ends.is_empty()))?;
    let canvas = Canvas::new(camera.width, camera.height, lines);
    let each = |n: usize, work: &(dyn Fn(usize) + Sync)| {
        if n < SHARE {
            (0..n).for_each(work);
        } else {
            session.pool().install(|| (0..n).into_par_iter().with_min_len(SHARE).for_each(work));
        }
    };
    let [r, g, b, _] = camera.background;
    let background = [r, g, b].map(|c| (255.0 * c + 0.5) as u8);
    for layer in layers {
        each(layer.ends.len(), &|k| {
            let [a, b] = layer.ends[k].map(|e| view.relative(row(layer.position, e as usize)));
            let color = layer.color(camera.coloring, k);
            let faded = |depth: f64| {
                let part = (depth - depths[0]) / (depths[1] - depths[0]);
                mix(color, background, if part > 0.0 { FADED * part.min(1.0) } else { 0.0 })
            };
            canvas.line(view, a, b, camera.line_width, faded);
        });
    }
    canvas.join_lines(session)?;
    for layer in layers.iter().filter(|layer| layer.kind == ElementKind::Particles || layer.ends.is_empty()) {
        if matches!(layer.kind, ElementKind::Filaments | ElementKind::BoundSegments) {
            continue;
        }
        each(layer.elements(), &|k| point(&canvas, camera, view, layer, k));
    }
    canvas.join_points(session)?;
    Ok(canvas)
}

/// A tracer, parcel or particle. One that would be smaller than a pixel is fainter instead.
fn point(canvas: &Canvas, camera: &Camera, view: &View, layer: &Layer<'_>, k: usize) {
    let Some(spot) = view.see(row(layer.position, k)) else { return };
    let magnified = if view.parallel { 1.0 } else { view.reference / spot.depth };
    let radius = (0.5 * camera.point_size * magnified).min(RADIUS_MAX[0]);
    let color = layer.color(camera.coloring, k);
    let core = layer.core2.get(k).map_or(0.0, |c2| CORES * c2.sqrt() * spot.scale).min(RADIUS_MAX[1]);
    if core > radius.max(1.0) {
        canvas.point(spot, core, 1.0, true, color);
    } else {
        canvas.point(spot, radius.max(0.5), (4.0 * radius * radius).min(1.0), false, color);
    }
}

/// The picture of what was drawn.
fn develop(session: &Session, camera: &Camera, view: &View, canvas: &Canvas, plane: Option<Plane>) -> Vec<u8> {
    let (width, height) = (canvas.width, canvas.height);
    let mut picture = memory::filled(0u8, 4 * width * height);
    session.pool().install(|| {
        let opacity = if camera.opacity > 0.0 { camera.opacity } else { mean_opacity(canvas) };
        let mixer = Mixer { coloring: camera.coloring, blending: camera.blending, opacity };
        let [r, g, b, alpha] = camera.background;
        let background = Paint::new([r, g, b], alpha);
        let ground = plane.filter(|_| camera.grid > 0.0).map(|plane| Ground { plane, grid: camera.grid, view });
        picture.par_chunks_mut(4 * width).enumerate().for_each(|(j, line)| {
            for (i, bytes) in line.chunks_exact_mut(4).enumerate() {
                let under = match &ground {
                    Some(ground) => ground.under(i as f64 + 0.5, j as f64 + 0.5, background),
                    None => background,
                };
                bytes.copy_from_slice(&mixer.pixel(canvas, j * width + i, under));
            }
        });
    });
    picture
}

/// The opacity at which the mean pixel with points has the depth `MEAN_DEPTH`.
fn mean_opacity(canvas: &Canvas) -> f64 {
    let each = (0..canvas.width * canvas.height).into_par_iter().with_min_len(SHARE).map(|pixel| canvas.weight(pixel));
    let (sum, covered) = each.map(|w| (w, u64::from(w > 0))).reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    if covered == 0 { 1.0 } else { MEAN_DEPTH * ONE * covered as f64 / sum as f64 }
}

/// The ground plane with a grid.
struct Ground<'a> {
    plane: Plane,
    grid: f64,
    view: &'a View,
}

impl Ground<'_> {
    /// What is behind everything at a point of the picture: ground where the line of sight comes down to it.
    fn under(&self, x: f64, y: f64, background: Paint) -> Paint {
        let Plane { axis, position } = self.plane;
        let meets = |x: f64, y: f64| -> Option<(f64, Vec3)> {
            let (at, along) = self.view.sight(x, y);
            let t = (position - at[axis]) / along[axis];
            (t > 0.0 && at[axis] > position).then(|| (t, std::array::from_fn(|i| at[i] + t * along[i])))
        };
        let Some((depth, here)) = meets(x, y) else { return background };
        let faded = if self.view.parallel { 1.0 } else { (self.view.reference / depth).clamp(0.0, 1.0) };
        let mut shade = 0.10;
        for other in [(x + 1.0, y), (x, y + 1.0)].map(|(x, y)| meets(x, y)) {
            let Some((_, there)) = other else { continue };
            // A grid line runs between this pixel and the next.
            let crosses = |i: usize| i != axis && (here[i] / self.grid).floor() != (there[i] / self.grid).floor();
            if (0..3).any(crosses) {
                shade = 0.10 + 0.25 * faded * faded;
            }
        }
        background.under(Paint::new([0.85, 0.80, 0.72], shade * faded))
    }
}
