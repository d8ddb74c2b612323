//! Flows against known answers: orders in dt, the speed of a thin ring, a ring against the plane, spreading cores, falling dust,
//! orbiting filaments, conserved impulse; elements that come and go; steps that fail.

#[path = "../bench/support/flows.rs"]
mod flows;

use std::f64::consts::{PI, TAU};
use std::ffi::{CStr, c_char, c_void};
use std::io::{Cursor, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use flows::get;
use wakefmm::error::*;
use wakefmm::ffi::library::wfmm_log_set;
use wakefmm::flow::diagnostics::{WFMM_REASON_KNOWN, WFMM_REASON_PERIODIC};
use wakefmm::flow::edit::DustArrays;
use wakefmm::flow::options::*;
use wakefmm::flow::state::Gone;
use wakefmm::flow::{At, Callback, Flow};
use wakefmm::options::*;
use wakefmm::plan::arrays::Array::Host;
use wakefmm::plan::arrays::ArrayMut;
use wakefmm::plan::sources::{Particles, Segments};
use wakefmm::session::Session;
use zip::write::SimpleFileOptions;

fn session() -> Arc<Session> {
    Session::new(&SessionOptions { backend: BackendKind::Cpu, device: None, devices: vec![], threads: 2 }).unwrap()
}

fn direct() -> wfmm_plan_options {
    wfmm_plan_options { method: WFMM_METHOD_DIRECT, tolerance: 1e-10, ..Default::default() }
}

fn flow(plan: &wfmm_plan_options, o: &wfmm_flow_options) -> Flow {
    Flow::new(session(), *plan, *o).unwrap()
}

fn with(integrator: i32) -> wfmm_flow_options {
    wfmm_flow_options { integrator, ..Default::default() }
}

fn ids(flow: &mut Flow, kind: ElementKind, quantity: Quantity) -> Vec<i64> {
    let rows = flow.rows(kind, quantity, usize::MAX).unwrap();
    let (mut values, mut ids) = (vec![0.0; rows * quantity.width()], vec![0; rows]);
    flow.get(kind, quantity, ArrayMut::Host(&mut values), Some(ArrayMut::Host(&mut ids))).unwrap();
    ids
}

fn add_particles(flow: &mut Flow, x: &[f64], a: &[f64], core: f64) {
    let n = x.len() / 3;
    let core = vec![core; n];
    let particles = Particles { n, position: Host(x), strength: Host(a), core: Some(Host(&core[..])) };
    flow.put_particles(Some(particles), false).unwrap();
}

fn add_line(flow: &mut Flow, points: &[f64], ends: &[i32], circulation: f64, core: f64) {
    let n = ends.len() / 2;
    let (circulation, core) = (vec![circulation; n], vec![core; n]);
    let segments = Segments {
        n_points: points.len() / 3,
        points: Host(points),
        n,
        ld: 2,
        connectivity: Host(ends),
        circulation: Host(&circulation),
        core: Some(Host(&core)),
    };
    flow.put_filaments(Some(segments), false).unwrap();
}

/// Points of a ring around z.
fn ring(n: usize, radius: f64, z: f64) -> (Vec<f64>, Vec<i32>) {
    let at = |k: usize| TAU * k as f64 / n as f64;
    let points = (0..n).flat_map(|k| [radius * at(k).cos(), radius * at(k).sin(), z]).collect();
    let ends = (0..n as i32).flat_map(|k| [k, (k + 1) % n as i32]).collect();
    (points, ends)
}

/// A ring of particles around z: positions and strengths.
fn particle_ring(n: usize, radius: f64, z: f64, circulation: f64) -> (Vec<f64>, Vec<f64>) {
    let (points, _) = ring(n, radius, z);
    let piece = circulation * TAU * radius / n as f64;
    let along = (0..n).flat_map(|k| {
        let angle = TAU * k as f64 / n as f64;
        [-angle.sin() * piece, angle.cos() * piece, 0.0]
    });
    (points, along.collect())
}

fn difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).fold(0.0, |m, (a, b)| f64::max(m, (a - b).abs()))
}

fn mean(values: &[f64], component: usize) -> f64 {
    let rows = values.len() / 3;
    (0..rows).map(|k| values[3 * k + component]).sum::<f64>() / rows as f64
}

/// Three stretched particles, a filament, a tracer and dust after time 1, everything in one row.
fn everything(integrator: i32, steps: i64) -> (Vec<f64>, Vec<f64>) {
    let o = wfmm_flow_options {
        stretching: WFMM_STRETCHING_CLASSICAL,
        spreading: WFMM_SPREADING_CORES,
        viscosity: 1e-3,
        squire: 1e-3,
        fluid_viscosity: 0.02,
        fluid_density: 0.5,
        gravity: [0.0, 0.0, -0.5],
        ..with(integrator)
    };
    let mut f = flow(&direct(), &o);
    add_particles(
        &mut f,
        &[0.0, 0.0, 0.0, 0.5, 0.1, 0.0, 0.1, 0.6, 0.2],
        &[0.3, 0.0, 1.0, 0.0, 0.5, 0.8, 1.0, 0.2, 0.0],
        0.3,
    );
    add_line(&mut f, &[-0.5, 0.0, -1.0, -0.4, 0.1, 0.0, -0.5, 0.0, 1.0], &[0, 1, 1, 2], 1.5, 0.2);
    f.put_tracers(Some(Host(&[0.3, -0.4, 0.1][..])), true).unwrap();
    let (x, v, d, rho) = ([0.2, 0.2, 0.5], [1.0, 0.0, 0.0], [0.3], [2.0]);
    let dust = DustArrays {
        position: Host(&x[..]),
        velocity: Some(Host(&v[..])),
        diameter: Host(&d[..]),
        density: Host(&rho[..]),
    };
    f.put_dust(Some(dust), true).unwrap();
    f.set_callback(Some(Box::new(|t, at| {
        let At::Host { velocity: u, .. } = at else { return 1 };
        u.iter_mut().step_by(3).for_each(|u| *u += 0.3 * (3.0 * t).sin());
        0
    })));
    f.advance(1.0 / steps as f64, steps).unwrap();
    assert!((f.time().0 - 1.0).abs() < 1e-12 && f.time().1 == steps);
    let mut all = get(&mut f, ElementKind::Particles, Quantity::Position);
    for (kind, quantity) in [
        (ElementKind::Particles, Quantity::Strength),
        (ElementKind::Particles, Quantity::CoreRadius),
        (ElementKind::Filaments, Quantity::Position),
        (ElementKind::Filaments, Quantity::CoreRadius),
        (ElementKind::Tracers, Quantity::Position),
    ] {
        all.extend(get(&mut f, kind, quantity));
    }
    let mut dust = get(&mut f, ElementKind::Dust, Quantity::Position);
    dust.extend(get(&mut f, ElementKind::Dust, Quantity::Velocity));
    (all, dust)
}

