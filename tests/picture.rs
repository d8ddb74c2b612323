//! Pictures of flows: elements land where geometry says, lines hide what is behind them, colors say what was asked, files hold the
//! same bytes, and neither threads nor ranks change a picture.

mod ranks;

use std::path::Path;
use std::sync::Arc;

use ranks::*;
use wakefmm::error::*;
use wakefmm::flow::Flow;
use wakefmm::flow::edit::DustArrays;
use wakefmm::flow::options::*;
use wakefmm::flow::picture::camera::*;
use wakefmm::flow::picture::write_png;
use wakefmm::options::*;
use wakefmm::plan::arrays::Array::Host;
use wakefmm::plan::sources::{Particles, Segments};
use wakefmm::session::Session;

const WIDTH: usize = 200;
const HEIGHT: usize = 100;
/// The default.
const BACKGROUND: [u8; 4] = [10, 15, 26, 255];

fn session(threads: usize) -> Arc<Session> {
    Session::new(&SessionOptions { backend: BackendKind::Cpu, device: None, devices: vec![], threads }).unwrap()
}

fn flow_on(session: Arc<Session>, plane_axis: i32) -> Flow {
    let plan = wfmm_plan_options { method: WFMM_METHOD_DIRECT, plane_axis, ..Default::default() };
    let options = wfmm_flow_options { fluid_viscosity: 1.8e-5, ..Default::default() };
    Flow::new(session, plan, options).unwrap()
}

fn flow() -> Flow {
    flow_on(session(2), 0)
}

/// At (0, -2, 0), towards y: 25 pixels a unit at the target.
fn ahead() -> wfmm_camera {
    wfmm_camera { eye: [0.0, -2.0, 0.0], fit: 0, field_of_view: 90.0, opacity: 50.0, ..Default::default() }
}

fn take(flow: &mut Flow, camera: wfmm_camera) -> Vec<[u8; 4]> {
    let camera = Camera::checked(&camera, WIDTH as i32, HEIGHT as i32).unwrap();
    let bytes = flow.picture(&camera).unwrap();
    bytes.chunks_exact(4).map(|p| [p[0], p[1], p[2], p[3]]).collect()
}

fn at(picture: &[[u8; 4]], i: usize, j: usize) -> [u8; 4] {
    picture[j * WIDTH + i]
}

/// Pixels that are not the background.
fn drawn(picture: &[[u8; 4]]) -> Vec<(usize, usize)> {
    (0..picture.len()).filter(|&k| picture[k] != BACKGROUND).map(|k| (k % WIDTH, k / WIDTH)).collect()
}

fn set_tracers(flow: &mut Flow, x: &[f64]) {
    flow.put_tracers(Some(Host(x)), true).unwrap();
}

fn set_dust(flow: &mut Flow, x: &[f64], velocity: &[f64]) {
    let n = x.len() / 3;
    let (diameter, density) = (vec![1e-4; n], vec![2650.0; n]);
    let dust = DustArrays {
        position: Host(x),
        velocity: Some(Host(velocity)),
        diameter: Host(&diameter[..]),
        density: Host(&density[..]),
    };
    flow.put_dust(Some(dust), true).unwrap();
}

fn set_filaments(flow: &mut Flow, points: &[f64], ends: &[i32]) {
    let n = ends.len() / 2;
    let (circulation, core) = (vec![1.0; n], vec![0.1; n]);
    let segments = Segments {
        n_points: points.len() / 3,
        points: Host(points),
        n,
        ld: 2,
        connectivity: Host(ends),
        circulation: Host(&circulation[..]),
        core: Some(Host(&core[..])),
    };
    flow.put_filaments(Some(segments), true).unwrap();
}

