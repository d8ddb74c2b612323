//! Sessions of many ranks where something fails on one of them: the same status on all, and nobody waits for ever.
//!
//! Enters: small problems over a group of threads, one rank of which misbehaves. No test waits longer than its time limit.

mod ranks;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ranks::support::cases::{Kind, case};
use ranks::*;
use wakefmm::backend::Field;
use wakefmm::distributed::{Communicator, Exchange, Reduction, Shares, threads};
use wakefmm::error::*;
use wakefmm::flow::Flow;
use wakefmm::flow::options::{ElementKind, Quantity, WFMM_INTEGRATOR_AB2, wfmm_flow_options};
use wakefmm::flow::picture::camera::{Camera, WFMM_COLOR_AGE, wfmm_camera};
use wakefmm::options::*;
use wakefmm::plan::Plan;
use wakefmm::plan::arrays::{Array, ArrayMut};
use wakefmm::plan::sources::Particles;
use wakefmm::session::Session;

#[test]
fn an_error_on_one_rank_is_the_same_on_all_and_leaves_the_plans_as_they_were() {
    let c = case("cube", Kind::Particles, 60, 40, 1.0);
    let want = exact(&c, Field::Velocity { gradient: false }).0;
    for bad in 0..4 {
        let all = on_all(4, |rank, end| {
            let mut plan = plan_of(end, &plan_options(WFMM_METHOD_DIRECT, 1e-6));
            let (mine, numbers) = part(&c, SPLITS[2].1, rank, 4);
            fill(&mut plan, &mine).unwrap();
            let mut x = flat(&mine.position);
            if rank == bad {
                x[7] = f64::NAN;
            }
            let n = mine.position.len();
            let strength = flat(&mine.strength);
            let again = Particles { n, position: Array::Host(&x[..]), strength: Array::Host(&strength), core: None };
            let error = plan.set_particles(Some(again)).unwrap_err();
            let u = field_of(&mut plan, Field::Velocity { gradient: false }, numbers.len()).unwrap().0;
            (error, numbers, u)
        });
        for (error, numbers, u) in all {
            assert_eq!(error.status, WFMM_ERR_NOT_FINITE);
            assert_eq!(
                error.message.split(';').next(),
                Some(&*format!("rank {bad}: position[2][1] = NaN (elements counted from 0)"))
            );
            let mine: Vec<f64> = numbers.iter().flat_map(|&t| want[3 * t..3 * t + 3].to_vec()).collect();
            assert!(relative_l2(&u, &mine) < 1e-13);
        }
    }
}

#[test]
fn options_requests_and_calls_that_differ_are_found_and_named() {
    let errors = on_all(3, |rank, end| {
        let session = Session::distributed(&session_options(), end).unwrap();
        let tolerance = if rank == 2 { 1e-5 } else { 1e-4 };
        Plan::create(session, PlanOptions::checked(&plan_options(0, tolerance)).unwrap()).err().unwrap()
    });
    for e in errors {
        assert_eq!(e.status, WFMM_ERR_VALUE);
        assert!(e.message.starts_with("rank 2: tolerance = 0.00001, but 0.0001 on rank 0"), "{}", e.message);
    }
    // Pseudo-particles on one rank alone.
    let errors = on_all(2, |rank, end| {
        let session = Session::distributed(&session_options(), end).unwrap();
        let o = wfmm_plan_options { expansion: rank as i32, ..plan_options(0, 1e-4) };
        Plan::create(session, PlanOptions::checked(&o).unwrap()).err().unwrap()
    });
    for e in errors {
        assert_eq!(e.status, WFMM_ERR_VALUE);
        assert!(e.message.starts_with("rank 1: expansion = 1, but 0 on rank 0"), "{}", e.message);
    }
    // A gradient on one rank alone, then different calls, then a plan that goes on.
    let c = case("cube", Kind::Particles, 60, 40, 1.0);
    on_all(2, |rank, end| {
        let mut plan = plan_of(end, &plan_options(WFMM_METHOD_DIRECT, 1e-4));
        let (mine, _) = part(&c, SPLITS[2].1, rank, 2);
        fill(&mut plan, &mine).unwrap();
        let e = field_of(&mut plan, Field::Velocity { gradient: rank == 1 }, mine.targets.len()).unwrap_err();
        assert!(e.status == WFMM_ERR_VALUE && e.message.contains("gradient"), "{}", e.message);
        let e = if rank == 0 { plan.check(10, 1).unwrap_err() } else { plan.set_particles::<f64>(None).unwrap_err() };
        assert!(e.status == WFMM_ERR_STATE && e.message.contains("rank 1 is in another call"), "{}", e.message);
        assert!(field_of(&mut plan, Field::Velocity { gradient: false }, mine.targets.len()).is_ok());
    });
}

