//! Checkpoints: a flow in a file and back.
//!
//! Enters: a flow and a path, or a path. Leaves: an `.npz` file, which NumPy and many others read (`numpy.load`), or the flow. The
//! members are listed in docs/flow.md. A file appears under its name only when it is whole.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::Flow;
use super::file::NewFile;
use super::integrate::History;
use super::npy::{self, Number};
use super::options::wfmm_flow_options;
use super::state::{Lines, State};
use super::step::fit_history;
use super::storage::ALL;
use super::vector::{PARTS, Part, Vector};
use crate::error::{Error, Result, WFMM_ERR_FILE, WFMM_ERR_TOO_NEW, number};
use crate::math::biot_savart::Vec3;
use crate::memory;
use crate::options::wfmm_plan_options;
use crate::session::Session;

/// Version of the list of members; older ones are read, newer ones refused.
const VERSION: i64 = 1;

fn broken<R>(path: &Path, why: impl std::fmt::Display) -> Result<R> {
    Error::fail(WFMM_ERR_FILE, format!("{}: {why}", path.display()))
}

struct Writer<'p> {
    path: &'p Path,
    zip: ZipWriter<NewFile>,
}

impl Writer<'_> {
    /// One member: rows of `width` numbers, or a plain list for 0.
    fn put<T: Number>(&mut self, name: &str, width: usize, values: &[T]) -> Result<()> {
        let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
        let written = self.zip.start_file(format!("{name}.npy"), stored).map_err(std::io::Error::from);
        written.and_then(|()| npy::write(&mut self.zip, width, values)).or_else(|e| broken(self.path, e))
    }

    fn lines(&mut self, kind: &str, lines: &Lines, points: &[f64]) -> Result<()> {
        self.put(&format!("{kind}_point"), 3, points)?;
        self.put(&format!("{kind}_point_id"), 0, &lines.point_id)?;
        self.put(&format!("{kind}_ends"), 2, lines.ends.as_flattened())?;
        self.put(&format!("{kind}_circulation"), 0, &lines.circulation)?;
        self.put(&format!("{kind}_core_radius"), 0, &lines.core)?;
        self.put(&format!("{kind}_id"), 0, &lines.id)
    }
}

struct Reader<'p> {
    path: &'p Path,
    zip: ZipArchive<BufReader<File>>,
}

impl Reader<'_> {
    fn has(&self, name: &str) -> bool {
        self.zip.index_for_name(&format!("{name}.npy")).is_some()
    }

    fn get<T: Number>(&mut self, name: &str, width: usize) -> Result<Vec<T>> {
        let mut member = match self.zip.by_name(&format!("{name}.npy")) {
            Ok(member) => member,
            Err(e) => return broken(self.path, format!("member {name}: {e}")),
        };
        npy::read(&mut member, width).or_else(|e| broken(self.path, format!("member {name}: {e}")))
    }

    /// A list of known length.
    fn exactly<T: Number, const N: usize>(&mut self, name: &str) -> Result<[T; N]> {
        let values = self.get::<T>(name, 0)?;
        let n = values.len();
        values.try_into().or_else(|_| broken(self.path, format!("member {name} has {n} numbers; {N} are needed")))
    }

    /// One number that a computation goes on with: not negative, and finite.
    fn not_negative(&mut self, name: &str) -> Result<f64> {
        let [x] = self.exactly(name)?;
        if (0.0..f64::INFINITY).contains(&x) { Ok(x) } else { self.refuse(name, number(x), "0 or a positive number") }
    }

    fn refuse<R>(&self, name: &str, x: impl std::fmt::Display, accepted: &str) -> Result<R> {
        broken(self.path, format!("member {name} has {x}; accepted: {accepted}"))
    }

    /// Options of a struct, whose integers have 32 bits.
    fn options<const N: usize>(&mut self, name: &str, wide: [i64; N]) -> Result<[i32; N]> {
        match wide.iter().find(|n| i32::try_from(**n).is_err()) {
            Some(n) => self.refuse(name, n, "numbers of 32 bits"),
            None => Ok(wide.map(|n| n as i32)),
        }
    }

    /// Rates of the last step, if it left any. What was added after it has none, which is NaN.
    fn history(&mut self, free_stream: Vec3) -> Result<Option<History>> {
        let dt: Vec<f64> = self.get("history_dt", 0)?;
        let Some(&dt) = dt.first() else { return Ok(None) };
        if !(dt > 0.0 && dt.is_finite()) {
            return self.refuse("history_dt", number(dt), "a positive number");
        }
        let mut rate = Vector::default();
        for (part, width) in PARTS {
            let name = format!("history_{}", part as usize);
            let values: Vec<f64> = self.get(&name, if width == 3 { 3 } else { 0 })?;
            if let Some(x) = values.iter().find(|x| x.is_infinite()) {
                return self.refuse(&name, x, "finite numbers, and NaN for none");
            }
            *rate.part_mut(part) = values;
        }
        // Files of before have no such member.
        let free_stream =
            if self.has("history_free_stream") { self.exactly("history_free_stream")? } else { free_stream };
        match free_stream.iter().find(|x| !x.is_finite()) {
            Some(x) => self.refuse("history_free_stream", x, "finite numbers"),
            None => Ok(Some(History { rate, dt, free_stream })),
        }
    }

    fn lines(&mut self, kind: &str) -> Result<(Lines, Vec<f64>)> {
        let points = self.get(&format!("{kind}_point"), 3)?;
        let ends: Vec<i32> = self.get(&format!("{kind}_ends"), 2)?;
        let lines = Lines {
            ends: memory::collect(ends.chunks_exact(2).map(|e| [e[0], e[1]])),
            circulation: self.get(&format!("{kind}_circulation"), 0)?,
            core: self.get(&format!("{kind}_core_radius"), 0)?,
            id: self.get(&format!("{kind}_id"), 0)?,
            point_id: self.get(&format!("{kind}_point_id"), 0)?,
        };
        Ok((lines, points))
    }
}