fn random(n: usize, seed: u64) -> Vec<f64> {
    let mut s = seed;
    let mut next = || {
        s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (s >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..n).map(|_| next()).collect()
}

#[test]
fn a_tracer_lands_at_its_pixel() {
    let mut f = flow();
    // (112.5, 43.5), the middle of a pixel; the other one is behind the camera.
    set_tracers(&mut f, &[0.5, 0.0, 0.26, 0.5, -4.0, 0.26]);
    let picture = take(&mut f, ahead());
    let found = drawn(&picture);
    let tracer = [110, 230, 170, 255];
    assert!(at(&picture, 112, 43).iter().zip(tracer).all(|(a, b)| a.abs_diff(b) <= 1), "{:?}", at(&picture, 112, 43));
    assert!(!found.is_empty() && found.iter().all(|(i, j)| i.abs_diff(112) + j.abs_diff(43) <= 1), "{found:?}");
    let parallel = wfmm_camera { projection: WFMM_PROJECTION_ORTHOGRAPHIC, view_height: 4.0, ..ahead() };
    set_tracers(&mut f, &[0.5, 9.0, 0.26]);
    let found = drawn(&take(&mut f, parallel));
    assert!(found.contains(&(112, 43)) && found.iter().all(|(i, j)| i.abs_diff(112) + j.abs_diff(43) <= 1));
    let other = wfmm_camera { kinds: 31 - (1 << WFMM_KIND_TRACERS), ..ahead() };
    assert!(drawn(&take(&mut f, other)).is_empty());
}

#[test]
fn a_segment_covers_its_line_and_is_cut_at_the_camera() {
    let mut f = flow();
    set_filaments(&mut f, &[-1.0, 0.0, 0.0, 1.0, 0.0, 0.0], &[0, 1]);
    let picture = take(&mut f, ahead());
    for i in 75..125 {
        assert_eq!((at(&picture, i, 49), at(&picture, i, 50)), ([120, 190, 255, 255], [120, 190, 255, 255]), "{i}");
        assert_eq!((at(&picture, i, 47), at(&picture, i, 52)), (BACKGROUND, BACKGROUND), "{i}");
    }
    assert!(drawn(&picture).iter().all(|(i, _)| (73..127).contains(i)));
    // Steep and oblique: every row between the ends has the line's color where the line is.
    set_filaments(&mut f, &[-0.4, 0.0, -1.6, 0.4, 0.0, 1.6], &[0, 1]);
    let picture = take(&mut f, ahead());
    for j in 12..88 {
        let x = 100.0 + (50.0 - (j as f64 + 0.5)) / 4.0;
        assert_eq!(at(&picture, x as usize, j), [120, 190, 255, 255], "{j}");
    }
    // From before the camera to behind it: below the eye, from the middle of the picture to its lower edge.
    set_filaments(&mut f, &[0.0, 40.0, -0.5, 0.0, -40.0, -0.5], &[0, 1]);
    let found = drawn(&take(&mut f, ahead()));
    assert!(found.iter().any(|p| p.1 == HEIGHT - 1) && found.iter().all(|p| p.1 >= 49 && p.0.abs_diff(100) <= 3));
    set_filaments(&mut f, &[0.0, -3.0, -0.5, 0.0, -40.0, -0.5], &[0, 1]);
    assert!(drawn(&take(&mut f, ahead())).is_empty());
}

#[test]
fn dust_before_a_line_veils_it_and_dust_behind_does_not() {
    let mut f = flow();
    set_filaments(&mut f, &[-1.0, 0.0, 0.01, 1.0, 0.0, 0.01], &[0, 1]);
    set_dust(&mut f, &[0.0, -0.1, 0.0], &[0.0; 3]);
    let before = take(&mut f, ahead());
    set_dust(&mut f, &[0.0, 0.1, 0.0], &[0.0; 3]);
    let behind = take(&mut f, ahead());
    assert_eq!(at(&behind, 100, 49), [120, 190, 255, 255]);
    assert!(at(&before, 100, 49)[0] > 160, "{:?}", at(&before, 100, 49));
}

#[test]
fn everything_fits() {
    let mut f = flow();
    set_tracers(&mut f, &random(3 * 500, 1).iter().map(|x| 1e4 * x).collect::<Vec<_>>());
    for projection in [WFMM_PROJECTION_PERSPECTIVE, WFMM_PROJECTION_ORTHOGRAPHIC] {
        let found = drawn(&take(&mut f, wfmm_camera { projection, ..Default::default() }));
        assert!(found.len() > 400 && found.iter().all(|(i, j)| (2..198).contains(i) && (2..98).contains(j)));
        assert!(found.iter().any(|(_, j)| *j <= 4) && found.iter().any(|(_, j)| *j >= 95));
    }
    // A single point stands in the middle.
    set_tracers(&mut f, &[7.0, 8.0, 9.0]);
    assert!(
        drawn(&take(&mut f, wfmm_camera::default())).iter().all(|(i, j)| i.abs_diff(100) <= 2 && j.abs_diff(50) <= 2)
    );
}

#[test]
fn colors_say_speed_age_and_density() {
    let (mut f, ends) = (flow(), [[68, 1, 84], [253, 231, 37]]);
    let camera = |color| wfmm_camera { color, kinds: 1 << WFMM_KIND_DUST, ..ahead() };
    let near = |a: [u8; 4], b: [u8; 3]| a.iter().zip(b).all(|(a, b)| a.abs_diff(b) <= 2);
    // At pixels 87 and 112: the first is the faster.
    set_dust(&mut f, &[-0.5, 0.0, 0.02, 0.5, 0.0, 0.02], &[3.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    let picture = take(&mut f, camera(WFMM_COLOR_SPEED));
    assert!(near(at(&picture, 87, 49), ends[1]) && near(at(&picture, 112, 49), ends[0]));
    let wide = wfmm_camera { color_range: [-1.0, 3.0], ..camera(WFMM_COLOR_SPEED) };
    let picture = take(&mut f, wide);
    assert!(near(at(&picture, 87, 49), ends[1]) && near(at(&picture, 112, 49), [33, 144, 141]));
    let picture = take(&mut f, camera(WFMM_COLOR_AGE));
    assert!(near(at(&picture, 87, 49), ends[0]) && near(at(&picture, 112, 49), ends[1]));
    let dense = take(&mut f, camera(WFMM_COLOR_DENSITY));
    let thin = take(&mut f, wfmm_camera { opacity: 0.1, ..camera(WFMM_COLOR_DENSITY) });
    assert!(near(at(&dense, 87, 49), ends[1]) && at(&thin, 87, 49)[1] < 40, "{:?}", at(&thin, 87, 49));
    // Half of the light twice.
    let light = wfmm_camera {
        blending: WFMM_BLENDING_ADDITIVE,
        opacity: 0.25,
        background: [0.0; 4],
        ..camera(WFMM_COLOR_KIND)
    };
    set_dust(&mut f, &[0.5, 0.0, 0.02, 0.5, 0.0, 0.02], &[0.0; 6]);
    let picture = take(&mut f, light);
    assert_eq!(at(&picture, 112, 49)[3], 128);
    assert_eq!(at(&picture, 0, 0), [0; 4]);
    // The fluid's speed: a tracer beside a filament and one far away.
    set_filaments(&mut f, &[0.0, 0.0, -5.0, 0.0, 0.0, 5.0], &[0, 1]);
    set_tracers(&mut f, &[0.5, 0.0, 0.02, 1.5, 0.0, 0.02]);
    let picture = take(&mut f, wfmm_camera { kinds: 1 << WFMM_KIND_TRACERS, ..camera(WFMM_COLOR_SPEED) });
    assert!(near(at(&picture, 112, 49), ends[1]) && near(at(&picture, 137, 49), ends[0]));
}

#[test]
fn particles_have_the_size_of_their_cores() {
    let mut f = flow();
    let core = [0.2];
    let one = Particles {
        n: 1,
        position: Host(&[0.02, 0.0, 0.02][..]),
        strength: Host(&[0.0, 0.0, 1.0]),
        core: Some(Host(&core)),
    };
    f.put_particles(Some(one), true).unwrap();
    // Two core radii are 10 pixels.
    let found = drawn(&take(&mut f, ahead()));
    let reach = found.iter().map(|(i, j)| (*i as f64 - 100.0).hypot(*j as f64 - 49.0)).fold(0.0, f64::max);
    assert!((8.0..=10.0).contains(&reach) && found.len() > 200, "{reach} {}", found.len());
}

#[test]
fn the_ground_has_a_grid_below_the_horizon() {
    let mut f = flow_on(session(2), 3);
    set_tracers(&mut f, &[0.0, 0.0, 0.5]);
    let camera = wfmm_camera { eye: [0.0, -3.0, 1.0], target: [0.0, 0.0, 1.0], grid: 0.5, kinds: 0, ..ahead() };
    let picture = take(&mut f, camera);
    assert_eq!(at(&picture, 10, 40), BACKGROUND);
    let shades: std::collections::BTreeSet<_> = (0..WIDTH).map(|i| at(&picture, i, 90)).collect();
    assert!(!shades.contains(&BACKGROUND) && shades.len() > 1);
    assert!(drawn(&take(&mut flow(), camera)).is_empty(), "no plane, no ground");
}

#[test]
fn threads_do_not_change_a_picture() {
    let n = 20_000;
    let x = random(3 * n, 5);
    let pictures: Vec<_> = [1, 4]
        .map(|threads| {
            let mut f = flow_on(session(threads), 0);
            set_filaments(&mut f, &random(3 * 300, 2), &(0..299).flat_map(|k| [k, k + 1]).collect::<Vec<_>>());
            set_dust(&mut f, &x, &random(3 * n, 9));
            take(&mut f, wfmm_camera { color: WFMM_COLOR_SPEED, kinds: 18, ..Default::default() })
        })
        .into();
    assert!(pictures[0] == pictures[1] && drawn(&pictures[0]).len() > 2000);
}

#[test]
fn a_file_holds_the_same_bytes() {
    let mut f = flow();
    set_tracers(&mut f, &random(300, 3));
    let picture = take(&mut f, wfmm_camera { background: [0.0, 0.5, 1.0, 0.25], ..Default::default() });
    let path = std::env::temp_dir().join(format!("wakefmm-picture-{}.png", std::process::id()));
    write_png(&path, WIDTH, HEIGHT, picture.as_flattened()).unwrap();
    let mut reader =
        png::Decoder::new(std::io::BufReader::new(std::fs::File::open(&path).unwrap())).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!((info.width as usize, info.height as usize, info.color_type), (WIDTH, HEIGHT, png::ColorType::Rgba));
    assert!(bytes == picture.as_flattened());
    let nowhere = write_png(Path::new("/no/such/folder/x.png"), WIDTH, HEIGHT, picture.as_flattened());
    assert_eq!(nowhere.unwrap_err().status, WFMM_ERR_FILE);
}

#[test]
fn what_a_camera_refuses() {
    let of = |camera: wfmm_camera| Camera::checked(&camera, 10, 10).err().map(|e| (e.status, e.message));
    let refused = |camera: wfmm_camera, status, word: &str| {
        let (found, message) = of(camera).expect("an error");
        assert!(found == status && message.contains(word), "{message}");
    };
    let d = wfmm_camera::default();
    assert!(of(d).is_none());
    refused(wfmm_camera { target: d.eye, ..d }, WFMM_ERR_VALUE, "eye and target");
    refused(wfmm_camera { up: d.eye, ..d }, WFMM_ERR_VALUE, "up is zero");
    refused(wfmm_camera { kinds: 32, ..d }, WFMM_ERR_CONSTANT, "kinds = 32");
    refused(wfmm_camera { fit: 2, ..d }, WFMM_ERR_CONSTANT, "fit = 2");
    refused(wfmm_camera { color: 9, ..d }, WFMM_ERR_CONSTANT, "color = 9");
    refused(wfmm_camera { background: [0.0, 0.0, 0.0, 1.5], ..d }, WFMM_ERR_VALUE, "background[3] = 1.5");
    refused(wfmm_camera { field_of_view: 180.0, ..d }, WFMM_ERR_VALUE, "field_of_view");
    refused(wfmm_camera { eye: [f64::NAN; 3], ..d }, WFMM_ERR_NOT_FINITE, "eye[0]");
    for (width, height) in [(0, 10), (10, -1), (40_000, 10)] {
        assert_eq!(Camera::checked(&d, width, height).unwrap_err().status, WFMM_ERR_VALUE);
    }
}

/// A ring on the first of three ranks, dust dealt out over two.
fn dealt(rank: usize, ranks: usize, session: &Arc<Session>) -> Vec<[u8; 4]> {
    let mut f = flow_on(session.clone(), 0);
    let x = random(3 * 400, 11);
    if rank == 0 {
        set_filaments(&mut f, &random(3 * 30, 2), &(0..29).flat_map(|k| [k, k + 1]).collect::<Vec<_>>());
    } else {
        f.put_filaments::<f64>(None, true).unwrap();
    }
    let mine: Vec<f64> = match (rank, ranks) {
        (_, 1) => x,
        (0, _) => x[..600].to_vec(),
        (1, _) => x[600..].to_vec(),
        _ => vec![],
    };
    if mine.is_empty() {
        f.put_dust::<f64>(None, true).unwrap();
    } else {
        let speeds = vec![0.0; mine.len()];
        set_dust(&mut f, &mine, &speeds);
    }
    take(&mut f, wfmm_camera { color: WFMM_COLOR_AGE, ..Default::default() })
}

#[test]
fn ranks_draw_one_picture() {
    let alone = dealt(0, 1, &session(1));
    let all = on_all(3, |rank, end| dealt(rank, 3, &Session::distributed(&session_options(), end).unwrap()));
    assert!(drawn(&alone).len() > 500);
    for picture in all {
        assert!(picture == alone);
    }
}