/// Some quantities are an evaluation, and what a camera colors by decides what is exchanged: nobody may wait for others there.
#[test]
fn what_ranks_ask_of_a_flow_is_the_same_on_all() {
    let c = case("cube", Kind::Particles, 60, 40, 1.0);
    on_all(3, |rank, end| {
        let session = Session::distributed(&session_options(), end).unwrap();
        let mut flow =
            Flow::new(session, plan_options(WFMM_METHOD_DIRECT, 1e-4), wfmm_flow_options::default()).unwrap();
        let (mine, _) = part(&c, SPLITS[2].1, rank, 3);
        let (n, x, a) = (mine.position.len(), flat(&mine.position), flat(&mine.strength));
        let (position, strength) = (Array::Host(&x[..]), Array::Host(&a[..]));
        flow.put_particles(Some(Particles { n, position, strength, core: None }), true).unwrap();
        let differs =
            |e: Error, text: &str| assert!(e.status == WFMM_ERR_VALUE && e.message.starts_with(text), "{e:?}");

        let mut values = vec![0.0; 3 * n];
        let quantity = if rank == 1 { Quantity::Position } else { Quantity::Velocity };
        let e = flow.get::<f64>(ElementKind::Particles, quantity, ArrayMut::Host(&mut values), None).unwrap_err();
        differs(e, "rank 1: quantity = 0, but 3 on rank 0");
        let e = flow.get_selected::<f64>(ElementKind::Particles, quantity, &[], ArrayMut::Host(&mut [])).unwrap_err();
        differs(e, "rank 1: quantity = 0, but 3 on rank 0");
        let kind = if rank == 2 { ElementKind::Dust } else { ElementKind::Tracers };
        let e = flow.get::<f64>(kind, Quantity::Velocity, ArrayMut::Host(&mut []), None).unwrap_err();
        differs(e, "rank 2: kind = 4, but 3 on rank 0");
        flow.get::<f64>(ElementKind::Particles, Quantity::Velocity, ArrayMut::Host(&mut values), None).unwrap();

        let camera = |c: wfmm_camera| Camera::checked(&c, 20, 10).unwrap();
        let color = if rank == 2 { WFMM_COLOR_AGE } else { 0 };
        let e = flow.picture(&camera(wfmm_camera { color, ..Default::default() })).unwrap_err();
        differs(e, "rank 2: color = 2, but 0 on rank 0");
        let target = [0.0, 0.25 * rank as f64, 0.0];
        let e = flow.picture(&camera(wfmm_camera { target, ..Default::default() })).unwrap_err();
        differs(e, "rank 1: target[1] = 0.25, but 0 on rank 0");
        flow.picture(&camera(wfmm_camera::default())).unwrap();
    });
}

#[test]
fn backends_that_differ_are_found_and_named() {
    let errors = on_all(2, |rank, end| {
        let backend = if rank == 1 { BackendKind::Cuda } else { BackendKind::Auto };
        Session::distributed(&SessionOptions { backend, ..session_options() }, end).err().unwrap()
    });
    let said = |e: &Error| e.status == WFMM_ERR_VALUE && e.message.starts_with("rank 1: backend = 2, but 0 on rank 0");
    assert!(errors.iter().all(said), "{errors:?}");
}

