//! Pictures drawn on the device against pictures of the same elements drawn on the CPU, pixel by pixel.

use super::flows::*;
use super::harness::with_gpu;
use wakefmm::flow::Flow;
use wakefmm::flow::options::*;
use wakefmm::flow::picture::camera::*;
use wakefmm::flow::state::Gone;
use wakefmm::options::*;
use wakefmm::plan::arrays::Array::Host;
use wakefmm::plan::sources::Particles;

const SIZE: [i32; 2] = [160, 90];
const COLORINGS: [i32; 4] = [WFMM_COLOR_KIND, WFMM_COLOR_SPEED, WFMM_COLOR_AGE, WFMM_COLOR_DENSITY];
const TRANSPARENT: [f64; 4] = [0.2, 0.5, 0.8, 0.3];

fn take(f: &mut Flow, c: wfmm_camera) -> Vec<u8> {
    f.picture(&Camera::checked(&c, SIZE[0], SIZE[1]).unwrap()).unwrap()
}

/// The largest difference of two pictures' bytes, and bytes that differ.
fn difference(a: &[u8], b: &[u8]) -> (u8, usize) {
    assert_eq!(a.len(), b.len());
    let each = || a.iter().zip(b).map(|(a, b)| a.abs_diff(*b));
    (each().max().unwrap_or(0), each().filter(|d| *d > 0).count())
}

/// Both pictures are the same, or, where colors are of sums, but for a rounded byte. Says how many pixels are not the background.
fn same_picture(gpu: &mut Flow, cpu: &mut Flow, c: wfmm_camera, what: &str) -> usize {
    let (got, want) = (take(gpu, c), take(cpu, c));
    let (largest, bytes) = difference(&got, &want);
    let most = u8::from(c.color == WFMM_COLOR_SPEED);
    assert!(largest <= most && bytes <= 20, "{what}: {bytes} bytes differ by up to {largest}");
    want.chunks_exact(4).filter(|pixel| **pixel != want[..4]).count()
}

/// At (0, -2, 0), towards y.
fn ahead() -> wfmm_camera {
    wfmm_camera { eye: [0.0, -2.0, 0.0], fit: 0, field_of_view: 90.0, ..Default::default() }
}

fn both(plane: bool) -> [Flow; 2] {
    pair(sums(WFMM_METHOD_DIRECT, plane), motion(WFMM_INTEGRATOR_EULER, WFMM_STRETCHING_NONE))
}

#[test]
fn every_kind_of_picture_is_as_on_the_cpu() {
    with_gpu("pictures::every_kind_of_picture_is_as_on_the_cpu", &[], || {
        let [mut gpu, mut cpu] = both(true);
        for f in [&mut gpu, &mut cpu] {
            everything(f);
            add_dust(f, 700, 41);
        }
        for color in COLORINGS {
            for blending in [WFMM_BLENDING_OPACITY, WFMM_BLENDING_ADDITIVE] {
                for projection in [WFMM_PROJECTION_PERSPECTIVE, WFMM_PROJECTION_ORTHOGRAPHIC] {
                    let c = wfmm_camera { color, blending, projection, ..Default::default() };
                    let cameras = [
                        c,
                        wfmm_camera { opacity: 0.4, background: TRANSPARENT, grid: 0.3, point_size: 0.4, ..c },
                        wfmm_camera { opacity: 50.0, background: [0.0; 4], point_size: 5.0, line_width: 4.5, ..c },
                        wfmm_camera { color_range: [0.1, 0.4], point_size: 30.0, grid: 0.25, ..c },
                    ];
                    for (k, camera) in cameras.into_iter().enumerate() {
                        let what = format!("color {color}, blending {blending}, projection {projection}, camera {k}");
                        assert!(same_picture(&mut gpu, &mut cpu, camera, &what) > 500, "{what}");
                    }
                }
            }
        }
    });
}

