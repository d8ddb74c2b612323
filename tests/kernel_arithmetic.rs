//! The pair functions of the CUDA kernels, compiled as C++ for the CPU, against the oracle: the same headers that nvcc
//! compiles, tested where no GPU is.

use std::ffi::{CString, c_void};
use std::path::PathBuf;
use std::process::Command;

use wakefmm::math::biot_savart::{Induced, charge, particle, segment};
use wakefmm::math::regularization::Part;
use wakefmm::options::Regularization::{self, *};

type ParticleFn = unsafe extern "C" fn(i32, i32, i32, *const f64, *const f64, *const f64, f64, *mut f64);
type SegmentFn = unsafe extern "C" fn(i32, i32, i32, *const f64, *const f64, f64, f64, *mut f64);
type ChargeFn = unsafe extern "C" fn(i32, *const f64, *const f64, f64, *mut f64);

struct Kernels {
    particle: ParticleFn,
    segment: SegmentFn,
    charge: ChargeFn,
}

/// Compiles tests/kernels/pair.cpp and opens it.
fn kernels(name: &str) -> Kernels {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("pair-{name}.so"));
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    let mut command = Command::new(compiler);
    // Contraction only where the source says fma, as the tests of exact zeros need it.
    command.args(["-std=c++17", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-I"]).arg(root.join("kernels"));
    command.arg(root.join("tests/kernels/pair.cpp")).arg("-o").arg(&library);
    assert!(command.status().expect("a C++ compiler runs").success());
    let path = CString::new(library.to_str().unwrap()).unwrap();
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!handle.is_null());
        let get = |name: &std::ffi::CStr| {
            let address: *mut c_void = libc::dlsym(handle, name.as_ptr());
            assert!(!address.is_null());
            address
        };
        Kernels {
            particle: std::mem::transmute::<*mut c_void, ParticleFn>(get(c"pair_particle")),
            segment: std::mem::transmute::<*mut c_void, SegmentFn>(get(c"pair_segment")),
            charge: std::mem::transmute::<*mut c_void, ChargeFn>(get(c"pair_charge")),
        }
    }
}

/// Lengths as the kernels get them: single precision wants boxes much wider than one (`Real::extent`).
const SIDE: f64 = 4096.0;

struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = (self.0 >> 11) as f64 / (1u64 << 53) as f64;
        // Numbers that single precision holds, so that only arithmetic differs.
        x as f32 as f64
    }
    fn vector(&mut self, size: f64) -> [f64; 3] {
        std::array::from_fn(|_| ((2.0 * self.unit() - 1.0) * size) as f32 as f64)
    }
}

fn as_row(induced: &Induced) -> [f64; 15] {
    let mut row = [0.0; 15];
    row[..3].copy_from_slice(&induced.velocity);
    row[3..12].copy_from_slice(induced.gradient.as_flattened());
    row[12..].copy_from_slice(&induced.velocity);
    row
}

