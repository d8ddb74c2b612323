//! A picture in device memory, of a flow whose state is there: only numbers that the camera needs and the image cross the bus.
//!
//! Enters: the arrays of `Resident`, a camera. Leaves: the bytes of the picture. Identities, which the host alone has, go to the device
//! when colors say ages, and only where elements are missing among them; they stay there.

use super::camera::{Blending, Camera, Coloring, View};
use super::canvas::{EDGE, ONE, Rgb};
use super::colors::{SCALE, of_kind};
use super::{CORES, FADED, MEAN_DEPTH, RADIUS_MAX};
use crate::backend::cuda::array::{DeviceArray, Span};
use crate::backend::cuda::motion::Motion;
use crate::backend::cuda::picture::args::{StyleArg, ViewArg};
use crate::backend::cuda::picture::{Drawing, Layer, Shown, Sums};
use crate::error::Result;
use crate::flow::device::Resident;
use crate::flow::options::ElementKind;
use crate::flow::state::State;
use crate::flow::storage::{ALL, Held, Tools};
use crate::flow::vector::Part;
use crate::options::Plane;

/// What pictures keep on a device.
pub struct Pictures {
    drawing: Drawing,
    ages: [Ages; ALL.len()],
}

/// Identities of a kind: of the first `known` elements they are known, of the first `sent` on the device.
struct Ages {
    known: usize,
    sent: usize,
    first: i64,
    /// None is missing between the first and the last.
    in_row: bool,
    range: [f64; 2],
    id: DeviceArray<i64>,
}

impl Ages {
    /// Up to date, from the host's.
    fn update(&mut self, ids: &[i64], motion: &mut Motion) -> Result<()> {
        let more = &ids[self.known..];
        if self.known == 0 {
            (self.first, self.in_row) = (ids.first().copied().unwrap_or_default(), true);
            self.range = [f64::INFINITY, f64::NEG_INFINITY];
        }
        let from = self.first + self.known as i64;
        self.in_row &= more.iter().zip(from..).all(|(id, next)| *id == next);
        let (least, most) = more.iter().fold((i64::MAX, i64::MIN), |(a, b), id| (a.min(*id), b.max(*id)));
        if !more.is_empty() {
            self.range = [self.range[0].min(least as f64), self.range[1].max(most as f64)];
        }
        self.known = ids.len();
        if !self.in_row && self.sent < ids.len() {
            self.id.grow(ids.len(), self.sent, motion.stream())?;
            motion.upload(self.id.span_mut().part(self.sent, ids.len() - self.sent), &ids[self.sent..])?;
            self.sent = ids.len();
        }
        Ok(())
    }

    fn shown(&self) -> Shown<'_> {
        Shown::Age { first: self.first, id: (!self.in_row).then(|| self.id.span()) }
    }
}

impl Pictures {
    fn new(motion: &Motion) -> Result<Self> {
        let context = motion.stream().context();
        let id = || DeviceArray::new(context);
        let ages = || Ages { known: 0, sent: 0, first: 0, in_row: true, range: [0.0; 2], id: id() };
        Ok(Self { drawing: Drawing::new(context)?, ages: ALL.map(|_| ages()) })
    }

    pub fn bytes(&self) -> u64 {
        self.drawing.bytes() + self.ages.iter().map(|ages| ages.id.bytes()).sum::<u64>()
    }

    /// The elements of a kind are others now.
    pub fn forget(&mut self, kind: ElementKind) {
        let ages = &mut self.ages[kind as usize];
        (ages.known, ages.sent) = (0, 0);
    }
}

fn packed([r, g, b]: Rgb) -> u32 {
    u32::from_be_bytes([0, r, g, b])
}

impl View {
    fn argument(&self) -> ViewArg {
        ViewArg {
            eye: self.eye,
            right: self.right,
            up: self.up,
            forward: self.forward,
            middle: self.middle,
            focal: self.focal,
            near: self.near,
            reference: self.reference,
            parallel: i64::from(self.parallel),
        }
    }
}