impl Flow {
    /// Writes the flow; a file that was there is replaced when the new one is whole. Of many ranks each writes its own file,
    /// and none replaces one before all are whole.
    pub fn save(&mut self, path: &Path) -> Result<()> {
        let session = self.session.clone();
        let file = session.together(SAVE, || {
            self.store.read(&ALL)?;
            NewFile::beside(path).or_else(|e| broken(path, e))
        })?;
        let number = self.number_of_save(&file, path)?;
        let file = session.together(SAVE, || self.write(file, number, path))?;
        session.together(SAVE, || file.put_in_place().or_else(|e| broken(path, e)))
    }

    /// Of several ranks: a number that all files of a save have, and no other save. Two ranks that write to one file are refused.
    fn number_of_save(&self, file: &NewFile, path: &Path) -> Result<Option<i64>> {
        let (rank, ranks) = self.session.rank();
        if ranks == 1 {
            return Ok(None);
        }
        // As real numbers, which the ranks exchange.
        let real = |number: u64| (number % (1 << 52)) as f64;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let [process, number] = file.writer();
        let mine = [hash(file.name()), process, number, now].map(real);
        let all = self.session.joined(&mine)?;
        // A rank of another machine may have the same path in a folder of its own.
        let is_same = |of: &[f64]| of[0] == mine[0] && file.is_beside([of[1] as u64, of[2] as u64]);
        let other = all.chunks_exact(mine.len()).enumerate().find(|(r, of)| *r != rank && is_same(of));
        self.session.together(SAVE, || match other {
            Some((other, _)) => broken(path, format!("rank {other} saves to this file, too; each rank needs its own")),
            None => Ok(()),
        })?;
        let bits: Vec<u64> = memory::collect(all.iter().map(|x| x.to_bits()));
        Ok(Some(real(hash(bits)) as i64))
    }