#[test]
fn orders_in_dt_are_as_named() {
    let exact = everything(WFMM_INTEGRATOR_RK4, 512);
    for (integrator, order) in [
        (WFMM_INTEGRATOR_EULER, 1.0),
        (WFMM_INTEGRATOR_AB2, 2.0),
        (WFMM_INTEGRATOR_RK3, 3.0),
        (WFMM_INTEGRATOR_RK4, 4.0),
    ] {
        let (coarse, fine) = (everything(integrator, 32), everything(integrator, 64));
        let rate = (difference(&coarse.0, &exact.0) / difference(&fine.0, &exact.0)).log2();
        assert!((rate - order).abs() < 0.35, "{integrator}: order {rate:.2} of {order}");
        // Dust: order 2 with the wind at the middle of the step, 1 under Euler.
        let dust = (difference(&coarse.1, &exact.1) / difference(&fine.1, &exact.1)).log2();
        assert!(dust > order.min(2.0) - 0.35, "{integrator}: dust {dust:.2}");
    }
}

/// Saffman: U = Gamma/(4 pi R) (ln(8R/a) - 0.558) of the centre of vorticity exp(-r²/a²). The core is made of 108 rings of
/// particles with smaller cores: their weights and the cores together are a Gaussian of deviation 0.05 = a/√2.
#[test]
fn a_thin_ring_has_saffmans_speed() {
    let (whole, core, h, around, n) = (0.05f64, 0.025f64, 0.02, 12, 300);
    let spread2 = whole * whole - core * core;
    let mut rings = Vec::new();
    for k in 0..9 {
        let r = (k as f64 + 0.5) * h;
        rings.extend((0..around).map(|j| {
            let angle = TAU * j as f64 / around as f64;
            (1.0 + r * angle.cos(), r * angle.sin(), r * (-0.5 * r * r / spread2).exp())
        }));
    }
    let total: f64 = rings.iter().map(|r| r.2).sum();
    let mut f = flow(&direct(), &with(WFMM_INTEGRATOR_EULER));
    let mut targets = Vec::new();
    for &(radius, z, weight) in &rings {
        let (points, strength) = particle_ring(n, radius, z, weight / total);
        add_particles(&mut f, &points, &strength, core);
        targets.extend([radius, 0.0, z]);
    }
    let mut u = vec![0.0; targets.len()];
    f.velocity_at(Host(&targets[..]), ArrayMut::Host(&mut u), None).unwrap();
    let speed: f64 = rings.iter().zip(u.chunks_exact(3)).map(|(ring, u)| ring.2 / total * u[2]).sum();
    let want = 1.0 / (4.0 * PI) * ((8.0 / (2f64.sqrt() * whole)).ln() - 0.558);
    assert!((speed / want - 1.0).abs() < 0.015, "{speed} {want}");
    // One line of particles moves as that of its smeared field: some per cent slower.
    let mut f = flow(&direct(), &with(WFMM_INTEGRATOR_RK4));
    let (points, strength) = particle_ring(400, 1.0, 0.0, 1.0);
    add_particles(&mut f, &points, &strength, whole);
    f.advance(0.05, 1).unwrap();
    let w = mean(&get(&mut f, ElementKind::Particles, Quantity::Position), 2) / 0.05;
    assert!((w / want - 1.0).abs() < 0.05, "{w} {want}");
}

/// The core of a segment acts on the distance to its line, on a ring R (1 - cos t), so it reaches sqrt(2 R c) along the ring:
/// U = Gamma/(4 pi R) ∫ F(R (1 - cos t))/(2 sin(t/2)) dt from 0 to pi, slower than Saffman's ring of that core.
#[test]
fn a_ring_of_segments_has_the_speed_of_its_cores() {
    let (radius, core, circulation) = (1.0, 0.05, 1.0);
    let steps = 200_000;
    let integral: f64 = (0..steps)
        .map(|k| {
            let t = PI * (k as f64 + 0.5) / steps as f64;
            let rho = radius * (1.0 - t.cos());
            (1.0 - (-1.25643 * rho * rho / (core * core)).exp()) / (2.0 * (0.5 * t).sin()) * PI / steps as f64
        })
        .sum();
    let want = circulation / (4.0 * PI * radius) * integral;
    let plan = wfmm_plan_options { segment_regularization: WFMM_REG_LAMB_OSEEN, ..direct() };
    let mut f = flow(&plan, &with(WFMM_INTEGRATOR_RK4));
    let (points, ends) = ring(400, radius, 0.0);
    add_line(&mut f, &points, &ends, circulation, core);
    f.advance(0.05, 1).unwrap();
    let z = mean(&get(&mut f, ElementKind::Filaments, Quantity::Position), 2) / 0.05;
    assert!((z / want - 1.0).abs() < 2e-3, "{z} {want}");
}

#[test]
fn a_ring_against_the_plane_is_the_collision_with_its_mirror_image() {
    for stretching in [WFMM_STRETCHING_NONE, WFMM_STRETCHING_TRANSPOSE] {
        let o = wfmm_flow_options { stretching, squire: 1e-4, ..with(WFMM_INTEGRATOR_RK4) };
        let ground = wfmm_plan_options { plane_axis: 3, plane_position: 0.25, ..direct() };
        let (mut plane, mut pair) = (flow(&ground, &o), flow(&direct(), &o));
        for (f, both) in [(&mut plane, false), (&mut pair, true)] {
            // Down towards the plane: circulation against z. The image circles the other way.
            for (z, sign) in [(1.0, -1.0), (-0.5, 1.0)].into_iter().take(1 + usize::from(both)) {
                let (points, ends) = ring(40, 1.0, z);
                add_line(f, &points, &ends, sign, 0.1);
                let (points, strength) = particle_ring(30, 0.7, if z > 0.0 { 1.2 } else { -0.7 }, 0.5 * sign);
                add_particles(f, &points, &strength, 0.1);
            }
            f.advance(0.05, 40).unwrap();
        }
        for kind in [ElementKind::Filaments, ElementKind::Particles] {
            let (a, b) = (get(&mut plane, kind, Quantity::Position), get(&mut pair, kind, Quantity::Position));
            assert!(a[2] < 0.99, "it moved: {}", a[2]);
            let apart = difference(&a, &b[..a.len()]);
            assert!(apart < 1e-11, "{kind:?}: {apart:.1e}");
        }
        let (a, b) = (
            get(&mut plane, ElementKind::Particles, Quantity::Strength),
            get(&mut pair, ElementKind::Particles, Quantity::Strength),
        );
        assert!(difference(&a, &b[..a.len()]) < 1e-11);
    }
}

