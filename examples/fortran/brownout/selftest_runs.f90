!> Checks of short runs: the landing lands, long segments are split, and a run that was cut and restarted is the uncut one.
module selftest_runs
  use kinds, only: wp
  use checks, only: expect
  use options, only: run_options, default_names, check_options
  use simulation, only: simulation_t
  use frames, only: frames_t
  use checkpoint, only: save_checkpoint, load_checkpoint
  use wake, only: core_radius_at, tip
  implicit none (type, external)
  private
  public :: check_runs

contains

  subroutine check_runs(failures)
    integer, intent(inout) :: failures

    call check_landing(failures)
    call check_split(failures)
    call check_restart(failures)
  end subroutine check_runs

  !> What --case landing does by itself, with few blades, segments and parcels.
  subroutine check_landing(failures)
    integer, intent(inout) :: failures
    type(run_options) :: run
    type(simulation_t) :: sim
    real(wp) :: hub(3), before(3), descent, stays
    integer :: k

    call small_run(run, 'landing')
    run%split = 0
    run%wake_turns = 4
    call sim%create(run)
    before = sim%rotor%hub(0.0_wp)
    hub = before
    call expect(failures, 'the approach begins high', before(3)/sim%rotor%radius - 2.2_wp, 1.0e-12_wp)
    stays = 0
    descent = 0
    do k = 1, run%steps
      call sim%step()
      hub = sim%rotor%hub(sim%time)
      if (hub(3) > before(3)) descent = huge(descent)
      if (sim%rotor%flight_path(sim%time) == 'approach') descent = (before(3) - hub(3))/sim%dt
      if (sim%rotor%flight_path(sim%time) == 'on the ground') stays = stays + sim%dt
      before = hub
    end do
    call expect(failures, 'height at the end of the landing, R', hub(3)/sim%rotor%radius - 0.55_wp, 1.0e-12_wp)
    call expect(failures, 'distance from the landing point, m', norm2(hub(1:2)), 0.0_wp)
    call expect(failures, 'rate of descent before touchdown, m/s', descent, 0.1_wp)
    call expect(failures, 'seconds on the ground', stays - (sim%time - sim%rotor%approach_time), sim%dt)
    call expect(failures, 'too short on the ground', max(0.0_wp, 0.5_wp - stays), 0.0_wp)
    call expect(failures, 'the blades are where the hub is, m', &
                maxval(abs(sim%wake%node(3, tip, :) - hub(3))), 1.0e-12_wp)
    call expect(failures, 'wake below the ground, m', -min(0.0_wp, minval(sim%wake%node(3, tip, :))), 0.0_wp)
    call sim%finish()
  end subroutine check_landing

  !> With the smallest limit chains have more nodes than were shed, none of their segments is too long after a step, and ages
  !> rise along them. Cores of stretched segments are thinner than those that only grow.
  subroutine check_split(failures)
    integer, intent(inout) :: failures
    type(run_options) :: run
    type(simulation_t) :: sim
    real(wp) :: longest, disorder, thinner
    integer :: k, b

    call small_run(run, 'hover')
    run%split = 1.0_wp
    call sim%create(run)
    do k = 1, 48
      call sim%step()
    end do
    longest = 0
    disorder = 0
    thinner = 0
    do b = 1, sim%wake%blades
      do k = tip + 1, sim%wake%nodes(b) - 1
        associate (w => sim%wake)
          longest = max(longest, norm2(w%node(:, k + 1, b) - w%node(:, k, b)))
          if (w%node_age(k + 1, b) <= w%node_age(k, b)) disorder = disorder + 1
          if (w%core(k, b) < core_radius_at(0.5_wp*(w%node_age(k, b) + w%node_age(k + 1, b)), &
                                            w%circulation, w%squire)) &
            thinner = thinner + 1
        end associate
      end do
    end do
    call expect(failures, 'segments that were split', merge(0.0_wp, 1.0_wp, all(sim%wake%nodes > 48 + tip)), 0.0_wp)
    call expect(failures, 'longest free segment, limits', longest/(8*atan(1.0_wp)*sim%rotor%radius/run%segments_per_turn), &
                1.0_wp)
    call expect(failures, 'nodes older than the next one', disorder, 0.0_wp)
    call expect(failures, 'no core is strained', merge(0.0_wp, 1.0_wp, thinner > 0), 0.0_wp)
    call sim%finish()
  end subroutine check_split

  subroutine check_restart(failures)
    integer, intent(inout) :: failures
    character(*), parameter :: path = 'brownout-selftest.npz'
    integer, parameter :: cut = 21, steps = 40
    type(run_options) :: run
    type(simulation_t) :: whole, first, second
    type(frames_t) :: frames, kept
    integer :: k

    call small_run(run, 'hover')
    run%reproducible = .true.
    call whole%create(run)
    call first%create(run)
    do k = 1, steps
      call whole%step()
      if (k <= cut) call first%step()
    end do
    frames%interval = 7
    frames%time = [1.25_wp, 2.5_wp, 3.75_wp]
    call save_checkpoint(path, run, first, frames)
    call first%finish()
    run%restart = path
    call second%create(run)
    call load_checkpoint(path, run, second, kept)
    do k = cut + 1, steps
      call second%step()
    end do
    call kept%plan(run)
    call expect(failures, 'restart: interval of the snapshots', real(kept%interval - 7, wp), 0.0_wp)
    call expect(failures, 'restart: their times', sum(abs(kept%time - frames%time)), 0.0_wp)
    call expect(failures, 'restart: steps', real(second%steps - whole%steps, wp), 0.0_wp)
    call expect(failures, 'restart: parcels in another state', &
                real(count(second%dust%airborne .neqv. whole%dust%airborne), wp), 0.0_wp)
    call expect(failures, 'restart: no parcel flies', merge(0.0_wp, 1.0_wp, any(whole%dust%airborne)), 0.0_wp)
    call expect(failures, 'restart: bits of wake and dust', real(differing(second, whole), wp), 0.0_wp)
    call expect(failures, 'restart: optical depth', second%sight%optical_depth - whole%sight%optical_depth, 0.0_wp)
    call second%finish()
    call whole%finish()
    call delete(path)
    call delete(path//'.host')
  end subroutine check_restart

  !> Numbers of which a bit differs.
  integer function differing(a, b)
    type(simulation_t), intent(in) :: a, b

    differing = count(a%wake%nodes /= b%wake%nodes) + unequal([a%wake%node], [b%wake%node]) &
                + unequal([a%wake%core], [b%wake%core]) + unequal([a%wake%node_age], [b%wake%node_age]) &
                + unequal([a%dust%position], [b%dust%position]) + unequal([a%dust%velocity], [b%dust%velocity]) &
                + unequal([a%dust%exposure], [b%dust%exposure])
  end function differing

  integer function unequal(a, b)
    real(wp), intent(in) :: a(:), b(:)

    unequal = count(.not. abs(a - b) <= 0)
  end function unequal

  subroutine small_run(run, flight)
    type(run_options), intent(out) :: run
    character(*), intent(in) :: flight
    character(:), allocatable :: problem

    call default_names(run)
    run%flight = flight
    run%output = '.'
    run%blades = 2
    run%segments_per_turn = 12
    run%particles = 2000
    problem = ''
    call check_options(run, problem)
    if (problem /= '') error stop 'brownout: options of a self-test'
  end subroutine small_run

  subroutine delete(path)
    character(*), intent(in) :: path
    integer :: unit

    open (newunit=unit, file=path, status='old')
    close (unit, status='delete')
  end subroutine delete
end module selftest_runs