/// Some kinds alone, nothing at all, and elements before, behind and beside the camera.
#[test]
fn cameras_between_the_elements_see_what_the_cpu_sees() {
    with_gpu("pictures::cameras_between_the_elements_see_what_the_cpu_sees", &[], || {
        let [mut gpu, mut cpu] = both(true);
        for color in COLORINGS {
            let c = wfmm_camera { color, grid: 0.5, ..Default::default() };
            same_picture(&mut gpu, &mut cpu, c, "nothing is there");
        }
        [&mut gpu, &mut cpu].into_iter().for_each(everything);
        for color in COLORINGS {
            for kinds in 0..32 {
                let what = format!("color {color}, kinds {kinds}");
                let c = wfmm_camera { color, kinds, ..Default::default() };
                assert!(same_picture(&mut gpu, &mut cpu, c, &what) > 0 || kinds == 0, "{what}");
            }
            let eyes = [[0.0, -0.4, 0.1], [0.0, 0.0, 0.0], [0.7, 0.02, 0.3], [0.0, 5.0, 0.0], [0.1, -90.0, 3.0]];
            for (k, eye) in eyes.into_iter().enumerate() {
                for (near_distance, point_size) in [(0.0, 1.5), (0.3, 9.0), (0.001, 0.3)] {
                    let target = [eye[0], eye[1] + 1.0, eye[2]];
                    let c = wfmm_camera { color, eye, target, near_distance, point_size, ..ahead() };
                    same_picture(&mut gpu, &mut cpu, c, &format!("color {color}, eye {k}, near {near_distance}"));
                }
            }
        }
        let behind = wfmm_camera { eye: [0.0, 9.0, 0.0], target: [0.0, 10.0, 0.0], ..ahead() };
        assert_eq!(same_picture(&mut gpu, &mut cpu, behind, "all behind the camera"), 0);
    });
}

/// Thousands of points in one pixel, before and behind a line: of one color and of many, hard and soft, small and large.
#[test]
fn a_crowd_in_one_pixel_is_summed_as_on_the_cpu() {
    with_gpu("pictures::a_crowd_in_one_pixel_is_summed_as_on_the_cpu", &[], || {
        let [mut gpu, mut cpu] = both(false);
        for f in [&mut gpu, &mut cpu] {
            lines(f, 24, 0.7, false);
            // Rows of 3000 at one point, of which every third is elsewhere, and behind or before the helix.
            let there = |k: usize| match k % 6 {
                2 => [0.3 * ((k % 97) as f64 / 48.0 - 1.0), 0.0, 0.2],
                1 => [0.003, 1.3, 0.005],
                _ => [0.003, -1.1, 0.005],
            };
            let x: Vec<f64> = (0..3000).flat_map(there).collect();
            f.put_tracers(Some(Host(&x[..])), false).unwrap();
            let (a, core) = (vec![0.01; 3 * 400], vec![0.02; 400]);
            let position = Host(&x[..1200]);
            let particles = Particles { n: 400, position, strength: Host(&a[..]), core: Some(Host(&core[..])) };
            f.put_particles(Some(particles), false).unwrap();
        }
        for color in COLORINGS {
            for point_size in [0.2, 1.5, 4.0, 25.0] {
                let c = wfmm_camera { color, point_size, opacity: 1e-4, ..ahead() };
                same_picture(&mut gpu, &mut cpu, c, &format!("color {color}, size {point_size}"));
            }
        }
    });
}

/// So many points in a pixel that sums of colors in 32 bits run over: they are the CPU's in the first picture, in the next one, and when
/// the points are few again. (That weights run over is seen, too, is tested in `backend::cuda::picture`.)
#[test]
fn sums_beyond_32_bits_are_as_on_the_cpu() {
    with_gpu("pictures::sums_beyond_32_bits_are_as_on_the_cpu", &[], || {
        let [mut gpu, mut cpu] = both(false);
        for n in [1 << 20, 600] {
            let x: Vec<f64> = (0..n).flat_map(|_| [0.003, 0.1, 0.005]).collect();
            for f in [&mut gpu, &mut cpu] {
                f.put_tracers(Some(Host(&x[..])), false).unwrap();
            }
            let color = WFMM_COLOR_AGE;
            for background in [TRANSPARENT, [0.0; 4]] {
                let c = wfmm_camera { color, background, point_size: 1.0, opacity: 1e-4, ..ahead() };
                assert!(same_picture(&mut gpu, &mut cpu, c, &format!("{n} points")) > 0);
            }
        }
    });
}