/// A Lamb-Oseen tube of particles: c² = c0² + 2 nu t, and the swirl in its middle is Gamma/(2 pi r) (1 - exp(-r²/2c²)).
#[test]
fn a_tube_spreads_as_lamb_and_oseens() {
    let (nu, core, spacing, half) = (1e-3, 0.1, 0.05, 10.0);
    let o = wfmm_flow_options { spreading: WFMM_SPREADING_CORES, viscosity: nu, ..with(WFMM_INTEGRATOR_RK3) };
    let mut f = flow(&direct(), &o);
    let n = (2.0 * half / spacing) as usize;
    let x: Vec<f64> = (0..n).flat_map(|k| [0.0, 0.0, (k as f64 + 0.5) * spacing - half]).collect();
    let a: Vec<f64> = (0..n).flat_map(|_| [0.0, 0.0, spacing]).collect();
    add_particles(&mut f, &x, &a, core);
    f.advance(1.0, 7).unwrap();
    let c2: f64 = core * core + 2.0 * nu * 7.0;
    let got = get(&mut f, ElementKind::Particles, Quantity::CoreRadius)[n / 2];
    assert!((got - c2.sqrt()).abs() < 1e-14);
    for r in [0.05, 0.15, 0.4] {
        let mut u = [0.0; 3];
        f.velocity_at(Host(&[r, 0.0, 0.0][..]), ArrayMut::Host(&mut u), None).unwrap();
        let want = 1.0 / (TAU * r) * (1.0 - (-r * r / (2.0 * c2)).exp());
        // Twenty units long, not infinite: r²/half² is missing.
        assert!((u[1] / want - 1.0).abs() < 2e-3, "{r}: {} {want}", u[1]);
    }
    let refused = wfmm_plan_options { particle_regularization: WFMM_REG_WINCKELMANS, ..direct() };
    assert_eq!(FlowOptions::checked(&o, &PlanOptions::checked(&refused).unwrap()).unwrap_err().status, WFMM_ERR_VALUE);
}

/// Squire: d(c²)/dt = 4·1.25643 (ν + a₁|Γ|) - c² s where the fluid strains the filament at the rate s. With c0, K the first term:
/// c² = c0² exp(-s t) + K (1 - exp(-s t))/s, at rest c0² + K t.
#[test]
fn cores_of_filaments_grow_by_squires_law() {
    let (nu, squire, circulation, c0) = (1e-3, 2e-4, -3.0, 0.05f64);
    let o = wfmm_flow_options { viscosity: nu, squire, ..with(WFMM_INTEGRATOR_RK4) };
    let growth = 4.0 * 1.25643 * (nu + squire * f64::abs(circulation));
    for strain in [0.0, 0.4, -0.3] {
        let mut f = flow(&direct(), &o);
        // A straight line moves itself by nothing, and the callback stretches it along itself.
        add_line(&mut f, &[0.0, 0.0, -1.0, 0.0, 0.0, 0.5, 0.0, 0.0, 1.0], &[0, 1, 1, 2], circulation, c0);
        f.set_callback(Some(Box::new(move |_, at| {
            let At::Host { position: x, velocity: u, .. } = at else { return 1 };
            x.chunks(3).zip(u.chunks_mut(3)).for_each(|(x, u)| u[2] += strain * x[2]);
            0
        })));
        f.advance(0.05, 40).unwrap();
        let left = (-strain * 2.0f64).exp();
        let grown = if strain == 0.0 { 2.0 * growth } else { growth * (1.0 - left) / strain };
        let want = (c0 * c0 * left + grown).sqrt();
        for c in get(&mut f, ElementKind::Filaments, Quantity::CoreRadius) {
            assert!((c / want - 1.0).abs() < 1e-7, "{strain}: {c} {want}");
        }
    }
}

/// One step of Euler: a + dt J a, a + dt Jᵀ a, or half of each, with the gradient J that the flow itself returns.
#[test]
fn particles_are_stretched_by_the_gradient() {
    let dt = 0.01;
    let (x, a) = ([0.0, 0.0, 0.0, 0.5, 0.1, 0.0, 0.1, 0.6, 0.2], [0.3, 0.0, 1.0, 0.0, 0.5, 0.8, 1.0, 0.2, 0.0]);
    for (stretching, along, across) in [
        (WFMM_STRETCHING_CLASSICAL, 1.0, 0.0),
        (WFMM_STRETCHING_TRANSPOSE, 0.0, 1.0),
        (WFMM_STRETCHING_MIXED, 0.5, 0.5),
    ] {
        let mut f = flow(&direct(), &wfmm_flow_options { stretching, ..with(WFMM_INTEGRATOR_EULER) });
        add_particles(&mut f, &x, &a, 0.3);
        let (mut u, mut g) = ([0.0; 9], [0.0; 27]);
        f.velocity_at(Host(&x[..]), ArrayMut::Host(&mut u), Some(ArrayMut::Host(&mut g))).unwrap();
        f.advance(dt, 1).unwrap();
        let got = get(&mut f, ElementKind::Particles, Quantity::Strength);
        for k in 0..9 {
            let (p, i) = (k / 3, k % 3);
            let rate = (0..3)
                .map(|j| (along * g[9 * p + 3 * i + j] + across * g[9 * p + 3 * j + i]) * a[3 * p + j])
                .sum::<f64>();
            assert!((got[k] - a[k] - dt * rate).abs() < 1e-12, "{stretching}: {} {}", got[k] - a[k], dt * rate);
            assert!(k % 3 != 1 || rate.abs() > 1e-3, "nothing is stretched");
        }
    }
}

/// Two long straight filaments h apart circle each other at Gamma/(pi h²).
#[test]
fn two_straight_filaments_orbit() {
    let (h, circulation) = (1.0, 1.0);
    let plan = wfmm_plan_options { segment_regularization: WFMM_REG_NONE, ..direct() };
    let mut f = flow(&plan, &with(WFMM_INTEGRATOR_RK4));
    for x in [-0.5 * h, 0.5 * h] {
        add_line(&mut f, &[x, 0.0, -2000.0, x, 0.0, 0.0, x, 0.0, 2000.0], &[0, 1, 1, 2], circulation, 0.0);
    }
    // The points in the middle: the ends move half as fast, far away.
    let dt = 1e-3 * PI * h * h / circulation;
    f.advance(dt, 10).unwrap();
    let x = get(&mut f, ElementKind::Filaments, Quantity::Position);
    let angle = (x[3 * 4 + 1] - x[4]).atan2(x[3 * 4] - x[3]);
    let rate = angle / (10.0 * dt);
    assert!((rate * PI * h * h / circulation - 1.0).abs() < 1e-4, "{rate}");
}

/// In still air, Re below 0.1: x = V* t + (V0 - V*) tau (1 - exp(-t/tau)).
#[test]
fn dust_falls_in_still_air() {
    let (mu, d, rho, g): (f64, f64, f64, f64) = (1.8e-5, 2e-5, 2650.0, 9.81);
    let o = wfmm_flow_options {
        fluid_viscosity: mu,
        fluid_density: 1.2,
        gravity: [0.0, 0.0, -g],
        ..with(WFMM_INTEGRATOR_EULER)
    };
    let mut f = flow(&direct(), &o);
    let x = [0.0, 0.0, 10.0];
    let dust =
        DustArrays { position: Host(&x[..]), velocity: None, diameter: Host(&[d][..]), density: Host(&[rho][..]) };
    f.put_dust(Some(dust), true).unwrap();
    let tau = rho * d * d / (18.0 * mu);
    let last = -tau * g * (1.0 - 1.2 / rho);
    // Steps of 30 response times.
    f.advance(30.0 * tau, 5).unwrap();
    let t = 150.0 * tau;
    let z = get(&mut f, ElementKind::Dust, Quantity::Position)[2];
    let (got, want) = (z - 10.0, last * t - last * tau * (1.0 - (-t / tau).exp()));
    // Re = 0.04: Schiller and Naumann's correction is under 2 %, and slows.
    assert!(got / want < 1.0 && got / want > 0.98, "{got} {want}");
    let stokes = wfmm_flow_options { fluid_density: 0.0, ..o };
    let mut f = flow(&direct(), &stokes);
    let dust =
        DustArrays { position: Host(&x[..]), velocity: None, diameter: Host(&[d][..]), density: Host(&[rho][..]) };
    f.put_dust(Some(dust), true).unwrap();
    f.advance(30.0 * tau, 5).unwrap();
    let want = -tau * g * (t - tau * (1.0 - (-t / tau).exp()));
    assert!(((get(&mut f, ElementKind::Dust, Quantity::Position)[2] - 10.0) / want - 1.0).abs() < 1e-10);
}