#[test]
fn a_rank_that_leaves_is_a_failure_of_communication_for_the_others() {
    let c = case("cube", Kind::Particles, 60, 40, 1.0);
    let left = on_all(3, |rank, end| {
        let mut plan = plan_of(end, &plan_options(WFMM_METHOD_DIRECT, 1e-4));
        let (mine, _) = part(&c, SPLITS[2].1, rank, 3);
        fill(&mut plan, &mine).unwrap();
        if rank == 1 {
            return 0;
        }
        field_of(&mut plan, Field::Velocity { gradient: false }, mine.targets.len()).unwrap_err().status
    });
    assert_eq!(left, [WFMM_ERR_COMMUNICATION, 0, WFMM_ERR_COMMUNICATION]);
}

/// Some rank fails in some of a thousand random sequences of calls: all ranks see the same statuses.
#[test]
fn random_sequences_with_one_rank_misbehaving_never_hang() {
    let c = case("cube", Kind::Particles, 30, 20, 1.0);
    let statuses = on_all(3, |rank, end| {
        let session = Session::distributed(&session_options(), end).unwrap();
        let mut seen = vec![];
        let mut state = 1u64;
        let mut draw = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        for _ in 0..1000 {
            let o = PlanOptions::checked(&plan_options(WFMM_METHOD_DIRECT, 1e-4)).unwrap();
            let mut plan = Plan::create(session.clone(), o).unwrap();
            let (mine, _) = part(&c, SPLITS[2].1, rank, 3);
            for _ in 0..4 {
                let (call, bad) = (draw(5), draw(6) as usize == rank);
                let result = match call {
                    0 => fill(&mut plan, &mine),
                    1 => {
                        let mut x = flat(&mine.targets);
                        if bad {
                            x[0] = f64::INFINITY;
                        }
                        plan.set_targets(Some((mine.targets.len(), Array::Host(&x[..]))))
                    }
                    2 => {
                        let mut core = mine.particle_core.clone();
                        if bad {
                            core[1] = -1.0;
                        }
                        let (x, a) = (flat(&mine.position), flat(&mine.strength));
                        let (position, strength) = (Array::Host(&x[..]), Array::Host(&a[..]));
                        let n = mine.position.len();
                        plan.set_particles(Some(Particles { n, position, strength, core: Some(Array::Host(&core)) }))
                    }
                    3 => plan.check(5, 1 + u64::from(bad)).map(|_| ()),
                    _ => {
                        let m = plan.counts().targets;
                        field_of(&mut plan, Field::Velocity { gradient: bad }, m).map(|_| ())
                    }
                };
                seen.push(result.err().map_or(0, |e| e.status));
            }
        }
        seen
    });
    assert_eq!(statuses[0], statuses[1]);
    assert_eq!(statuses[0], statuses[2]);
    let of = |status: i32| statuses[0].iter().filter(|&&s| s == status).count();
    let counts = [0, WFMM_ERR_NOT_FINITE, WFMM_ERR_VALUE, WFMM_ERR_STATE].map(of);
    assert!(counts.iter().all(|&n| n > 50), "{counts:?}");
}

/// A communicator whose function number `at` on this rank does what it is to do, loses what came and says that it has failed.
struct Failing {
    inner: Arc<threads::ThreadExchange>,
    at: usize,
    calls: AtomicUsize,
}

impl Failing {
    fn fails(&self) -> bool {
        self.calls.fetch_add(1, Ordering::SeqCst) + 1 == self.at
    }

    fn numbers<T: Default + Copy>(&self, values: &mut [T], code: i32) -> i32 {
        if !self.fails() {
            return code;
        }
        values.fill(T::default());
        7
    }
}

impl Exchange for Failing {
    fn rank(&self) -> usize {
        self.inner.rank()
    }
    fn size(&self) -> usize {
        self.inner.size()
    }
    fn node_rank(&self) -> usize {
        self.inner.node_rank()
    }
    fn allreduce_f64(&self, values: &mut [f64], reduction: Reduction) -> i32 {
        let code = self.inner.allreduce_f64(values, reduction);
        self.numbers(values, code)
    }
    fn allreduce_i64(&self, values: &mut [i64], reduction: Reduction) -> i32 {
        let code = self.inner.allreduce_i64(values, reduction);
        self.numbers(values, code)
    }
    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> i32 {
        let code = self.inner.allgather(mine, all);
        self.numbers(all, code)
    }
    fn alltoallv(&self, send: &[u8], sent: Shares<'_>, receive: &mut [u8], received: Shares<'_>) -> i32 {
        let code = self.inner.alltoallv(send, sent, receive, received);
        self.numbers(receive, code)
    }
    fn barrier(&self) -> i32 {
        let code = self.inner.barrier();
        self.numbers::<u8>(&mut [], code)
    }
}