fn style(camera: &Camera, depths: [f64; 2], kinds: &[ElementKind], plane: Option<Plane>) -> StyleArg {
    let [r, g, b, _] = camera.background;
    let ground = plane.filter(|_| camera.grid > 0.0);
    StyleArg {
        one: ONE,
        point_size: camera.point_size,
        radius_max: RADIUS_MAX,
        cores: CORES,
        line_width: camera.line_width,
        edge: EDGE,
        depths,
        faded: FADED,
        opacity: camera.opacity,
        mean_depth: MEAN_DEPTH,
        background: camera.background,
        background_color: packed([r, g, b].map(|c| (255.0 * c + 0.5) as u8)),
        density: u32::from(camera.coloring == Coloring::Density),
        additive: u32::from(camera.blending == Blending::Additive),
        kinds: std::array::from_fn(|k| kinds.get(k).map_or(0, |kind| packed(of_kind(*kind)))),
        scale: SCALE.map(packed),
        ground_axis: ground.map_or(-1, |plane| plane.axis as i32),
        ground: ground.map_or(0.0, |plane| plane.position),
        grid: camera.grid,
    }
}

impl Resident {
    /// A picture to host memory: rows from the top, four bytes a pixel.
    pub fn picture(
        &mut self,
        held: Held<'_>,
        tools: &mut Tools<'_>,
        camera: &Camera,
        plane: Option<Plane>,
        to: &mut [u8],
    ) -> Result<()> {
        let Held { state, history } = held;
        self.bring(state, history.as_ref())?;
        let drawn: Vec<_> = ALL.into_iter().filter(|k| camera.draws(*k) && state.counts(*k).0 > 0).collect();
        if camera.coloring == Coloring::Speed && drawn.iter().any(|kind| *kind != ElementKind::Dust) {
            self.fluid_velocities(state, tools)?;
        }
        let mut pictures = match self.pictures.take() {
            Some(pictures) => pictures,
            None => Box::new(Pictures::new(&self.motion)?),
        };
        let done = self.draw(&mut pictures, state, camera, &drawn, plane, to);
        self.pictures = Some(pictures);
        done
    }

    fn draw(
        &mut self,
        Pictures { drawing, ages }: &mut Pictures,
        state: &State,
        camera: &Camera,
        drawn: &[ElementKind],
        plane: Option<Plane>,
        to: &mut [u8],
    ) -> Result<()> {
        if camera.coloring == Coloring::Age {
            drawn.iter().try_for_each(|k| ages[*k as usize].update(state.ids(*k), &mut self.motion))?;
        }
        let points: Vec<_> = drawn.iter().copied().filter(|kind| !kind.is_lines()).collect();
        let mut layers: Vec<_> =
            drawn.iter().map(|kind| (*kind, self.layer(state, camera.coloring, *kind, &points, ages))).collect();
        let stream = self.motion.stream();
        drawing.look_anew(stream)?;
        for (_, layer) in &layers {
            drawing.look(layer, camera.own_view().argument(), camera.slopes(), stream)?;
        }
        let extent = drawing.found(stream)?;
        let [low, high] = camera.color_range;
        let speeds = if low == high { [-extent.speed[0], extent.speed[1]] } else { [low, high] };
        if camera.coloring == Coloring::Speed {
            layers.iter_mut().for_each(|(_, layer)| layer.range = speeds);
        }
        let (view, depths) = camera.view(extent.bounds[0].is_finite().then_some(extent.bounds));
        let (view, style) = (view.argument(), style(camera, depths, &points, plane));
        let of_kinds = matches!(camera.coloring, Coloring::Kind | Coloring::Density);
        let has_lines = points.len() < drawn.len();
        loop {
            let sums = if of_kinds { Sums::OfKinds(points.len()) } else { drawing.of_colors() };
            drawing.begin([camera.width, camera.height], has_lines, sums, stream)?;
            for (_, layer) in layers.iter().filter(|(kind, _)| kind.is_lines()) {
                drawing.lines(layer, view, style, stream)?;
            }
            for (_, layer) in layers.iter().filter(|(kind, _)| !kind.is_lines()) {
                drawing.points(layer, view, style, stream)?;
            }
            if drawing.sums_fit(style, stream)? {
                break;
            }
            drawing.look_anew(stream)?;
        }
        drop(layers);
        let image = drawing.develop(view, style, stream)?;
        // A kernel that fails must not leave a part of a picture.
        self.motion.stream().synchronize()?;
        self.motion.download(image, to)
    }