#[test]
fn impulse_and_energy_are_conserved() {
    let o = wfmm_flow_options { stretching: WFMM_STRETCHING_TRANSPOSE, ..with(WFMM_INTEGRATOR_RK4) };
    let mut f = flow(&direct(), &o);
    for z in [0.0, 0.5] {
        let (points, strength) = particle_ring(60, 1.0, z, 1.0);
        add_particles(&mut f, &points, &strength, 0.2);
    }
    let before = f.diagnostics().unwrap();
    f.advance(0.05, 20).unwrap();
    let after = f.diagnostics().unwrap();
    // Two rings: 2 pi R² Gamma along z, a hundredth less for the polygons of the particles' positions.
    assert!((before.linear_impulse[2] / (TAU) - 1.0).abs() < 1e-2, "{}", before.linear_impulse[2]);
    assert!((after.linear_impulse[2] / before.linear_impulse[2] - 1.0).abs() < 1e-4);
    // The scheme does not conserve the energy; it stays near.
    assert!((after.energy / before.energy - 1.0).abs() < 0.02, "{} {}", after.energy, before.energy);
    assert!(after.total_strength.iter().all(|s| s.abs() < 1e-12) && after.divergence < 0.05);
    assert!(after.largest_velocity > 0.2 && after.largest_displacement > 0.005 && after.reason == 0);
    // Filaments: what drifts is the sum in space, whatever the step. Cores act on the distance to a segment's line, which is not
    // the same both ways.
    let drift = |dt: f64, steps| {
        let mut f = flow(&direct(), &with(WFMM_INTEGRATOR_RK4));
        for z in [0.0, 0.5] {
            let (points, ends) = ring(60, 1.0, z);
            add_line(&mut f, &points, &ends, 1.0, 0.1);
        }
        let before = f.diagnostics().unwrap();
        f.advance(dt, steps).unwrap();
        let after = f.diagnostics().unwrap();
        (after.linear_impulse[2] / before.linear_impulse[2] - 1.0, after)
    };
    let ((coarse, after), (fine, _)) = (drift(0.1, 10), drift(0.05, 20));
    assert!(coarse.abs() < 2e-3 && (coarse / fine - 1.0).abs() < 1e-2, "{coarse:.2e} {fine:.2e}");
    assert!(after.energy.is_nan() && after.reason == wakefmm::flow::diagnostics::WFMM_REASON_SEGMENTS);
}

#[test]
fn strain_keeps_the_volume_and_long_segments_are_split() {
    let o = wfmm_flow_options { split_length: 0.3, ..with(WFMM_INTEGRATOR_RK4) };
    let mut f = flow(&direct(), &o);
    add_line(&mut f, &[0.0, 0.0, 0.0, 0.25, 0.0, 0.0], &[0, 1], 1.0, 0.1);
    // Away from the origin along x: the length grows by exp(1) = 2.718 to 0.68.
    f.set_callback(Some(Box::new(|_, at| {
        let At::Host { position: x, velocity: u } = at else { return 1 };
        u.iter_mut().zip(x).step_by(3).for_each(|(u, x)| *u += x);
        0
    })));
    f.advance(0.1, 10).unwrap();
    let (elements, points) = f.counts(ElementKind::Filaments);
    assert_eq!((elements, points), (4, 5));
    let core = get(&mut f, ElementKind::Filaments, Quantity::CoreRadius);
    let want = 0.1 * (-0.5f64).exp();
    assert!(core.iter().all(|c| (c - want).abs() < 1e-6), "{core:?} {want}");
    assert_eq!(ids(&mut f, ElementKind::Filaments, Quantity::Circulation), [0, 1, 2, 3]);
    // A chain still: every inner point ends one segment and begins another.
    let ends: Vec<i32> = f.connectivity(ElementKind::Filaments).unwrap().collect();
    for point in [0, 1, 2, 3, 4] {
        let count = |end: usize| ends.chunks(2).filter(|e| e[end] == point).count();
        assert_eq!((count(0), count(1)), (usize::from(point != 1), usize::from(point != 0)), "{ends:?}");
    }
    let impulse = f.diagnostics().unwrap().total_strength;
    assert!((impulse[0] - 0.25 * 1f64.exp()).abs() < 1e-5, "{impulse:?}");
}

/// Without a length there is no strain: the core of a segment that gets a length in a step is kept, and grows.
#[test]
fn a_segment_that_begins_as_a_point_keeps_its_core() {
    for (integrator, viscosity) in [(0, 0.0), (1, 0.0), (2, 0.0), (3, 0.0), (0, 0.01), (1, 0.01), (2, 0.01), (3, 0.01)]
    {
        for length in [0.0, 1e-17, 1e-12] {
            let o = wfmm_flow_options { viscosity, ..with(integrator) };
            let mut f = flow(&direct(), &o);
            f.set_callback(Some(Box::new(|_, at| {
                let At::Host { velocity: u, .. } = at else { return 1 };
                u[3] += 1.0;
                0
            })));
            add_line(&mut f, &[0.0, 0.0, 0.0, length, 0.0, 0.0], &[0, 1], 1.0, 0.1);
            f.advance(0.01, 1).unwrap();
            let core = get(&mut f, ElementKind::Filaments, Quantity::CoreRadius)[0];
            let most = (0.01 + 4.0 * 1.25643 * viscosity * 0.01).sqrt();
            assert!((0.1 - 1e-12..=most + 1e-12).contains(&core), "{integrator}, {length}: {core}, at most {most}");
            // From then on strain acts: twice the length, half the square.
            f.advance(0.01, 1).unwrap();
            let later = get(&mut f, ElementKind::Filaments, Quantity::CoreRadius)[0];
            assert!(viscosity > 0.0 || (later - core / 2f64.sqrt()).abs() < 1e-6, "{integrator}, {length}: {later}");
        }
    }
}

/// Pieces are counted before they are made.
#[test]
fn more_pieces_than_numbers_are_refused() {
    let o = wfmm_flow_options { split_length: 1e-9, ..with(WFMM_INTEGRATOR_EULER) };
    let mut f = flow(&direct(), &o);
    add_line(&mut f, &[0.0, 0.0, 0.0, 10.0, 0.0, 0.0], &[0, 1], 1.0, 0.1);
    let before = bits(&mut f);
    let e = f.advance(0.1, 1).unwrap_err();
    assert!(e.status == WFMM_ERR_COUNT && e.message.contains("split_length = 1e-9"), "{}", e.message);
    assert!(bits(&mut f) == before && f.time() == (0.0, 0) && f.counts(ElementKind::Filaments) == (1, 2));
}