    fn write(&self, file: NewFile, number: Option<i64>, path: &Path) -> Result<NewFile> {
        let mut w = Writer { path, zip: ZipWriter::new(file) };
        let (state, history) = (self.store.known(), self.store.history());
        w.put("version", 0, &[VERSION])?;
        w.put("time", 0, &[state.time])?;
        w.put("step", 0, &[state.step])?;
        w.put("free_stream", 0, &self.sums.free_stream)?;
        w.put("largest_displacement", 0, &[self.largest_displacement])?;
        let (o, p) = (&self.given.1, &self.given.0);
        w.put("plan_options_integers", 0, &plan_integers(p))?;
        w.put("plan_options_reals", 0, &plan_reals(p))?;
        w.put("flow_options_integers", 0, &[o.integrator, o.stretching, o.spreading].map(i64::from))?;
        w.put("flow_options_reals", 0, &flow_reals(o))?;
        w.put("unfit_core_radius_squared", 0, &[self.spread.unfit])?;
        let part = |part| state.moving.part(part);
        w.put("particle_position", 3, part(Part::ParticlePosition))?;
        w.put("particle_strength", 3, part(Part::ParticleStrength))?;
        w.put("particle_core_radius_squared", 0, part(Part::ParticleCore2))?;
        w.put("particle_id", 0, &state.particle_id)?;
        w.lines("filament", &state.filaments, part(Part::PointPosition))?;
        w.lines("bound", &state.bound, &state.bound_points)?;
        w.put("tracer_position", 3, part(Part::TracerPosition))?;
        w.put("tracer_id", 0, &state.tracer_id)?;
        w.put("dust_position", 3, &state.dust.position)?;
        w.put("dust_velocity", 3, &state.dust.velocity)?;
        w.put("dust_diameter", 0, &state.dust.diameter)?;
        w.put("dust_density", 0, &state.dust.density)?;
        w.put("dust_id", 0, &state.dust.id)?;
        let (rank, ranks) = self.session.rank();
        w.put("rank_and_ranks", 0, &[rank as i64, ranks as i64])?;
        if let Some(number) = number {
            w.put("number_of_save", 0, &[number])?;
        }
        let (next, next_point) = state.next_identities();
        w.put("next_id", 0, &next)?;
        w.put("next_point_id", 0, &next_point)?;
        let dt: Vec<f64> = history.iter().map(|h| h.dt).collect();
        w.put("history_dt", 0, &dt)?;
        if let Some(history) = history {
            w.put("history_free_stream", 0, &history.free_stream)?;
        }
        for (part, width) in PARTS.into_iter().filter(|_| history.is_some()) {
            let rate = history.map_or(&[][..], |h| h.rate.part(part));
            w.put(&format!("history_{}", part as usize), if width == 3 { 3 } else { 0 }, rate)?;
        }
        let whole = w.zip.finish().map_err(std::io::Error::from).and_then(|mut file| {
            file.complete()?;
            Ok(file)
        });
        whole.or_else(|e| broken(path, e))
    }

    /// A flow as `save` left it; the callback is the host's to set again. Of many ranks each reads its own file.
    pub fn load(session: Arc<Session>, path: &Path) -> Result<Self> {
        let (p, o, saved) = session.together("wfmm_flow_load", || Saved::read(&session, path))?;
        let named = |e: Error| Error::new(e.status, format!("{}: {}", path.display(), e.message));
        let mut flow = Self::new(session.clone(), p, o).map_err(named)?;
        flow.set_free_stream(saved.free_stream).map_err(named)?;
        flow.largest_displacement = saved.largest_displacement;
        let (state, mut history) = (saved.state, saved.history);
        session.together("wfmm_flow_load", || state.inconsistency().map_or(Ok(()), |why| broken(path, why)))?;
        let (next, next_point) = state.next_identities();
        let next = next.iter().chain(&next_point).map(|&n| n as f64).sum();
        let step = state.step as f64;
        session.same(&[
            ("number of the save", saved.number),
            ("time", state.time),
            ("step", step),
            ("sum of next identities", next),
        ])?;
        fit_history(&state, &mut history);
        flow.loaded_at = Some(state.step);
        flow.spread.unfit = saved.unfit;
        flow.store.set(state, history);
        Ok(flow)
    }
}

/// What a file holds beside the options.
struct Saved {
    state: State,
    history: Option<History>,
    free_stream: [f64; 3],
    largest_displacement: f64,
    /// The largest squared core that was not narrowed.
    unfit: f64,
    /// See `number_of_save`.
    number: f64,
}

const SAVE: &str = "wfmm_flow_save";

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Saved {
    fn read(session: &Session, path: &Path) -> Result<(wfmm_plan_options, wfmm_flow_options, Self)> {
        let file = File::open(path).or_else(|e| broken(path, e))?;
        let zip =
            ZipArchive::new(BufReader::new(file)).or_else(|e| broken(path, format!("no whole .npz file: {e}")))?;
        let mut r = Reader { path, zip };
        let [version]: [i64; 1] = r.exactly("version")?;
        if version > VERSION {
            let message = format!("{}: version {version}; this library reads {VERSION}", path.display());
            return Error::fail(WFMM_ERR_TOO_NEW, message);
        }
        if version < 1 {
            return r.refuse("version", version, "1 and more");
        }
        // Files of before have no such member: they are of one rank.
        let of = if r.has("rank_and_ranks") { r.exactly("rank_and_ranks")? } else { [0, 1] };
        let (rank, ranks) = session.rank();
        if of != [rank as i64, ranks as i64] {
            let message = format!("of rank {} of {}; this is rank {rank} of {ranks}", of[0], of[1]);
            return broken(path, message);
        }
        let (p, o) = (read_plan(&mut r)?, read_flow(&mut r)?);
        let state = read_state(&mut r)?;
        if o.fluid_viscosity == 0.0 && !state.dust.id.is_empty() {
            return broken(path, "dust in a fluid without viscosity");
        }
        let free_stream: Vec3 = r.exactly("free_stream")?;
        let largest_displacement = r.not_negative("largest_displacement")?;
        // Files of before have no such member.
        let unfit = if r.has("unfit_core_radius_squared") { r.not_negative("unfit_core_radius_squared")? } else { 0.0 };
        let history = r.history(free_stream)?;
        // Nor these.
        let [number]: [i64; 1] = if r.has("number_of_save") { r.exactly("number_of_save")? } else { [0] };
        Ok((p, o, Self { state, history, free_stream, largest_displacement, unfit, number: number as f64 }))
    }
}