    /// The elements of a kind as they are drawn.
    fn layer<'a>(
        &'a self,
        state: &State,
        coloring: Coloring,
        kind: ElementKind,
        points: &[ElementKind],
        ages: &'a [Ages],
    ) -> Layer<'a> {
        let (n, of) = (state.counts(kind).0, &ages[kind as usize]);
        let part = |part| self.shape.part(self.y.span(), part);
        let moving = self.shape.len(Part::SegmentVolume);
        let ends = |from: usize| Some(self.lines.ends.span().part(2 * from, 2 * n));
        let (position, ends, core2) = match kind {
            ElementKind::Particles => (part(Part::ParticlePosition), None, Some(part(Part::ParticleCore2))),
            ElementKind::Filaments => (part(Part::PointPosition), ends(0), None),
            ElementKind::BoundSegments => (self.lines.bound_points.span(), ends(moving), None),
            ElementKind::Tracers => (part(Part::TracerPosition), None, None),
            ElementKind::Dust => (self.dust.position.span(), None, None),
        };
        let shown = match coloring {
            Coloring::Kind | Coloring::Density => Shown::Kind,
            Coloring::Speed => Shown::Speed(self.velocity_of(kind)),
            Coloring::Age => of.shown(),
        };
        Layer {
            n,
            position,
            ends,
            base: if kind == ElementKind::BoundSegments { self.shape.len(Part::PointPosition) / 3 } else { 0 },
            core2,
            shown,
            range: if coloring == Coloring::Age { of.range } else { [0.0, 1.0] },
            color: packed(of_kind(kind)),
            channel: points.iter().position(|other| *other == kind).unwrap_or_default(),
        }
    }

    /// Velocities of a kind: of dust its own, else what `fluid_velocities` found.
    fn velocity_of(&self, kind: ElementKind) -> Span<'_, f64> {
        let found = |part| self.shape.part(self.exchange.velocity.span(), part);
        match kind {
            ElementKind::Particles => found(Part::ParticlePosition),
            ElementKind::Filaments => found(Part::PointPosition),
            ElementKind::Tracers => found(Part::TracerPosition),
            ElementKind::Dust => self.dust.velocity.span(),
            ElementKind::BoundSegments => {
                let from = self.shape.start(Part::DustDrift);
                self.exchange.velocity.span().part(from, self.lines.bound_points.span().len())
            }
        }
    }

    /// The fluid's velocity at everything that moves with it, and after that at bound points, to `exchange.velocity`.
    fn fluid_velocities(&mut self, state: &State, tools: &mut Tools<'_>) -> Result<()> {
        let start = self.begin()?;
        self.set_sources(state, tools.sums, &start, &start)?;
        let (moved, bound) = (self.shape.start(Part::DustDrift), self.lines.bound_points.span());
        self.exchange.targets.resize(moved + bound.len())?;
        let mut to = self.exchange.targets.span_mut();
        to.part(0, moved).copy_from(start.span().part(0, moved), self.motion.stream())?;
        to.part(moved, bound.len()).copy_from(bound, self.motion.stream())?;
        self.field(tools.sums, state.time, false)
    }
}