/// Lines of the log, of all tests of this process.
static LOG: Mutex<Vec<String>> = Mutex::new(vec![]);

unsafe extern "C" fn keep_line(_: i32, line: *const c_char, _: *mut c_void) {
    let line = unsafe { CStr::from_ptr(line) };
    LOG.lock().unwrap().push(line.to_string_lossy().into_owned());
}

/// Lines that say this, since the last look.
fn logged(what: &str) -> usize {
    let mut log = LOG.lock().unwrap();
    let all = log.len();
    log.retain(|line| !line.contains(what));
    all - log.len()
}

/// Vortices that go through the ground plane, and lines across the side of a period, are told of once.
#[test]
fn the_log_tells_of_vortices_below_the_plane_and_of_seams() {
    let session = session();
    assert_eq!(unsafe { wfmm_log_set(WFMM_LOG_WARN, Some(keep_line), std::ptr::null_mut()) }, 0);
    let plane = wfmm_plan_options { plane_axis: 3, ..direct() };
    let sides = "both sides of the ground plane";
    let mut f = Flow::new(session.clone(), plane, with(WFMM_INTEGRATOR_EULER)).unwrap();
    // A line that ends in the plane, a particle without strength below it, and one that falls through it.
    add_line(&mut f, &[3.0, 0.0, 0.0, 3.0, 0.0, 1.0], &[0, 1], 1.0, 0.1);
    add_particles(&mut f, &[0.0, 0.0, 0.05, 1.0, 0.0, -0.1], &[1e-3, 0.0, 0.0, 0.0, 0.0, 0.0], 0.1);
    f.set_callback(Some(Box::new(|_, at| {
        let At::Host { velocity: u, .. } = at else { return 1 };
        u[2] -= 1.0;
        0
    })));
    f.advance(0.01, 4).unwrap();
    assert_eq!(logged(sides), 0, "above the plane");
    f.advance(0.01, 4).unwrap();
    assert_eq!(logged(sides), 1, "one below it");
    // All on the other side: a ceiling.
    let mut f = Flow::new(session.clone(), plane, with(WFMM_INTEGRATOR_EULER)).unwrap();
    add_particles(&mut f, &[0.0, 0.0, -1.0, 0.0, 0.0, -2.0], &[1.0; 6], 0.1);
    f.advance(0.01, 1).unwrap();
    assert_eq!(logged(sides), 0, "below a ceiling");
    add_particles(&mut f, &[0.0, 0.0, 1.0], &[1.0; 3], 0.1);
    assert_eq!(logged(sides), 1, "added above it");
    let seam = "points of filaments are whole periods apart";
    let tube = wfmm_plan_options { period: [0.0, 0.0, 1.0], ..direct() };
    let mut f = Flow::new(session, tube, with(WFMM_INTEGRATOR_RK4)).unwrap();
    add_line(&mut f, &[0.1, 0.2, 0.0, 0.1, 0.2, 0.5, 0.1, 0.2, 0.9], &[0, 1, 1, 2], 1.0, 0.1);
    assert_eq!(logged(seam), 0, "a line that ends");
    for _ in 0..2 {
        add_line(&mut f, &[0.1, 0.3, 0.2, 0.1, 0.4, 0.7, 0.1, 0.3, 1.2], &[0, 1, 1, 2], 1.0, 0.1);
    }
    assert_eq!(logged(seam), 1, "a line that goes on");
    unsafe { wfmm_log_set(WFMM_LOG_OFF, None, std::ptr::null_mut()) };
}

#[test]
fn a_step_that_fails_changes_nothing() {
    let mut f = flow(&direct(), &with(WFMM_INTEGRATOR_RK4));
    let (points, ends) = ring(20, 1.0, 0.0);
    add_line(&mut f, &points, &ends, 1.0, 0.1);
    f.advance(0.1, 2).unwrap();
    let before = get(&mut f, ElementKind::Filaments, Quantity::Position);
    for (answer, status) in [(7, 7), (150, 150), (-3, WFMM_ERR_CALLBACK), (4711, WFMM_ERR_CALLBACK)] {
        let mut calls = 0;
        f.set_callback(Some(Box::new(move |_, _| {
            calls += 1;
            if calls == 7 { answer } else { 0 }
        })));
        // The second step fails, in its third stage: the first is done.
        let (time, step) = f.time();
        assert_eq!(f.advance(1e-9, 3).unwrap_err().status, status);
        assert_eq!(f.time(), (time + 1e-9, step + 1));
    }
    f.set_callback(Some(Box::new(|_, at| {
        let At::Host { velocity: u, .. } = at else { return 1 };
        u[4] = f64::NAN;
        0
    })));
    let e = f.advance(0.1, 1).unwrap_err();
    assert!(e.status == WFMM_ERR_NOT_FINITE && e.message.contains("velocity[1][1]"), "{}", e.message);
    f.set_callback(None);
    f.set_free_stream([1e200, 0.0, 0.0]).unwrap();
    let e = f.advance(1e200, 1).unwrap_err();
    assert!(e.status == WFMM_ERR_NOT_FINITE, "{}", e.message);
    f.set_free_stream([0.0; 3]).unwrap();
    assert_eq!(f.advance(0.0, 1).unwrap_err().status, WFMM_ERR_VALUE);
    assert_eq!(f.advance(-0.1, 1).unwrap_err().status, WFMM_ERR_VALUE);
    assert_eq!(f.advance(f64::NAN, 1).unwrap_err().status, WFMM_ERR_NOT_FINITE);
    assert_eq!(f.advance(0.1, -1).unwrap_err().status, WFMM_ERR_COUNT);
    let after = get(&mut f, ElementKind::Filaments, Quantity::Position);
    assert!(difference(&before, &after) < 1e-8 && f.time().1 == 6);
}

/// Removing one half of tracers in between changes nothing of the other half, whatever the integrator remembers.
#[test]
fn elements_come_and_go_between_steps() {
    for integrator in [WFMM_INTEGRATOR_AB2, WFMM_INTEGRATOR_RK4] {
        let mut whole = flow(&direct(), &with(integrator));
        let mut part = flow(&direct(), &with(integrator));
        let x: Vec<f64> = (0..30).map(|k| (0.7 * k as f64).sin()).collect();
        for f in [&mut whole, &mut part] {
            let (points, strength) = particle_ring(20, 0.5, 0.0, 1.0);
            add_particles(f, &points, &strength, 0.1);
            f.put_tracers(Some(Host(&x[..])), true).unwrap();
            f.advance(0.1, 3).unwrap();
        }
        part.remove(ElementKind::Tracers, Gone::Identities(&[1, 3, 5, 7, 9])).unwrap();
        assert_eq!(part.remove(ElementKind::Tracers, Gone::Identities(&[2, 3])).unwrap_err().status, WFMM_ERR_VALUE);
        assert_eq!(ids(&mut part, ElementKind::Tracers, Quantity::Position), [0, 2, 4, 6, 8]);
        for f in [&mut whole, &mut part] {
            f.put_tracers(Some(Host(&[2.0, 0.0, 0.0][..])), false).unwrap();
            f.advance(0.1, 3).unwrap();
        }
        assert_eq!(ids(&mut part, ElementKind::Tracers, Quantity::Position), [0, 2, 4, 6, 8, 10]);
        let (a, b) = (
            get(&mut whole, ElementKind::Tracers, Quantity::Position),
            get(&mut part, ElementKind::Tracers, Quantity::Position),
        );
        for (row, id) in [0, 2, 4, 6, 8, 10].into_iter().enumerate() {
            assert_eq!(a[3 * id..3 * id + 3], b[3 * row..3 * row + 3], "{integrator}, {id}");
        }
    }
}