fn read_state(r: &mut Reader<'_>) -> Result<State> {
    let mut state = State::default();
    [state.time] = r.exactly("time")?;
    [state.step] = r.exactly("step")?;
    *state.moving.part_mut(Part::ParticlePosition) = r.get("particle_position", 3)?;
    *state.moving.part_mut(Part::ParticleStrength) = r.get("particle_strength", 3)?;
    *state.moving.part_mut(Part::ParticleCore2) = r.get("particle_core_radius_squared", 0)?;
    state.particle_id = r.get("particle_id", 0)?;
    (state.filaments, *state.moving.part_mut(Part::PointPosition)) = r.lines("filament")?;
    (state.bound, state.bound_points) = r.lines("bound")?;
    *state.moving.part_mut(Part::TracerPosition) = r.get("tracer_position", 3)?;
    state.tracer_id = r.get("tracer_id", 0)?;
    state.dust.position = r.get("dust_position", 3)?;
    state.dust.velocity = r.get("dust_velocity", 3)?;
    state.dust.diameter = r.get("dust_diameter", 0)?;
    state.dust.density = r.get("dust_density", 0)?;
    state.dust.id = r.get("dust_id", 0)?;
    state.set_next_identities(r.exactly("next_id")?, r.exactly("next_point_id")?);
    Ok(state)
}

fn plan_integers(p: &wfmm_plan_options) -> [i64; 10] {
    let regularizations = [p.segment_regularization as i64, p.particle_regularization as i64];
    let [segments, particles] = regularizations;
    let (axis, expansion) = (p.plane_axis as i64, p.expansion as i64);
    let [method, precision, order, leaf] = [p.method, p.precision, p.order, p.leaf_capacity].map(i64::from);
    [method, precision, order, leaf, segments, particles, p.index_base as i64, p.flags as i64, axis, expansion]
}

fn plan_reals(p: &wfmm_plan_options) -> [f64; 7] {
    let [x, y, z] = p.period;
    [p.tolerance, p.normalization, p.core_radius, p.plane_position, x, y, z]
}

fn read_plan(r: &mut Reader<'_>) -> Result<wfmm_plan_options> {
    let integers = "plan_options_integers";
    let [a, b, c, d, e, f, g, flags, h, i] = r.exactly(integers)?;
    let [method, precision, order, leaf_capacity, segments, particles, index_base, plane_axis, expansion] =
        r.options(integers, [a, b, c, d, e, f, g, h, i])?;
    let [tolerance, normalization, core_radius, plane_position, x, y, z] = r.exactly("plan_options_reals")?;
    Ok(wfmm_plan_options {
        method,
        precision,
        order,
        leaf_capacity,
        segment_regularization: segments,
        particle_regularization: particles,
        index_base,
        flags: flags as u64,
        plane_axis,
        expansion,
        tolerance,
        normalization,
        core_radius,
        plane_position,
        period: [x, y, z],
        ..Default::default()
    })
}

fn flow_reals(o: &wfmm_flow_options) -> [f64; 11] {
    let [x, y, z] = o.gravity;
    let motion = (o.fluid_density, o.fluid_viscosity, o.restitution, o.friction);
    let (density, viscosity, restitution, friction) = motion;
    [o.viscosity, o.squire, o.core_limit, o.split_length, x, y, z, density, viscosity, restitution, friction]
}