/// Statuses of a session, a plan and a flow on one rank, up to where one of them cannot be made; and calls of its communicator.
fn statuses(rank: usize, exchange: Arc<Failing>) -> (Vec<i32>, usize) {
    let mut seen = vec![];
    let calls = exchange.clone();
    let mut note = |result: Result<()>| {
        let status = result.err().map_or(0, |e| e.status);
        seen.push(status);
        status == 0
    };
    let c = case("cube", Kind::Particles, 90, 60, 1.0);
    let (mine, numbers) = part(&c, SPLITS[2].1, rank, 3);
    let session = Session::distributed(&session_options(), Communicator::new(exchange));
    if let Ok(session) = &session {
        let o = plan_options(WFMM_METHOD_FMM, 1e-3);
        let plan = Plan::create(session.clone(), PlanOptions::checked(&o).unwrap());
        if let Ok(mut plan) = plan {
            if !note(fill(&mut plan, &mine)) {
                // Sets after the one that failed were not called.
                note(fill(&mut plan, &mine));
            }
            note(field_of(&mut plan, Field::Velocity { gradient: false }, numbers.len()).map(|_| ()));
            note(plan.check(10, 1).map(|_| ()));
        } else {
            note(plan.map(|_| ()));
        }
        let flow =
            Flow::new(session.clone(), o, wfmm_flow_options { integrator: WFMM_INTEGRATOR_AB2, ..Default::default() });
        if let Ok(mut flow) = flow {
            let (x, a) = (flat(&mine.position), flat(&mine.strength));
            let (position, strength) = (Array::Host(&x[..]), Array::Host(&a[..]));
            let n = mine.position.len();
            note(flow.put_particles(Some(Particles { n, position, strength, core: None }), true));
            note(flow.advance(1e-6, 2));
            note(flow.diagnostics().map(|_| ()));
        } else {
            note(flow.map(|_| ()));
        }
        // What failed in the last agreement of a call is known to all in the next one.
        note(Plan::create(session.clone(), PlanOptions::checked(&o).unwrap()).map(|_| ()));
    } else {
        note(session.map(|_| ()));
    }
    (seen, calls.calls.load(Ordering::SeqCst))
}

/// Each call of the communicator fails once on one rank: the status is COMMUNICATION on all, in the same call of the library.
#[test]
fn a_function_of_the_communicator_that_fails_on_one_rank_is_the_same_status_on_all() {
    let run = |victim: usize, at: usize| {
        let group: Vec<_> = threads::group(3);
        let ends: Vec<Arc<Failing>> = (group.into_iter().enumerate())
            .map(|(rank, inner)| {
                Arc::new(Failing { inner, at: if rank == victim { at } else { 0 }, calls: AtomicUsize::new(0) })
            })
            .collect();
        on_threads(3, |rank| statuses(rank, ends[rank].clone()))
    };
    let calls = run(0, 0)[0].1;
    let mut failed = 0;
    let stride = (calls / 150).max(1);
    for at in (1..=calls).step_by(stride) {
        let all = run(at / stride % 3, at);
        assert!(
            all.iter().all(|s| s.0 == all[0].0),
            "call {at} of {calls} fails: {:?}",
            all.iter().map(|s| &s.0).collect::<Vec<_>>()
        );
        assert!(all[0].0.iter().all(|s| [0, WFMM_ERR_COMMUNICATION].contains(s)), "{:?}", all[0].0);
        failed += usize::from(all[0].0.contains(&WFMM_ERR_COMMUNICATION));
    }
    println!("{calls} calls of the communicator, one in {stride} failed; {failed} runs had a failure");
    assert!(failed + 1 >= calls.div_ceil(stride), "each failure is told: {failed}");
}