/// Straight segments of these circulations, each along z through a point of the plane z = 0.
fn set_bound(f: &mut Flow, at: &[[f64; 2]], circulation: &[f64], core: f64) {
    let n = at.len();
    let points: Vec<f64> = at.iter().flat_map(|[x, y]| [*x, *y, -100.0, *x, *y, 100.0]).collect();
    let ends: Vec<i32> = (0..2 * n as i32).collect();
    let core = vec![core; n];
    let segments = Segments {
        n_points: 2 * n,
        points: Host(&points),
        n,
        ld: 2,
        connectivity: Host(&ends),
        circulation: Host(circulation),
        core: Some(Host(&core)),
    };
    f.set_bound_segments(Some(segments)).unwrap();
}

/// After the first half of the time, the vortices become others.
fn interrupted(integrator: i32, steps: i64, event: &str) -> Vec<f64> {
    let mut f = flow(&direct(), &with(integrator));
    let x: Vec<f64> = (0..18).map(|k| (1.3 * k as f64).sin()).collect();
    let a: Vec<f64> = (0..18).map(|k| (2.1 * k as f64).cos()).collect();
    add_particles(&mut f, &x, &a, 0.5);
    f.put_tracers(Some(Host(&[0.4, -0.3, 0.2, -0.8, 0.1, 0.6][..])), true).unwrap();
    f.advance(0.5 / steps as f64, steps).unwrap();
    match event {
        "none" => {}
        "add" => add_particles(&mut f, &[0.0, 0.0, 0.3], &[3.0, 4.0, 5.0], 0.5),
        "remove" => f.remove(ElementKind::Particles, Gone::Identities(&[0, 1])).unwrap(),
        "set" => {
            let core = [0.5; 6];
            let particles = Particles { n: 6, position: Host(&a[..]), strength: Host(&x), core: Some(Host(&core[..])) };
            f.put_particles(Some(particles), true).unwrap();
        }
        "filament" => add_line(&mut f, &[0.0, 0.0, -1.0, 0.0, 0.0, 1.0], &[0, 1], 5.0, 0.5),
        "bound" => set_bound(&mut f, &[[0.0, 0.0]], &[5.0], 0.5),
        other => panic!("{other}"),
    }
    f.advance(0.5 / steps as f64, steps).unwrap();
    get(&mut f, ElementKind::Tracers, Quantity::Position)
}

/// Adams-Bashforth has order 2 however vortices come and go.
#[test]
fn other_vortices_leave_the_order() {
    for event in ["none", "add", "remove", "set", "filament", "bound"] {
        let exact = interrupted(WFMM_INTEGRATOR_RK4, 200, event);
        let error = |steps| difference(&interrupted(WFMM_INTEGRATOR_AB2, steps, event), &exact);
        let (coarse, fine) = (error(80), error(160));
        let order = (coarse / fine).log2();
        assert!((1.7..2.4).contains(&order), "{event}: {coarse:.2e}, {fine:.2e}, order {order:.2}");
    }
    // A vortex that comes after a short step without one: a rate of before would count fifty times.
    for first in [1e-3, 1e-2, 0.1] {
        let mut f = flow(&direct(), &with(WFMM_INTEGRATOR_AB2));
        f.put_tracers(Some(Host(&[1.0, 0.0, 0.0][..])), true).unwrap();
        f.advance(first, 1).unwrap();
        set_bound(&mut f, &[[0.0, 0.0]], &[TAU], 0.01);
        f.advance(0.1, 1).unwrap();
        let y = get(&mut f, ElementKind::Tracers, Quantity::Position)[1];
        assert!((y - 0.1f64.sin()).abs() < 2e-4, "first step {first}: y = {y}, exact {}", 0.1f64.sin());
    }
}

/// Bound segments that move and change smoothly keep the history: order 2 with one evaluation a step.
#[test]
fn bound_segments_that_move_on_keep_the_history() {
    let calls = Arc::new(AtomicI64::new(0));
    let run = |steps: usize| {
        let (counted, dt) = (calls.clone(), 1.0 / steps as f64);
        let mut f = flow(&direct(), &with(WFMM_INTEGRATOR_AB2));
        f.put_tracers(Some(Host(&[1.0, 0.0, 0.0, 0.0, 2.0, 0.0][..])), true).unwrap();
        f.set_callback(Some(Box::new(move |_, _| {
            counted.fetch_add(1, Ordering::Relaxed);
            0
        })));
        calls.store(0, Ordering::Relaxed);
        for n in 0..steps {
            let t = n as f64 * dt;
            set_bound(&mut f, &[[0.3 * t.sin(), 0.5 * t]], &[TAU * (1.0 + t)], 0.1);
            f.advance(dt, 1).unwrap();
        }
        (get(&mut f, ElementKind::Tracers, Quantity::Position), calls.load(Ordering::Relaxed))
    };
    let (exact, _) = run(2000);
    let [(coarse, _), (fine, evaluations)] = [run(50), run(100)];
    assert_eq!(evaluations, 101, "two in the first step");
    let order = (difference(&coarse, &exact) / difference(&fine, &exact)).log2();
    assert!((order - 2.0).abs() < 0.25, "order {order}");
}