fn read_flow(r: &mut Reader<'_>) -> Result<wfmm_flow_options> {
    let integers = "flow_options_integers";
    let wide = r.exactly(integers)?;
    let [integrator, stretching, spreading] = r.options(integers, wide)?;
    let x: [f64; 11] = r.exactly("flow_options_reals")?;
    Ok(wfmm_flow_options {
        integrator,
        stretching,
        spreading,
        viscosity: x[0],
        squire: x[1],
        core_limit: x[2],
        split_length: x[3],
        gravity: [x[4], x[5], x[6]],
        fluid_density: x[7],
        fluid_viscosity: x[8],
        restitution: x[9],
        friction: x[10],
        ..Default::default()
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use crate::flow::edit::DustArrays;
    use crate::flow::options::{WFMM_INTEGRATOR_AB2, WFMM_SPREADING_CORES};
    use crate::options::{BackendKind, SessionOptions};
    use crate::plan::arrays::Array::Host;
    use crate::plan::sources::Particles;

    /// A copy of a file with these bytes for number `at` of a member.
    fn with_number(whole: &Path, copy: &Path, member: &str, at: usize, number: [u8; 8]) {
        let mut from = ZipArchive::new(File::open(whole).unwrap()).unwrap();
        let mut to = ZipWriter::new(File::create(copy).unwrap());
        let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        for k in 0..from.len() {
            let mut file = from.by_index(k).unwrap();
            let (name, mut bytes) = (file.name().unwrap().into_owned(), vec![]);
            file.read_to_end(&mut bytes).unwrap();
            if name == format!("{member}.npy") {
                let data = 10 + u16::from_le_bytes([bytes[8], bytes[9]]) as usize + 8 * at;
                bytes[data..data + 8].copy_from_slice(&number);
            }
            to.start_file(name, stored).unwrap();
            to.write_all(&bytes).unwrap();
        }
        to.finish().unwrap();
    }

    #[test]
    fn numbers_that_no_flow_has_are_refused() {
        let session =
            Session::new(&SessionOptions { backend: BackendKind::Cpu, device: None, devices: vec![], threads: 1 });
        let session = session.unwrap();
        let motion = wfmm_flow_options {
            integrator: WFMM_INTEGRATOR_AB2,
            spreading: WFMM_SPREADING_CORES,
            viscosity: 1e-3,
            fluid_viscosity: 1e-5,
            ..Default::default()
        };
        let mut flow = Flow::new(session.clone(), wfmm_plan_options::default(), motion).unwrap();
        let (x, one) = ([0.0, 0.0, 1.0], [1.0]);
        let core = Some(Host(&one[..]));
        let particles = Particles { n: 1, position: Host(&x[..]), strength: Host(&x[..]), core };
        flow.put_particles(Some(particles), true).unwrap();
        let (position, diameter, density) = (Host(&x[..]), Host(&one[..]), Host(&one[..]));
        flow.put_dust(Some(DustArrays { position, velocity: None, diameter, density }), true).unwrap();
        flow.advance(0.1, 2).unwrap();
        let path = |name: &str| std::env::temp_dir().join(format!("wakefmm-{name}-{}.npz", std::process::id()));
        let (whole, changed) = (path("numbers"), path("changed"));
        flow.save(&whole).unwrap();
        let load = |member: &str, at: usize, number: [u8; 8]| {
            with_number(&whole, &changed, member, at, number);
            Flow::load(session.clone(), &changed).map(|_| ())
        };
        let wide = (1i64 << 32) + 1;
        let integers =
            [("version", 0, -5), ("version", 0, 0), ("step", 0, -1), ("next_id", 0, -1), ("particle_id", 0, -1)];
        let options = [
            ("plan_options_integers", 0, wide),
            ("plan_options_integers", 9, -wide),
            ("flow_options_integers", 0, wide),
        ];
        for (member, at, n) in integers.into_iter().chain(options) {
            let error = load(member, at, n.to_le_bytes()).unwrap_err();
            assert_eq!(error.status, WFMM_ERR_FILE, "{member}: {}", error.message);
        }
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let reals = [
            ("particle_core_radius_squared", 0, -1.0),
            ("largest_displacement", 0, nan),
            ("largest_displacement", 0, -1.0),
            ("unfit_core_radius_squared", 0, nan),
            ("unfit_core_radius_squared", 0, inf),
            ("history_dt", 0, nan),
            ("history_dt", 0, 0.0),
            ("history_0", 2, inf),
            ("history_free_stream", 0, nan),
            ("flow_options_reals", 8, 0.0),
        ];
        for (member, at, x) in reals {
            let error = load(member, at, x.to_le_bytes()).unwrap_err();
            assert_eq!(error.status, WFMM_ERR_FILE, "{member}: {}", error.message);
        }
        load("history_0", 0, nan.to_le_bytes()).unwrap();
        load("history_free_stream", 0, 1f64.to_le_bytes()).unwrap();
        [whole, changed].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }
}