fn size(row: &[f64]) -> f64 {
    row.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Largest relative difference of velocity, gradient and velocity alone; `scale` gives the sizes that count.
fn difference(got: &[f64; 15], want: &[f64; 15], scale: &[f64; 15]) -> [f64; 3] {
    [0..3, 3..12, 12..15].map(|part| {
        let d: Vec<f64> = part.clone().map(|i| got[i] - want[i]).collect();
        size(&d) / size(&scale[part]).max(1e-300)
    })
}

const PARTICLES: [Regularization; 7] = [None, GaussErf, Exponential, Compact, Rosenhead, Winckelmans, Polynomial];
const SEGMENTS: [Regularization; 6] = [None, Rankine, LambOseen, Vatistas, Scully, Offset];

#[test]
fn particles_follow_the_oracle() {
    let kernels = kernels("particles");
    let mut random = Random(1);
    for reg in PARTICLES {
        for (f64, part, tol) in [
            (1, 0, [4e-15, 2e-14, 4e-15]),
            (0, 0, [2e-6, 6e-6, 2e-6]),
            (1, 1, [4e-15, 2e-14, 4e-15]),
            (0, 1, [2e-6, 6e-6, 2e-6]),
        ] {
            let mut worst = [0.0f64; 3];
            for _ in 0..4000 {
                let (p, a) = (random.vector(SIDE), random.vector(1.0));
                // From a hundredth of a core to twenty cores; the middle of the box has the finest coordinates.
                let c = (SIDE * (0.01 + 0.02 * random.unit())) as f32 as f64;
                let reach = c * 10f64.powf(-2.0 + 3.3 * random.unit());
                let d = random.vector(1.0);
                let x: [f64; 3] = std::array::from_fn(|i| (p[i] + d[i] * reach) as f32 as f64);
                let mut got = [0.0; 15];
                unsafe {
                    (kernels.particle)(f64, reg as i32, part, x.as_ptr(), p.as_ptr(), a.as_ptr(), c, got.as_mut_ptr())
                };
                let of = |part| as_row(&particle(reg, part, x, p, a, c));
                let (want, singular) =
                    (of(if part == 0 { Part::Regularized } else { Part::Correction }), of(Part::Singular));
                // A deficit is the difference of two kernels: its error is relative to the larger one.
                let mut scale = if part == 0 { want } else { singular };
                // a × d loses digits where they are parallel: its error is relative to |a||d|.
                let d: [f64; 3] = std::array::from_fn(|i| x[i] - p[i]);
                let c = [a[1] * d[2] - a[2] * d[1], a[2] * d[0] - a[0] * d[2], a[0] * d[1] - a[1] * d[0]];
                let sine = size(&c) / (size(&a) * size(&d));
                (0..3).chain(12..15).for_each(|i| scale[i] /= sine);
                let error = difference(&got, &want, &scale);
                (0..3).for_each(|i| worst[i] = worst[i].max(error[i]));
            }
            assert!((0..3).all(|i| worst[i] <= tol[i]), "{reg:?} f64 {f64} part {part}: {worst:?} above {tol:?}");
        }
    }
}

#[test]
fn segments_follow_the_oracle() {
    let kernels = kernels("segments");
    let mut random = Random(2);
    for reg in SEGMENTS {
        for (f64, part, tol) in
            [(1, 0, [2e-12, 2e-11, 2e-12]), (0, 0, [2e-4, 2e-3, 2e-4]), (1, 1, [2e-12, 2e-11, 2e-12])]
        {
            let mut worst = [0.0f64; 3];
            for _ in 0..4000 {
                let (p, l) = (random.vector(SIDE), random.vector(0.2 * SIDE));
                let c = SIDE * (0.01 + 0.05 * random.unit());
                let along = -0.5 + 2.0 * random.unit();
                let reach = SIDE * 10f64.powf(-2.0 + 2.5 * random.unit());
                let d = random.vector(reach);
                let ends: [f64; 6] =
                    std::array::from_fn(|i| ((if i < 3 { p[i] } else { p[i - 3] + l[i - 3] }) as f32) as f64);
                let x: [f64; 3] = std::array::from_fn(|i| (p[i] + along * l[i] + d[i]) as f32 as f64);
                let (p1, p2) = ([ends[0], ends[1], ends[2]], [ends[3], ends[4], ends[5]]);
                let mut got = [0.0; 15];
                unsafe {
                    (kernels.segment)(f64, reg as i32, part, x.as_ptr(), ends.as_ptr(), 0.7, c, got.as_mut_ptr())
                };
                let of = |part| as_row(&segment(reg, part, x, p1, p2, 0.7, c));
                let (want, singular) =
                    (of(if part == 0 { Part::Regularized } else { Part::Correction }), of(Part::Singular));
                let error = difference(&got, &want, &singular);
                (0..3).for_each(|i| worst[i] = worst[i].max(error[i]));
            }
            assert!((0..3).all(|i| worst[i] <= tol[i]), "{reg:?} f64 {f64} part {part}: {worst:?} above {tol:?}");
        }
    }
}

/// Beside an end, from a hundredth to a hundred thousandth of the segment's length: nothing of the slopes is lost there.
#[test]
fn slopes_hold_beside_an_end() {
    let kernels = kernels("ends");
    let mut random = Random(5);
    for reg in SEGMENTS.into_iter().filter(|reg| *reg != Offset) {
        for (f64, tol) in [(1, [1e-13, 1e-13, 1e-13]), (0, [4e-5, 4e-5, 4e-5])] {
            let mut worst = [0.0f64; 3];
            let mut taken = 0;
            while taken < 2000 {
                let (l, d) = (random.vector(0.2 * SIDE), random.vector(1.0));
                let reach = size(&l) * 10f64.powf(-2.0 - 3.0 * random.unit());
                let x: [f64; 3] = std::array::from_fn(|i| (d[i] * reach) as f32 as f64);
                let inner: f64 = (0..3).map(|i| x[i] * l[i]).sum();
                if inner.abs() > 0.97 * size(&x) * size(&l) || size(&x) == 0.0 {
                    continue; // there the digits of the distance to the line are lost, which has other tests
                }
                taken += 1;
                let ends: [f64; 6] = std::array::from_fn(|i| if i < 3 { 0.0 } else { l[i - 3] });
                let mut got = [0.0; 15];
                let c = 0.3 * reach;
                unsafe { (kernels.segment)(f64, reg as i32, 0, x.as_ptr(), ends.as_ptr(), 0.7, c, got.as_mut_ptr()) };
                let of = |part| as_row(&segment(reg, part, x, [0.0; 3], l, 0.7, c));
                let error = difference(&got, &of(Part::Regularized), &of(Part::Singular));
                (0..3).for_each(|i| worst[i] = worst[i].max(error[i]));
            }
            assert!((0..3).all(|i| worst[i] <= tol[i]), "{reg:?} f64 {f64}: {worst:?} above {tol:?}");
        }
    }
}

#[test]
fn charges_follow_the_oracle() {
    let kernels = kernels("charges");
    let mut random = Random(3);
    for (f64, tol) in [(1, 2e-15), (0, 2e-6)] {
        for _ in 0..2000 {
            let (p, x) = (random.vector(1.0), random.vector(1.0));
            let mut got = [0.0; 4];
            unsafe { (kernels.charge)(f64, x.as_ptr(), p.as_ptr(), -0.3, got.as_mut_ptr()) };
            let want = charge(x, p, -0.3);
            assert!((got[0] - want.potential).abs() <= tol * want.potential.abs());
            let d: Vec<f64> = (0..3).map(|i| got[1 + i] - want.gradient[i]).collect();
            assert!(size(&d) <= 2.0 * tol * size(&want.gradient));
        }
    }
}

/// A target on a particle, on the line of a segment inside, outside and at its ends: exactly zero, also the gradient.
#[test]
fn where_there_is_no_value_there_is_zero() {
    let kernels = kernels("zero");
    let mut random = Random(4);
    for f64 in [0, 1] {
        for core in [0.0, 0.05] {
            for _ in 0..200 {
                let (p, a) = (random.vector(1.0), random.vector(1.0));
                for reg in PARTICLES {
                    let mut got = [1.0; 15];
                    unsafe {
                        (kernels.particle)(
                            f64,
                            reg as i32,
                            0,
                            p.as_ptr(),
                            p.as_ptr(),
                            a.as_ptr(),
                            core,
                            got.as_mut_ptr(),
                        )
                    };
                    assert_eq!(got, [0.0; 15], "{reg:?} f64 {f64} core {core}");
                }
                // On a line through the origin with steps that are powers of two: collinear without rounding.
                let ends: [f64; 6] = std::array::from_fn(|i| if i < 3 { -p[i] } else { p[i - 3] });
                for t in [-2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 4.0] {
                    let x = p.map(|p| t * p);
                    for reg in SEGMENTS {
                        let mut got = [1.0; 15];
                        unsafe {
                            (kernels.segment)(
                                f64,
                                reg as i32,
                                0,
                                x.as_ptr(),
                                ends.as_ptr(),
                                1.0,
                                core,
                                got.as_mut_ptr(),
                            )
                        };
                        assert_eq!(got, [0.0; 15], "{reg:?} f64 {f64} core {core} t {t}");
                    }
                }
            }
        }
    }
}

/// The table of physical values: P1 = (0,0,-1), P2 = (0,0,1), Γ = 1, c = 0.5, x = (0.05,0,-0.5), s = 1/4π.
#[test]
fn known_values() {
    let kernels = kernels("known");
    let ends = [0.0, 0.0, -1.0, 0.0, 0.0, 1.0];
    let table = [
        (None, 3.174316846759495),
        (Rankine, 0.03174316846759495),
        (LambOseen, 0.03963356378147256),
        (Vatistas, 0.03174158142819854),
        (Offset, 0.01586230555830498),
    ];
    for (reg, want) in table {
        let mut got = [0.0; 15];
        unsafe {
            (kernels.segment)(1, reg as i32, 0, [0.05, 0.0, -0.5].as_ptr(), ends.as_ptr(), 1.0, 0.5, got.as_mut_ptr())
        };
        let u = got[1] / (4.0 * std::f64::consts::PI);
        // The table's own digits end at 2e-14.
        assert!((u / want - 1.0).abs() < 1e-13, "{reg:?} {u} {want}");
    }
}