/// After steps, and after elements came and went: ages are those of the host.
#[test]
fn steps_and_edits_are_seen() {
    with_gpu("pictures::steps_and_edits_are_seen", &[], || {
        let [mut gpu, mut cpu] = pair(
            sums(WFMM_METHOD_DIRECT, true),
            wfmm_flow_options { split_length: 0.25, ..motion(WFMM_INTEGRATOR_AB2, WFMM_STRETCHING_CLASSICAL) },
        );
        let edits: [fn(&mut Flow); 7] = [
            everything,
            |f| f.remove(ElementKind::Dust, Gone::Identities(&[0, 3, 20, 49])).unwrap(),
            |f| add_dust(f, 300, 31),
            |f| add_tracers(f, 200, 35),
            |f| f.remove(ElementKind::Particles, Gone::Identities(&[0, 2])).unwrap(),
            |f| lines(f, 5, 0.3, true),
            |f| add_particles(f, 10, 33),
        ];
        for (k, edit) in edits.into_iter().enumerate() {
            for advanced in [false, true] {
                for f in [&mut gpu, &mut cpu] {
                    if advanced { f.advance(0.02, 1).unwrap() } else { edit(f) }
                }
                for color in COLORINGS {
                    let (got, want) =
                        [&mut gpu, &mut cpu].map(|f| take(f, wfmm_camera { color, ..Default::default() })).into();
                    let (largest, bytes) = difference(&got, &want);
                    // Positions differ by the rounding of the sums.
                    assert!(largest <= 1 && bytes <= 20, "edit {k}, color {color}: {bytes} bytes by {largest}");
                }
            }
        }
    });
}

/// The image crosses the bus, and counters, whatever is drawn: with twice the elements there are no more bytes.
#[test]
fn only_the_image_crosses_the_bus() {
    let log = std::env::temp_dir().join(format!("wakefmm-images-{}", std::process::id()));
    let settings = [("FAKE_CUDA_COPIES", "1"), ("FAKE_CUDA_LOG", log.to_str().unwrap())];
    with_gpu("pictures::only_the_image_crosses_the_bus", &settings, || {
        let image = f64::from(4 * SIZE[0] * SIZE[1]);
        for color in COLORINGS {
            let sent = [1, 2].map(|times| {
                let [mut gpu, _] = both(true);
                add_particles(&mut gpu, 60 * times, 1);
                lines(&mut gpu, 60 * times, 0.7, false);
                lines(&mut gpu, 60 * times, 0.4, true);
                add_tracers(&mut gpu, 2000 * times, 5);
                add_dust(&mut gpu, 2000 * times, 7);
                gpu.advance(1e-4, 1).unwrap();
                let before = copies().len();
                take(&mut gpu, wfmm_camera { color, ..Default::default() });
                copies().split_off(before)
            });
            let (large, small): (Vec<f64>, Vec<f64>) = sent[0].iter().partition(|bytes| **bytes > COUNTERS);
            assert!(large.iter().sum::<f64>() == image && small.len() <= 8, "color {color}: {:?}", sent[0]);
            assert_eq!(sent[0], sent[1], "color {color}");
        }
    });
    let _ = std::fs::remove_file(&log);
}

/// Under AUTO a picture of a state in host memory is the host's, and so is one that the device has no room for.
#[test]
fn under_auto_the_cpu_draws_what_the_gpu_cannot() {
    const NAME: &str = "pictures::under_auto_the_cpu_draws_what_the_gpu_cannot";
    let mut taken_over = 0;
    // Some of these requests are the picture's.
    for first in (18..30).step_by(4) {
        let failure = format!("full_at_{first}_{}", first + 4);
        let text = with_gpu(NAME, &[("FAKE_CUDA", &failure)], || {
            let o = motion(WFMM_INTEGRATOR_EULER, WFMM_STRETCHING_NONE);
            let on = |b| Flow::new(session(b), sums(WFMM_METHOD_DIRECT, false), o).unwrap();
            let (mut auto, mut cpu) = (on(BackendKind::Auto), on(BackendKind::Cpu));
            for f in [&mut auto, &mut cpu] {
                add_particles(f, 500, 1);
                lines(f, 20, 0.7, false);
            }
            let c = wfmm_camera::default();
            assert!(take(&mut auto, c) == take(&mut cpu, c));
            for f in [&mut auto, &mut cpu] {
                f.advance(1e-3, 1).unwrap();
            }
            let before = auto.report().device_bytes;
            let (largest, bytes) = difference(&take(&mut auto, c), &take(&mut cpu, c));
            assert!(largest <= 1 && bytes <= 20, "{bytes} bytes by {largest}");
            if auto.report().device_bytes < before {
                println!("the CPU took over");
            }
        });
        if is_child() {
            return;
        }
        taken_over += text.matches("the CPU took over").count();
    }
    assert!(taken_over > 0, "no picture failed on the device");
}