/// What makes a step of Adams-Bashforth begin anew, by the number of its evaluations.
#[test]
fn steps_begin_anew_where_others_induce() {
    let calls = Arc::new(AtomicI64::new(0));
    let counted = calls.clone();
    let mut f = flow(&direct(), &with(WFMM_INTEGRATOR_AB2));
    f.put_tracers(Some(Host(&[1.0, 0.0, 0.0, 0.0, 1.0, 0.0][..])), true).unwrap();
    add_particles(&mut f, &[0.0, 0.0, 2.0, 0.0, 0.0, 3.0], &[0.1; 6], 0.1);
    add_line(&mut f, &[0.0, 5.0, 0.0, 0.0, 6.0, 0.0], &[0, 1], 1.0, 0.1);
    set_bound(&mut f, &[[0.0, 0.0]], &[1.0], 0.1);
    f.set_callback(Some(Box::new(move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        0
    })));
    let mut evaluations = |what: &str, want: i64, change: &mut dyn FnMut(&mut Flow)| {
        change(&mut f);
        let before = calls.load(Ordering::Relaxed);
        f.advance(0.01, 1).unwrap();
        assert_eq!(calls.load(Ordering::Relaxed) - before, want, "{what}");
    };
    let gone = |kind: ElementKind, id: i64| move |f: &mut Flow| f.remove(kind, Gone::Identities(&[id])).unwrap();
    evaluations("the first step", 2, &mut |_| {});
    evaluations("nothing", 1, &mut |_| {});
    evaluations("bound segments moved", 1, &mut |f| set_bound(f, &[[0.1, 0.0]], &[1.1], 0.1));
    evaluations("more bound segments", 2, &mut |f| set_bound(f, &[[0.1, 0.0], [1.0, 1.0]], &[1.1, 0.2], 0.1));
    evaluations("bound segments set after none", 2, &mut |f| {
        f.set_bound_segments::<f64>(None).unwrap();
        set_bound(f, &[[0.1, 0.0], [1.0, 1.0]], &[5.0, 3.0], 0.1);
    });
    evaluations("a bound segment less", 2, &mut gone(ElementKind::BoundSegments, 5));
    evaluations("a particle more", 2, &mut |f| add_particles(f, &[0.0, 0.0, 4.0], &[0.1; 3], 0.1));
    evaluations("a particle less", 2, &mut gone(ElementKind::Particles, 1));
    evaluations("a filament more", 2, &mut |f| add_line(f, &[0.0, 8.0, 0.0, 0.0, 9.0, 0.0], &[0, 1], 1.0, 0.1));
    evaluations("a filament less", 2, &mut gone(ElementKind::Filaments, 0));
    evaluations("no filament gone", 1, &mut |f| f.remove(ElementKind::Filaments, Gone::Identities(&[])).unwrap());
    evaluations("no particle more", 1, &mut |f| f.put_particles::<f64>(None, false).unwrap());
    evaluations("a tracer less", 1, &mut gone(ElementKind::Tracers, 0));
    evaluations("a tracer more", 2, &mut |f| f.put_tracers(Some(Host(&[0.5, 0.5, 0.5][..])), false).unwrap());
}

/// Air that has one velocity everywhere, which the host may change.
fn uniform(speed: &Arc<AtomicI64>) -> Option<Callback> {
    let speed = speed.clone();
    Some(Box::new(move |_, at| {
        let At::Host { velocity: u, .. } = at else { return 1 };
        u.iter_mut().step_by(3).for_each(|u| *u += speed.load(Ordering::Relaxed) as f64);
        0
    }))
}

/// A free stream or a callback acts from the step on before which it was set, in all that moves.
#[test]
fn a_new_free_stream_or_callback_has_no_past() {
    let path = std::env::temp_dir().join(format!("wakefmm-stream-{}.npz", std::process::id()));
    let at = |f: &mut Flow, want: f64, what: &str| {
        for kind in [ElementKind::Particles, ElementKind::Filaments, ElementKind::Tracers] {
            let x = get(f, kind, Quantity::Position)[0];
            assert!((x - want).abs() < 1e-13, "{what}: {kind:?} is at {x}, not at {want}");
        }
    };
    for integrator in [WFMM_INTEGRATOR_EULER, WFMM_INTEGRATOR_AB2, WFMM_INTEGRATOR_RK3, WFMM_INTEGRATOR_RK4] {
        let mut f = flow(&direct(), &with(integrator));
        add_particles(&mut f, &[0.0; 3], &[0.0; 3], 0.1);
        add_line(&mut f, &[0.0, 0.0, 0.0, 0.0, 0.0, 1.0], &[0, 1], 0.0, 0.1);
        f.put_tracers(Some(Host(&[0.0; 3][..])), true).unwrap();
        f.advance(0.1, 2).unwrap();
        f.set_free_stream([1.0, 0.0, 0.0]).unwrap();
        f.advance(0.1, 1).unwrap();
        at(&mut f, 0.1, "wind");
        // Of a stream that no step has seen nothing is left.
        f.set_free_stream([1e200, 0.0, 0.0]).unwrap();
        f.set_free_stream([0.0; 3]).unwrap();
        f.save(&path).unwrap();
        f.advance(0.1, 1).unwrap();
        at(&mut f, 0.1, "a calm");
        let mut again = Flow::load(session(), &path).unwrap();
        again.advance(0.1, 1).unwrap();
        at(&mut again, 0.1, "a calm after a load");
        f.set_callback(uniform(&Arc::new(AtomicI64::new(1))));
        f.advance(0.1, 1).unwrap();
        at(&mut f, 0.2, "a callback");
        f.set_callback(None);
        f.advance(0.1, 1).unwrap();
        at(&mut f, 0.2, "no callback");
    }
    std::fs::remove_file(&path).unwrap();
}

/// A free stream that changes costs Adams-Bashforth no evaluation and no order; a callback after a load is the one of before.
#[test]
fn histories_outlast_a_new_free_stream_and_a_load() {
    let path = std::env::temp_dir().join(format!("wakefmm-history-{}.npz", std::process::id()));
    let calls = Arc::new(AtomicI64::new(0));
    let counting = || -> Option<Callback> {
        let calls = calls.clone();
        Some(Box::new(move |_, _| {
            calls.fetch_add(1, Ordering::Relaxed);
            0
        }))
    };
    let mut f = flow(&direct(), &with(WFMM_INTEGRATOR_AB2));
    f.put_tracers(Some(Host(&[0.0; 3][..])), true).unwrap();
    f.set_callback(counting());
    let evaluations = |f: &mut Flow| {
        let before = calls.load(Ordering::Relaxed);
        f.advance(0.1, 1).unwrap();
        calls.load(Ordering::Relaxed) - before
    };
    assert_eq!([evaluations(&mut f), evaluations(&mut f)], [2, 1]);
    f.set_free_stream([1.0, 0.0, 0.0]).unwrap();
    assert_eq!(evaluations(&mut f), 1, "a new stream");
    f.save(&path).unwrap();
    f = Flow::load(session(), &path).unwrap();
    std::fs::remove_file(&path).unwrap();
    f.set_callback(counting());
    assert_eq!(evaluations(&mut f), 1, "after a load");
    f.set_callback(counting());
    assert_eq!([evaluations(&mut f), evaluations(&mut f)], [2, 1], "a new callback");
}

#[test]
fn velocities_are_those_of_the_callback_now() {
    let speed = Arc::new(AtomicI64::new(1));
    let mut f = flow(&direct(), &with(WFMM_INTEGRATOR_RK4));
    f.put_tracers(Some(Host(&[0.0; 3][..])), true).unwrap();
    f.set_callback(uniform(&speed));
    for now in [1, 2] {
        speed.store(now, Ordering::Relaxed);
        assert_eq!(get(&mut f, ElementKind::Tracers, Quantity::Velocity), [now as f64, 0.0, 0.0]);
        assert_eq!(f.diagnostics().unwrap().largest_velocity, now as f64);
    }
}

