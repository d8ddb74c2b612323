//! Checkpoints: a flow in a file and back.
//!
//! Enters: a flow and a path, or a path. Leaves: an `.npz` file, which NumPy and many others read (`numpy.load`), or the flow. The
//! members are listed in docs/flow.md. A file appears under its name only when it is whole.

use std::fs::File;
use std::io::{BufReader, BufWriter, Seek, Write};
use std::path::Path;
use std::sync::Arc;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::Flow;
use super::integrate::History;
use super::npy::{self, Number};
use super::options::wfmm_flow_options;
use super::state::{Lines, State};
use super::step::fit_history;
use super::storage::ALL;
use super::vector::{PARTS, Part, Vector};
use crate::error::{Error, Result, WFMM_ERR_FILE, WFMM_ERR_TOO_NEW};
use crate::math::biot_savart::Vec3;
use crate::memory;
use crate::options::wfmm_plan_options;
use crate::session::Session;

/// Version of the list of members; older ones are read, newer ones refused.
const VERSION: i64 = 1;

fn broken<R>(path: &Path, why: impl std::fmt::Display) -> Result<R> {
    Error::fail(WFMM_ERR_FILE, format!("{}: {why}", path.display()))
}

struct Writer<'p, W: Write + Seek> {
    path: &'p Path,
    zip: ZipWriter<W>,
}

impl<W: Write + Seek> Writer<'_, W> {
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
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}.tmp", std::process::id()));
        let beside = Path::new(&beside);
        let call = "wfmm_flow_save";
        let session = self.session.clone();
        let written = session.together(call, || {
            self.store.read(&ALL)?;
            self.write_to(beside, path)
        });
        let rename = || std::fs::rename(beside, path).or_else(|e| broken(path, e));
        let done = written.and_then(|()| session.together(call, rename));
        if done.is_err() {
            // What is there is of no use; that it may stay is no second error.
            let _ = std::fs::remove_file(beside);
        }
        done
    }

    fn write_to(&self, beside: &Path, path: &Path) -> Result<()> {
        let file = File::create(beside).or_else(|e| broken(path, e))?;
        let mut w = Writer { path, zip: ZipWriter::new(BufWriter::new(file)) };
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
        let done = w.zip.finish().map_err(std::io::Error::from).and_then(|mut file| {
            file.flush()?;
            file.get_ref().sync_all()
        });
        done.or_else(|e| broken(path, e))
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
        session.same(&[("time", state.time), ("step", state.step as f64), ("sum of next identities", next)])?;
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
        // Files of before have no such member: they are of one rank.
        let of = if r.has("rank_and_ranks") { r.exactly("rank_and_ranks")? } else { [0, 1] };
        let (rank, ranks) = session.rank();
        if of != [rank as i64, ranks as i64] {
            let message = format!("of rank {} of {}; this is rank {rank} of {ranks}", of[0], of[1]);
            return broken(path, message);
        }
        let (p, o) = (read_plan(&mut r)?, read_flow(&mut r)?);
        let state = read_state(&mut r)?;
        let free_stream: Vec3 = r.exactly("free_stream")?;
        let [largest_displacement] = r.exactly("largest_displacement")?;
        // Files of before have no such member.
        let [unfit] = if r.has("unfit_core_radius_squared") { r.exactly("unfit_core_radius_squared")? } else { [0.0] };
        let mut history = None;
        let dt: Vec<f64> = r.get("history_dt", 0)?;
        if let Some(&dt) = dt.first() {
            let mut rate = Vector::default();
            for (part, width) in PARTS {
                *rate.part_mut(part) = r.get(&format!("history_{}", part as usize), if width == 3 { 3 } else { 0 })?;
            }
            // Files of before have no such member.
            let of_rate = if r.has("history_free_stream") { r.exactly("history_free_stream")? } else { free_stream };
            history = Some(History { rate, dt, free_stream: of_rate });
        }
        Ok((p, o, Self { state, history, free_stream, largest_displacement, unfit }))
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
    let n: [i64; 10] = r.exactly("plan_options_integers")?;
    let x: [f64; 7] = r.exactly("plan_options_reals")?;
    Ok(wfmm_plan_options {
        method: n[0] as i32,
        precision: n[1] as i32,
        order: n[2] as i32,
        leaf_capacity: n[3] as i32,
        segment_regularization: n[4] as i32,
        particle_regularization: n[5] as i32,
        index_base: n[6] as i32,
        flags: n[7] as u64,
        plane_axis: n[8] as i32,
        expansion: n[9] as i32,
        tolerance: x[0],
        normalization: x[1],
        core_radius: x[2],
        plane_position: x[3],
        period: [x[4], x[5], x[6]],
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
    let n: [i64; 3] = r.exactly("flow_options_integers")?;
    let x: [f64; 11] = r.exactly("flow_options_reals")?;
    Ok(wfmm_flow_options {
        integrator: n[0] as i32,
        stretching: n[1] as i32,
        spreading: n[2] as i32,
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
