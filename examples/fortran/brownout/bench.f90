!> Two ways to compare the methods: one evaluation of a fixed case (`--bench`), and whole runs (`--compare`).
module bench
  use kinds, only: wp
  use options, only: run_options
  use segments, only: segment_set
  use helix_case, only: make_segments, make_targets
  use induced_velocity, only: induction_t
  use simulation, only: simulation_t
  use progress, only: wall_clock, progress_t
  implicit none (type, external)
  private
  public :: run_bench, run_compare

  character(6), parameter :: methods(3) = [character(6) :: 'direct', 'fmm', 'loop']

contains

  !> One evaluation by each method. The library's are timed on their second call, with all positions new, so that
  !> trees are rebuilt but memory is warm; the first call is told too. The loop keeps nothing between calls.
  subroutine run_bench(run)
    type(run_options), intent(in) :: run
    type(segment_set) :: set
    type(induction_t) :: induction
    real(wp), allocatable :: target(:, :), velocity(:, :, :)
    real(wp) :: first, again(3), pairs
    integer :: m

    call make_segments(run%segments, run%segments_per_turn, set)
    call make_targets(run%particles, target)
    pairs = real(set%n, wp)*run%particles
    allocate (velocity(3, run%particles, 3))
    print '(i0,a,i0,a,es8.1,3a)', set%n, ' segments (half of them images) on ', run%particles, ' particles, tolerance ', &
      run%tolerance, ', ', run%precision, ' precision'
    do m = 1, 3
      call induction%create(trim(methods(m)), run%precision, run%tolerance, run%threads)
      first = 0
      if (methods(m) /= 'loop') first = evaluation_seconds(set, target + 1.0e-3_wp)
      again(m) = evaluation_seconds(set, target)
      print '(a6,a,f9.3,a,f9.3,a,es9.2,a,f7.1,a,es9.2)', methods(m), ':  first', first, ' s,  then', again(m), ' s, ', &
        pairs/again(m), ' pairs/s,  direct/this', again(1)/again(m), ',  difference from direct', &
        relative_difference(velocity(:, :, m), velocity(:, :, 1))
      call induction%finish()
    end do
    print '(a,f0.1,a,f0.1)', 'ratio of times: loop/fmm ', again(3)/again(2), ', loop/direct ', again(3)/again(1)

  contains

    real(wp) function evaluation_seconds(set, target)
      type(segment_set), intent(in) :: set
      real(wp), intent(in) :: target(:, :)

      evaluation_seconds = wall_clock()
      call induction%evaluate(set, target, velocity(:, :, m))
      evaluation_seconds = wall_clock() - evaluation_seconds
    end function evaluation_seconds
  end subroutine run_bench

  !> Relative L2 difference over all targets.
  real(wp) function relative_difference(a, b)
    real(wp), intent(in) :: a(:, :), b(:, :)

    relative_difference = sqrt(sum((a - b)**2)/sum(b**2))
  end function relative_difference

  !> The same case by each method from the same seed; how far apart do wake and cloud end?
  subroutine run_compare(run)
    type(run_options), intent(in) :: run
    type(run_options) :: each
    type(simulation_t) :: reference, sim
    integer :: m

    each = run
    each%method = 'direct'
    call run_through(reference, each)
    call tell_cloud(reference, reference)
    do m = 2, 3
      each%method = trim(methods(m))
      call run_through(sim, each)
      call tell_cloud(sim, reference)
    end do
  end subroutine run_compare

  subroutine run_through(sim, run)
    type(simulation_t), intent(out) :: sim
    type(run_options), intent(in) :: run
    type(progress_t) :: progress
    integer :: k

    call sim%create(run)
    call progress%start(run%steps)
    do k = 1, run%steps
      call sim%step()
      call progress%tell(k, run%method)
    end do
    call sim%finish()
  end subroutine run_through

  subroutine tell_cloud(sim, reference)
    type(simulation_t), intent(in) :: sim, reference
    logical, allocatable :: both(:)
    real(wp), allocatable :: apart(:)
    real(wp) :: radius
    integer :: i, n

    radius = sim%rotor%radius
    n = sim%wake%nodes
    allocate (both, source=sim%dust%airborne .and. reference%dust%airborne)
    allocate (apart(sim%dust%n))
    do i = 1, sim%dust%n
      apart(i) = norm2(sim%dust%position(:, i) - reference%dust%position(:, i))/radius
    end do
    print '(2a,f0.2,a,f0.1)', sim%induction%method, ': ', sim%induction%seconds, ' s in induced velocities, direct/this ', &
      reference%induction%seconds/sim%induction%seconds
    print '(a,i0,a,i0)', '  parcels up: ', count(sim%dust%airborne), ', in another state than with direct: ', &
      count(sim%dust%airborne .neqv. reference%dust%airborne)
    print '(a,es9.2,a,es9.2,a)', '  distance from the same parcel with direct: rms ', &
      sqrt(sum(apart**2, mask=both)/max(count(both), 1)), ' R, largest ', maxval(apart, mask=both), ' R'
    print '(a,es9.2,a)', '  distance of wake nodes: rms ', &
      sqrt(sum((sim%wake%node(:, :n, :) - reference%wake%node(:, :n, :))**2)/(n*sim%wake%blades))/radius, ' R'
    print '(a,es9.2,a,f0.3,a)', '  mean height of the cloud differs by ', &
      abs(mean_height(sim) - mean_height(reference))/radius, ' R of ', mean_height(reference)/radius, ' R'
  end subroutine tell_cloud

  real(wp) function mean_height(sim)
    type(simulation_t), intent(in) :: sim

    mean_height = sum(sim%dust%position(3, :), mask=sim%dust%airborne)/max(count(sim%dust%airborne), 1)
  end function mean_height
end module bench
