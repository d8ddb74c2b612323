//! A vortex ring of 64 segments and the velocity in its centre, which theory says is Gamma/(2 R).
use wakefmm::backend::Field;
use wakefmm::options::{PlanOptions, wfmm_plan_options};
use wakefmm::plan::arrays::{Array::Host, ArrayMut};
use wakefmm::plan::{Plan, sources::Segments};
use wakefmm::session::Session;

fn main() -> wakefmm::error::Result<()> {
    let (n, turn) = (64, std::f64::consts::TAU / 64.0);
    let points: Vec<f64> = (0..n).flat_map(|i| [(i as f64 * turn).cos(), (i as f64 * turn).sin(), 0.0]).collect();
    let ends: Vec<i32> = (0..n as i32).flat_map(|i| [i, (i + 1) % 64]).collect();
    let (points, connectivity, circulation) = (Host(&points[..]), Host(&ends[..]), Host(&[1.0; 64][..]));
    let mut plan = Plan::new(Session::default_session()?, PlanOptions::checked(&wfmm_plan_options::default())?);
    plan.set_segments(Some(Segments { n_points: n, points, n, ld: 2, connectivity, circulation, core: None }))?;
    plan.set_targets::<f64>(Some((1, Host(&[0.0; 3]))))?;
    let mut u = [0.0; 3];
    plan.evaluate(Field::Velocity { gradient: false }, ArrayMut::Host(&mut u), None)?;
    println!("u = {u:.6?}, theory 0 0 0.5");
    Ok(())
}
