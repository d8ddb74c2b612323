!> Two ways to compare the methods: one evaluation of a fixed case (`--bench`), and whole runs (`--compare`).
module bench
  use, intrinsic :: iso_fortran_env, only: output_unit
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

  !> One evaluation by each method. The library's are timed from their second call on, with all positions new, so that
  !> trees are rebuilt but memory is warm; the first call is told too. The loop keeps nothing between calls.
  subroutine run_bench(run)
    type(run_options), intent(in) :: run
    type(segment_set) :: set
    type(induction_t) :: induction
    real(wp), allocatable :: target(:, :), velocity(:, :, :), times(:)
    real(wp) :: first, again(3), pairs
    integer :: m, k, last

    call make_segments(run%segments, run%segments_per_turn, set)
    call make_targets(run%particles, target)
    pairs = real(set%n, wp)*run%particles
    last = merge(3, 2, run%loop)
    allocate (velocity(3, run%particles, last), times(run%repeats))
    print '(i0,a,i0,a,es8.1,3a)', set%n, ' segments (half of them images) on ', run%particles, ' particles, tolerance ', &
      run%tolerance, ', ', run%precision, ' precision'
    do m = 1, last
      call induction%create(trim(methods(m)), run%precision, run%tolerance, run%threads, run%reproducible)
      first = 0
      if (methods(m) /= 'loop') first = evaluation_seconds(set, target + 1.0e-3_wp*run%repeats)
      ! The last of them at `target` itself, where the methods are compared.
      do k = 1, run%repeats
        times(k) = evaluation_seconds(set, target + 1.0e-3_wp*(run%repeats - k))
      end do
      call sort(times)
      again(m) = times((run%repeats + 1)/2)
      print '(a6,a,f9.3,a,f9.3,a,es9.2,a,f7.1,a,es9.2)', methods(m), ':  first', first, ' s,  then', again(m), ' s, ', &
        pairs/again(m), ' pairs/s,  direct/this', again(1)/again(m), ',  difference from direct', &
        relative_difference(velocity(:, :, m), velocity(:, :, 1))
      if (run%repeats > 1) print '(8x,a,i0,a,f0.4,a,f0.4,a)', 'median of ', run%repeats, ' (', times(1), ' to ', &
        times(run%repeats), ' s)'
      flush (output_unit)
      call induction%finish()
    end do
    if (run%loop) print '(a,f0.1,a,f0.1)', 'ratio of times: loop/fmm ', again(3)/again(2), ', loop/direct ', again(3)/again(1)

  contains

    real(wp) function evaluation_seconds(set, target)
      type(segment_set), intent(in) :: set
      real(wp), intent(in), contiguous :: target(:, :)

      evaluation_seconds = wall_clock()
      call induction%evaluate(set, target, velocity(:, :, m))
      evaluation_seconds = wall_clock() - evaluation_seconds
    end function evaluation_seconds
  end subroutine run_bench

  subroutine sort(x)
    real(wp), intent(inout) :: x(:)
    real(wp) :: least
    integer :: i, at

    do i = 1, size(x) - 1
      at = i - 1 + minloc(x(i:), dim=1)
      least = x(at)
      x(at) = x(i)
      x(i) = least
    end do
  end subroutine sort

  !> Relative L2 difference over all targets.
  real(wp) function relative_difference(a, b)
    real(wp), intent(in) :: a(:, :), b(:, :)

    relative_difference = sqrt(sum((a - b)**2)/sum(b**2))
  end function relative_difference

  !> The same case by each method from the same seed, in lockstep: how far apart are wake and cloud? Told four times,
  !> because a free wake is chaotic: whatever the difference of two methods, even of round-off, it grows with time.
  subroutine run_compare(run)
    type(run_options), intent(in) :: run
    type(run_options) :: each
    type(simulation_t) :: sim(3)
    type(progress_t) :: progress
    integer :: k, m, quarter

    each = run
    each%squire = 2.0e-4_wp                            ! cores of docs/performance.md
    do m = 1, 3
      each%method = trim(methods(m))
      call sim(m)%create(each)
    end do
    call progress%start(run%steps)
    quarter = max(1, run%steps/4)
    do k = 1, run%steps
      do m = 1, 3
        call sim(m)%step()
      end do
      call progress%tell(k, 'all methods')
      if (mod(k, quarter) == 0) call tell_clouds(sim, k)
    end do
    do m = 1, 3
      print '(a6,a,f0.2,a,f0.2)', methods(m), ': ', sim(m)%induction%seconds, ' s in induced velocities, loop/this ', &
        sim(3)%induction%seconds/sim(m)%induction%seconds
      call sim(m)%finish()
    end do
  end subroutine run_compare

  subroutine tell_clouds(sim, step)
    type(simulation_t), intent(in) :: sim(:)
    integer, intent(in) :: step
    real(wp) :: apart, radius
    integer :: m, i, n, both

    radius = sim(1)%rotor%radius
    n = sim(1)%wake%nodes(1)
    print '(/,a,i0,a,i0,a,f0.3,a)', 'step ', step, ': direct has ', count(sim(1)%dust%airborne), ' parcels up, at ', &
      mean_height(sim(1))/radius, ' R on the mean'
    do m = 2, 3
      apart = 0
      both = 0
      do i = 1, sim(m)%dust%n
        if (.not. (sim(m)%dust%airborne(i) .and. sim(1)%dust%airborne(i))) cycle
        both = both + 1
        apart = apart + sum((sim(m)%dust%position(:, i) - sim(1)%dust%position(:, i))**2)
      end do
      print '(2a,es8.1,a,i0,a,es8.1,a,es8.1,a)', methods(m), ' - direct: rms distance of the same parcel ', &
        sqrt(apart/max(both, 1))/radius, ' R, ', count(sim(m)%dust%airborne .neqv. sim(1)%dust%airborne), &
        ' in another state, of wake nodes ', &
        sqrt(sum((sim(m)%wake%node(:, :n, :) - sim(1)%wake%node(:, :n, :))**2)/(n*sim(m)%wake%blades))/radius, &
        ' R; mean height ', (mean_height(sim(m)) - mean_height(sim(1)))/radius, ' R'
    end do
  end subroutine tell_clouds

  real(wp) function mean_height(sim)
    type(simulation_t), intent(in) :: sim

    mean_height = sum(sim%dust%position(3, :), mask=sim%dust%airborne)/max(count(sim%dust%airborne), 1)
  end function mean_height
end module bench
