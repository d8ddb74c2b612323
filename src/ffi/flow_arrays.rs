//! Arrays of a flow: elements in, quantities and velocities out; single and double precision from one body.
//!
//! All arrays are copied, those in device memory by way of the host's but for two calls in double precision on a flow that is stepped
//! there: particles that are set without core radii, and velocities at points. The state is in double precision whatever the arrays
//! are. The identities of a kind count from 0 in the order in which its elements were added, on a distributed session rank by rank,
//! and are not used again.

use crate::error::Result;
use crate::flow::Flow;
use crate::flow::options::Quantity;
use crate::options::code;
use crate::plan::arrays::{Array, ArrayMut};

use super::boundary::{Arrays, count, twins};
use super::elements;
use super::flow::{kind_of, output_array};
use super::flow_cell::with_flow;
use super::wfmm_flow;

fn quantity_of(given: i32) -> Result<Quantity> {
    let accepted = "WFMM_QUANTITY_POSITION to WFMM_QUANTITY_DENSITY (0 to 6)";
    code("quantity", given, Quantity::from_code(given), accepted)
}

/// What `given` makes of the arrays of a call; of many ranks all succeed or none.
fn read<R>(flow: &Flow, call: &str, memory: i32, given: impl FnOnce(&Arrays<'_>) -> Result<R>) -> Result<R> {
    let session = flow.session();
    session.together(call, || given(&Arrays::new(session, memory)?))
}

twins! {
    /// Sets the vortex particles, in place of those that were there; n = 0 removes them.
    /// `position`: `[n][3]`, length. `strength`: `[n][3]`, length^3/time. `core_radius`: `[n]` or NULL: `core_radius` of the plan
    /// options. Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
    /// _VALUE, _CONSTANT (memory), _NOT_FINITE, _MEMORY, _HOST_MEMORY.
    /// Example: `wfmm_flow_set_particles_f64(f, n, x, alpha, sigma, WFMM_MEMORY_HOST);`
    fn wfmm_flow_set_particles_f32 | wfmm_flow_set_particles_f64(
        flow: *mut wfmm_flow,
        n: i64,
        #[shape(3, n)] position: *const Real,
        #[shape(3, n)] strength: *const Real,
        #[shape(n)] #[optional] core_radius: *const Real,
        memory: i32,
    ) {
        with_flow(flow, |flow| {
            let particles = read(flow, "wfmm_flow_set_particles", memory, |arrays| {
                unsafe { elements::particles(arrays, (n, position, strength, core_radius)) }
            })?;
            flow.put_particles(particles, true)
        })
    }

    /// Appends vortex particles.
    /// `position`: `[n][3]`, length. `strength`: `[n][3]`, length^3/time. `core_radius`: `[n]` or NULL: `core_radius` of the plan
    /// options. Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
    /// _VALUE, _CONSTANT (memory), _NOT_FINITE, _MEMORY, _HOST_MEMORY.
    /// Example: `wfmm_flow_add_particles_f64(f, n, x, alpha, sigma, WFMM_MEMORY_HOST);`
    fn wfmm_flow_add_particles_f32 | wfmm_flow_add_particles_f64(
        flow: *mut wfmm_flow,
        n: i64,
        #[shape(3, n)] position: *const Real,
        #[shape(3, n)] strength: *const Real,
        #[shape(n)] #[optional] core_radius: *const Real,
        memory: i32,
    ) {
        with_flow(flow, |flow| {
            let particles = read(flow, "wfmm_flow_add_particles", memory, |arrays| {
                unsafe { elements::particles(arrays, (n, position, strength, core_radius)) }
            })?;
            flow.put_particles(particles, false)
        })
    }

    /// Sets the vortex filaments: segments whose points move; n = 0 removes them.
    /// `points`: `[n_points][3]`, length. `connectivity`: `[n][ld]`, ld >= 2; the first two numbers of a row are the points P1, P2,
    /// counted from `index_base` of the plan options. `circulation`: `[n]`, length^2/time. `core_radius`: `[n]`, length, or NULL:
    /// `core_radius` of the plan options.
    /// Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
    /// _VALUE, _CONSTANT (memory), _NOT_FINITE, _INDEX, _MEMORY, _HOST_MEMORY.
    /// Example: `wfmm_flow_set_filaments_f64(f, np, x, n, 2, ends, gamma, core, WFMM_MEMORY_HOST);`
    fn wfmm_flow_set_filaments_f32 | wfmm_flow_set_filaments_f64(
        flow: *mut wfmm_flow,
        n_points: i64,
        #[shape(3, n_points)] points: *const Real,
        n: i64,
        ld: i64,
        #[shape(ld, n)] connectivity: *const i32,
        #[shape(n)] circulation: *const Real,
        #[shape(n)] #[optional] core_radius: *const Real,
        memory: i32,
    ) {
        with_flow(flow, |flow| {
            let segments = read(flow, "wfmm_flow_set_filaments", memory, |arrays| {
                let given = (n_points, points, n, ld, connectivity, circulation, core_radius);
                unsafe { elements::segments(arrays, given) }
            })?;
            flow.put_filaments(segments, true)
        })
    }

    /// Appends vortex filaments with points of their own.
    /// `points`: `[n_points][3]`, length. `connectivity`: `[n][ld]`, ld >= 2; the first two numbers of a row are the points P1, P2
    /// among these points, counted from `index_base` of the plan options. `circulation`: `[n]`, length^2/time. `core_radius`: `[n]`,
    /// length, or NULL: `core_radius` of the plan options.
    /// Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
    /// _VALUE, _CONSTANT (memory), _NOT_FINITE, _INDEX, _MEMORY, _HOST_MEMORY.
    /// Example: `wfmm_flow_add_filaments_f64(f, np, x, n, 2, ends, gamma, core, WFMM_MEMORY_HOST);`
    fn wfmm_flow_add_filaments_f32 | wfmm_flow_add_filaments_f64(
        flow: *mut wfmm_flow,
        n_points: i64,
        #[shape(3, n_points)] points: *const Real,
        n: i64,
        ld: i64,
        #[shape(ld, n)] connectivity: *const i32,
        #[shape(n)] circulation: *const Real,
        #[shape(n)] #[optional] core_radius: *const Real,
        memory: i32,
    ) {
        with_flow(flow, |flow| {
            let segments = read(flow, "wfmm_flow_add_filaments", memory, |arrays| {
                let given = (n_points, points, n, ld, connectivity, circulation, core_radius);
                unsafe { elements::segments(arrays, given) }
            })?;
            flow.put_filaments(segments, false)
        })
    }

    /// Sets the segments that induce and do not move; n = 0 removes them.
    /// `points`: `[n_points][3]`, length. `connectivity`: `[n][ld]`, ld >= 2; the first two numbers of a row are the points P1, P2,
    /// counted from `index_base` of the plan options. `circulation`: `[n]`, length^2/time. `core_radius`: `[n]`, length, or NULL:
    /// `core_radius` of the plan options.
    /// Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT,
    /// _VALUE, _CONSTANT (memory), _NOT_FINITE, _INDEX, _MEMORY, _HOST_MEMORY.
    /// Example: `wfmm_flow_set_bound_segments_f64(f, np, x, n, 2, ends, gamma, core, WFMM_MEMORY_HOST);`
    fn wfmm_flow_set_bound_segments_f32 | wfmm_flow_set_bound_segments_f64(
        flow: *mut wfmm_flow,
        n_points: i64,
        #[shape(3, n_points)] points: *const Real,
        n: i64,
        ld: i64,
        #[shape(ld, n)] connectivity: *const i32,
        #[shape(n)] circulation: *const Real,
        #[shape(n)] #[optional] core_radius: *const Real,
        memory: i32,
    ) {
        with_flow(flow, |flow| {
            let segments = read(flow, "wfmm_flow_set_bound_segments", memory, |arrays| {
                let given = (n_points, points, n, ld, connectivity, circulation, core_radius);
                unsafe { elements::segments(arrays, given) }
            })?;
            flow.set_bound_segments(segments)
        })
    }

    /// Sets the points that move with the fluid; n = 0 removes them.
    /// `position`: `[n][3]`, length. Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL,
    /// _HANDLE, _BUSY, _COUNT, _CONSTANT (memory), _NOT_FINITE, _MEMORY, _HOST_MEMORY.
    /// Example: `wfmm_flow_set_tracers_f64(f, n, x, WFMM_MEMORY_HOST);`
    fn wfmm_flow_set_tracers_f32 | wfmm_flow_set_tracers_f64(
        flow: *mut wfmm_flow,
        n: i64,
        #[shape(3, n)] position: *const Real,
        memory: i32,
    ) {
        with_flow(flow, |flow| {
            let position = read(flow, "wfmm_flow_set_tracers", memory, |arrays| {
                unsafe { elements::points(arrays, n, position) }
            })?;
            flow.put_tracers(position, true)
        })
    }

    /// Appends points that move with the fluid.
    /// `position`: `[n][3]`, length. Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL,
    /// _HANDLE, _BUSY, _COUNT, _CONSTANT (memory), _NOT_FINITE, _MEMORY, _HOST_MEMORY.
    /// Example: `wfmm_flow_add_tracers_f64(f, n, x, WFMM_MEMORY_HOST);`
    fn wfmm_flow_add_tracers_f32 | wfmm_flow_add_tracers_f64(
        flow: *mut wfmm_flow,
        n: i64,
        #[shape(3, n)] position: *const Real,
        memory: i32,
    ) {
        with_flow(flow, |flow| {
            let position = read(flow, "wfmm_flow_add_tracers", memory, |arrays| {
                unsafe { elements::points(arrays, n, position) }
            })?;
            flow.put_tracers(position, false)
        })
    }

    /// Sets the dust: parcels with inertia; n = 0 removes it.
    /// `position`: `[n][3]`, length. `velocity`: `[n][3]`, length/time, or NULL: at rest. `diameter`: `[n]`, length, > 0. `density`:
    /// `[n]`, mass/length^3, > 0. A parcel without velocity on the ground plane stays there.
    /// Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT, _VALUE,
    /// _STATE (`fluid_viscosity` of the flow options is 0), _CONSTANT (memory), _NOT_FINITE, _MEMORY,
    /// _HOST_MEMORY.
    /// Example: `wfmm_flow_set_dust_f64(f, n, x, NULL, d, rho, WFMM_MEMORY_HOST);`
    fn wfmm_flow_set_dust_f32 | wfmm_flow_set_dust_f64(
        flow: *mut wfmm_flow,
        n: i64,
        #[shape(3, n)] position: *const Real,
        #[shape(3, n)] #[optional] velocity: *const Real,
        #[shape(n)] diameter: *const Real,
        #[shape(n)] density: *const Real,
        memory: i32,
    ) {
        with_flow(flow, |flow| {
            let dust = read(flow, "wfmm_flow_set_dust", memory, |arrays| {
                unsafe { elements::dust(arrays, (n, position, velocity, diameter, density)) }
            })?;
            flow.put_dust(dust, true)
        })
    }

    /// Appends dust: parcels with inertia.
    /// `position`: `[n][3]`, length. `velocity`: `[n][3]`, length/time, or NULL: at rest. `diameter`: `[n]`, length, > 0. `density`:
    /// `[n]`, mass/length^3, > 0. A parcel without velocity on the ground plane stays there.
    /// Thread rule: one thread at a time. Errors, which leave the flow as it was: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT, _VALUE,
    /// _STATE (`fluid_viscosity` of the flow options is 0), _CONSTANT (memory), _NOT_FINITE, _MEMORY,
    /// _HOST_MEMORY.
    /// Example: `wfmm_flow_add_dust_f64(f, n, x, NULL, d, rho, WFMM_MEMORY_HOST);`
    fn wfmm_flow_add_dust_f32 | wfmm_flow_add_dust_f64(
        flow: *mut wfmm_flow,
        n: i64,
        #[shape(3, n)] position: *const Real,
        #[shape(3, n)] #[optional] velocity: *const Real,
        #[shape(n)] diameter: *const Real,
        #[shape(n)] density: *const Real,
        memory: i32,
    ) {
        with_flow(flow, |flow| {
            let dust = read(flow, "wfmm_flow_add_dust", memory, |arrays| {
                unsafe { elements::dust(arrays, (n, position, velocity, diameter, density)) }
            })?;
            flow.put_dust(dust, false)
        })
    }

    /// Returns a quantity of all elements of a kind, and their identities.
    /// `quantity`: `WFMM_QUANTITY_*`; position, strength and velocity are `[capacity][3]`, others `[capacity]`. Positions and velocities
    /// of filaments and bound segments have a row a point, all else a row an element; `wfmm_flow_counts` tells how many. `identity`:
    /// `[capacity]`, of these rows, or NULL. Rows beyond them are not written. Velocities are the fluid's at the present time (one
    /// evaluation), of dust its own.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _CONSTANT, _VALUE (no such quantity), _COUNT
    /// (capacity), _MEMORY; those of an evaluation.
    /// Example: `wfmm_flow_get_f64(f, WFMM_KIND_DUST, WFMM_QUANTITY_POSITION, n, x, id, WFMM_MEMORY_HOST);`
    fn wfmm_flow_get_f32 | wfmm_flow_get_f64(
        flow: *mut wfmm_flow,
        kind: i32,
        quantity: i32,
        capacity: i64,
        #[shape(3, capacity)] values: *mut Real,
        #[shape(capacity)] #[optional] identity: *mut i64,
        memory: i32,
    ) {
        with_flow(flow, |flow| {
            let session = flow.session().clone();
            let (kind, quantity, values, identity) = session.together("wfmm_flow_get", || {
                let arrays = Arrays::new(&session, memory)?;
                let (kind, quantity) = (kind_of(kind)?, quantity_of(quantity)?);
                let rows = flow.rows(kind, quantity, count("capacity", capacity)?)?;
                let values = unsafe { output_array(&arrays, "values", values, rows * quantity.width()) }?;
                let identity = if identity.is_null() {
                    None
                } else {
                    Some(unsafe { output_array(&arrays, "identity", identity, rows) }?)
                };
                Ok((kind, quantity, values, identity))
            })?;
            flow.get(kind, quantity, values, identity)
        })
    }

    /// Returns a quantity of the elements of a kind with these identities.
    /// `quantity`, and which of them have a row a point: as `wfmm_flow_get_*`. `identity`: `[n]`, of elements or, for those, of points, in
    /// any order. `values`: `[n][3]` or `[n]`, row k of `identity[k]`.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _CONSTANT, _VALUE (no such quantity, no live element),
    /// _COUNT, _MEMORY, _HOST_MEMORY; those of an evaluation.
    /// Example: `wfmm_flow_get_selected_f64(f, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, 2, id, x, WFMM_MEMORY_HOST);`
    fn wfmm_flow_get_selected_f32 | wfmm_flow_get_selected_f64(
        flow: *mut wfmm_flow,
        kind: i32,
        quantity: i32,
        n: i64,
        #[shape(n)] identity: *const i64,
        #[shape(3, n)] values: *mut Real,
        memory: i32,
    ) {
        with_flow(flow, |flow| {
            let session = flow.session().clone();
            let (kind, quantity, given) = session.together("wfmm_flow_get_selected", || {
                let arrays = Arrays::new(&session, memory)?;
                let (kind, quantity, n) = (kind_of(kind)?, quantity_of(quantity)?, count("n", n)?);
                flow.rows(kind, quantity, usize::MAX)?;
                if n == 0 {
                    return Ok((kind, quantity, None));
                }
                let identity = unsafe { arrays.input("identity", identity, n) }?.on_host(&session, "identity")?;
                let values = unsafe { output_array(&arrays, "values", values, n * quantity.width()) }?;
                Ok((kind, quantity, Some((identity, values))))
            })?;
            match given {
                Some((identity, values)) => flow.get_selected(kind, quantity, &identity, values),
                // Velocities are an evaluation of all ranks.
                None => flow.get_selected::<Real>(kind, quantity, &[], ArrayMut::Host(&mut [])),
            }
        })
    }

    /// Computes the velocity of the fluid at any points at the present time.
    /// It is what vortex elements induce, the free stream and what the callback adds. `target`: `[n_targets][3]`, length. `velocity`:
    /// `[n_targets][3]`, length/time. `gradient`: `[n_targets][3][3]` of the induced part alone, 1/time, `g[k][i][j] = du_i/dx_j`, or
    /// NULL.
    /// Thread rule: one thread at a time. Errors: WFMM_ERR_NULL, _HANDLE, _BUSY, _COUNT, _CONSTANT (memory), _NOT_FINITE,
    /// _OVERLAP, _MEMORY, _TOLERANCE; a callback's number; 100..199.
    /// Example: `wfmm_flow_velocity_f64(f, m, x, u, NULL, WFMM_MEMORY_HOST);`
    fn wfmm_flow_velocity_f32 | wfmm_flow_velocity_f64(
        flow: *mut wfmm_flow,
        n_targets: i64,
        #[shape(3, n_targets)] target: *const Real,
        #[shape(3, n_targets)] velocity: *mut Real,
        #[shape(3, 3, n_targets)] #[optional] gradient: *mut Real,
        memory: i32,
    ) {
        with_flow(flow, |flow| {
            let session = flow.session().clone();
            let given = session.together("wfmm_flow_velocity", || {
                let arrays = Arrays::new(&session, memory)?;
                let n = count("n_targets", n_targets)?;
                if n == 0 {
                    return Ok(None);
                }
                let target = unsafe { arrays.input("target", target, 3 * n) }?;
                let (velocity, gradient) =
                    unsafe { arrays.outputs(("velocity", velocity, 3 * n), (gradient, 9 * n)) }?;
                Ok(Some((target, velocity, gradient)))
            })?;
            match given {
                Some((target, velocity, gradient)) => flow.velocity_at(target, velocity, gradient),
                // Other ranks may have some.
                None => flow.velocity_at::<Real>(Array::Host(&[]), ArrayMut::Host(&mut []), None),
            }
        })
    }
}