/// Sums over pairs are those of free space: they are none of a domain with images. Sums over elements stay.
#[test]
fn energy_in_a_periodic_domain_is_not_known() {
    let periodic = wfmm_plan_options { period: [2.0, 0.0, 0.0], ..Default::default() };
    let [open, tube] = [wfmm_plan_options::default(), periodic].map(|plan| {
        let mut f = flow(&plan, &with(WFMM_INTEGRATOR_RK4));
        let (points, strength) = particle_ring(20, 0.5, 0.3, 1.0);
        add_particles(&mut f, &points, &strength, 0.1);
        f.diagnostics().unwrap()
    });
    assert_eq!((open.reason, tube.reason), (WFMM_REASON_KNOWN, WFMM_REASON_PERIODIC));
    assert!(tube.energy.is_nan() && tube.enstrophy.is_nan() && tube.divergence.is_nan() && open.energy > 0.0);
    assert_eq!((tube.linear_impulse, tube.angular_impulse), (open.linear_impulse, open.angular_impulse));
}

/// Writes a checkpoint's bytes again with another version.
fn with_version(whole: &[u8], to: &Path, version: i64) {
    let mut from = zip::ZipArchive::new(Cursor::new(whole)).unwrap();
    let mut file = zip::ZipWriter::new(std::fs::File::create(to).unwrap());
    for k in 0..from.len() {
        let mut member = from.by_index(k).unwrap();
        let mut bytes = vec![];
        member.read_to_end(&mut bytes).unwrap();
        let name = member.name().unwrap().into_owned();
        if name == "version.npy" {
            let at = bytes.len() - 8;
            bytes[at..].copy_from_slice(&version.to_le_bytes());
        }
        let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        file.start_file(name, stored).unwrap();
        file.write_all(&bytes).unwrap();
    }
    file.finish().unwrap();
}

/// Every number of a flow.
fn bits(f: &mut Flow) -> Vec<u64> {
    let mut all = Vec::new();
    for (kind, _) in ElementKind::ALL {
        for (quantity, _) in Quantity::ALL {
            if f.rows(*kind, *quantity, usize::MAX).is_ok() {
                all.extend(get(f, *kind, *quantity).into_iter().map(f64::to_bits));
            }
        }
    }
    all
}

#[test]
fn a_checkpoint_goes_on_bit_for_bit() {
    let folder = std::env::temp_dir().join(format!("wakefmm-flow-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("flow.npz");
    for integrator in [WFMM_INTEGRATOR_AB2, WFMM_INTEGRATOR_RK4] {
        let o = wfmm_flow_options {
            stretching: WFMM_STRETCHING_MIXED,
            fluid_viscosity: 1e-5,
            squire: 1e-3,
            split_length: 0.3,
            gravity: [0.0, 0.0, -9.81],
            restitution: 0.5,
            ..with(integrator)
        };
        let plan = wfmm_plan_options { plane_axis: 3, plane_position: -1.0, core_radius: 0.1, ..direct() };
        let mut f = flow(&plan, &o);
        let (points, ends) = ring(20, 1.0, 0.0);
        add_line(&mut f, &points, &ends, 1.0, 0.1);
        let (points, strength) = particle_ring(20, 0.7, 0.3, 1.0);
        add_particles(&mut f, &points, &strength, 0.2);
        f.put_tracers(Some(Host(&points[..])), true).unwrap();
        let (d, rho) = (vec![1e-4; 20], vec![2000.0; 20]);
        let dust =
            DustArrays { position: Host(&points[..]), velocity: None, diameter: Host(&d[..]), density: Host(&rho[..]) };
        f.put_dust(Some(dust), true).unwrap();
        f.set_free_stream([0.1, 0.0, 0.0]).unwrap();
        f.advance(0.05, 3).unwrap();
        f.remove(ElementKind::Tracers, Gone::Identities(&[4, 9])).unwrap();
        f.save(&path).unwrap();
        let mut again = Flow::load(session(), &path).unwrap();
        assert_eq!((again.time(), bits(&mut again)), (f.time(), bits(&mut f)));
        for f in [&mut f, &mut again] {
            f.put_tracers(Some(Host(&[0.0; 3][..])), false).unwrap();
            f.advance(0.05, 3).unwrap();
        }
        assert_eq!((again.time(), bits(&mut again)), (f.time(), bits(&mut f)));
        let kind = (ElementKind::Tracers, Quantity::Position);
        assert_eq!(ids(&mut again, kind.0, kind.1), ids(&mut f, kind.0, kind.1));
        assert_eq!(*ids(&mut again, kind.0, kind.1).last().unwrap(), 20);
    }
    // Cut short at any byte, or with a bit that differs: no flow, and a file of that name is named.
    let whole = std::fs::read(&path).unwrap();
    let cut = folder.join("cut.npz");
    for length in [0, 1, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&cut, &whole[..length]).unwrap();
        let e = Flow::load(session(), &cut).map(|_| ()).unwrap_err();
        assert!(e.status == WFMM_ERR_FILE && e.message.contains("cut.npz"), "{length}: {}", e.message);
    }
    let mut damaged = whole.clone();
    let at = whole.windows(8).position(|w| w == 1e-4f64.to_le_bytes()).unwrap();
    damaged[at + 3] ^= 1;
    std::fs::write(&cut, &damaged).unwrap();
    assert_eq!(Flow::load(session(), &cut).map(|_| ()).unwrap_err().status, WFMM_ERR_FILE);
    // Of a later version: what else it holds is not looked at.
    with_version(&whole, &cut, i64::MAX);
    let e = Flow::load(session(), &cut).map(|_| ()).unwrap_err();
    assert!(
        e.status == WFMM_ERR_TOO_NEW && e.message.contains("cut.npz") && e.message.contains("version"),
        "{}",
        e.message
    );
    let missing = folder.join("missing").join("x.npz");
    assert_eq!(Flow::load(session(), &missing).map(|_| ()).unwrap_err().status, WFMM_ERR_FILE);
    let mut f = flow(&direct(), &with(0));
    assert_eq!(f.save(&missing).unwrap_err().status, WFMM_ERR_FILE);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The same under the FMM where sums are reproducible: nothing of an engine's past shows in its fields.
#[test]
fn a_reproducible_checkpoint_goes_on_bit_for_bit_under_the_fmm() {
    let path = std::env::temp_dir().join(format!("wakefmm-reproducible-{}.npz", std::process::id()));
    let plan = wfmm_plan_options {
        method: WFMM_METHOD_FMM,
        tolerance: 1e-4,
        flags: WFMM_FLAG_REPRODUCIBLE,
        plane_axis: 3,
        plane_position: -0.6,
        ..Default::default()
    };
    let mut f = flow(&plan, &with(WFMM_INTEGRATOR_AB2));
    for k in 0..6 {
        let (points, strength) = particle_ring(300, 1.0 + 0.1 * k as f64, 0.1 * k as f64 - 0.3, 1.0);
        add_particles(&mut f, &points, &strength, 0.02);
    }
    f.advance(0.01, 2).unwrap();
    f.save(&path).unwrap();
    let mut again = Flow::load(session(), &path).unwrap();
    std::fs::remove_file(&path).unwrap();
    f.advance(0.01, 2).unwrap();
    again.advance(0.01, 2).unwrap();
    assert_eq!(again.report().method, WFMM_METHOD_FMM);
    assert!(bits(&mut again) == bits(&mut f));
}
