!> The drop-in routines against the plain loop: every regularization, sentinels in the tails, a part of the points, sums that
!> are added.   check            all of it, small        check SEGMENTS POINTS   seconds of both and their ratio
program check
  use drop_in
  use plain_loop
  use wakefmm, only: wfmm_plan
  implicit none
  character(32) :: argument(2)
  integer :: failures, n, m

  failures = 0
  if (command_argument_count() == 2) then
    call get_command_argument(1, argument(1))
    call get_command_argument(2, argument(2))
    read (argument, *) n, m
    call race(n, m)
  else
    call segments(900, 300, 31)
    call particles(700, 250, 13)
    if (failures > 0) error stop 1
    print '(a,i0,a)', 'drop-in, ReKi = ', ReKi, ': five regularizations of segments, three of particles: right'
  end if

contains

  !> A helix of n segments with cores that differ, m points around it; behind both a tail that must not be read.
  subroutine wake(n, m, tail, x, ends, gamma, core, cp)
    integer, intent(in) :: n, m, tail
    real(ReKi), allocatable, intent(out) :: x(:,:), gamma(:), core(:), cp(:,:)
    integer, allocatable, intent(out) :: ends(:,:)
    real(ReKi) :: t, spread(3)
    integer :: i
    allocate (x(3, n + 1 + tail), gamma(n + tail), core(n + tail), cp(3, m + tail), ends(4, n + tail))
    x = ieee_nan(); gamma = ieee_nan(); core = ieee_nan(); cp = ieee_nan(); ends = -999999
    do i = 1, n + 1
      t = 60 * real(i, ReKi) / real(n, ReKi)
      x(:, i) = [cos(t), sin(t), -0.05_ReKi * t]
    end do
    do i = 1, n
      ends(:, i) = [i, i + 1, 0, -1]
      gamma(i) = 1 + 0.3_ReKi * sin(0.1_ReKi * real(i, ReKi))
      core(i) = 0.02_ReKi * (1 + 3 * real(i, ReKi) / real(n, ReKi))
    end do
    do i = 1, m
      call random_number(spread)
      cp(:, i) = [2.4_ReKi, 2.4_ReKi, 3.0_ReKi] * spread - [1.2_ReKi, 1.2_ReKi, 3.0_ReKi]
    end do
  end subroutine

  !> NaN without a trap: what a tail may hold.
  function ieee_nan() result(nan)
    use, intrinsic :: ieee_arithmetic, only: ieee_value, ieee_quiet_nan
    real(ReKi) :: nan
    nan = ieee_value(nan, ieee_quiet_nan)
  end function

  subroutine segments(n, m, tail)
    integer, intent(in) :: n, m, tail
    real(ReKi), allocatable :: x(:,:), gamma(:), core(:), cp(:,:), u(:,:), v(:,:)
    integer, allocatable :: ends(:,:)
    type(wfmm_plan) :: plan
    integer :: regularization
    call wake(n, m, tail, x, ends, gamma, core, cp)
    allocate (u(3, m + tail), v(3, m + tail))
    do regularization = 0, 4
      u = 7; v = 7
      call ui_seg(3, m - 1, cp, 2, n - 5, x, ends, gamma, regularization, core, u)
      call loop_seg(3, m - 1, cp, 2, n - 5, x, ends, gamma, regularization, core, v)
      call compare('segments', regularization, u, v)
    end do
    u = 0; v = 0
    call wake_begin(plan, x, ends, gamma, 3, core, n + 1, n)
    do regularization = 1, 2
      call wake_velocity(plan, cp, m, u)
      call loop_seg(1, m, cp, 1, n, x, ends, gamma, 3, core, v)
    end do
    call wake_end(plan)
    call compare('one wake, twice', 3, u, v)
  end subroutine

  subroutine particles(n, m, tail)
    integer, intent(in) :: n, m, tail
    real(ReKi), allocatable :: x(:,:), gamma(:), core(:), cp(:,:), alpha(:,:), u(:,:), v(:,:)
    integer, allocatable :: ends(:,:)
    integer :: regularization
    call wake(n, m, tail, x, ends, gamma, core, cp)
    allocate (alpha(3, n + tail), u(3, m + tail), v(3, m + tail))
    call random_number(alpha)
    do regularization = 0, 2
      u = -2; v = -2
      call ui_part_nograd(m, cp, n, x, alpha, regularization, core, u)
      call loop_part(m, cp, n, x, alpha, regularization, core, v)
      call compare('particles', regularization, u, v)
    end do
  end subroutine

  !> What was there (not 0) and the tail must be kept, the rest agree to the tolerance.
  subroutine compare(what, regularization, u, v)
    character(*), intent(in) :: what
    integer, intent(in) :: regularization
    real(ReKi), intent(in) :: u(:,:), v(:,:)
    real(ReKi) :: relative
    relative = norm2(u - v) / norm2(v - v(1, size(v, 2)))
    if (relative <= 2e-4_ReKi .and. u(1, size(u, 2)) >= v(1, size(v, 2)) .and. u(1, size(u, 2)) <= v(1, size(v, 2))) return
    failures = failures + 1
    print *, what, regularization, ': relative difference', relative
  end subroutine

  subroutine race(n, m)
    use, intrinsic :: iso_fortran_env, only: int64
    integer, intent(in) :: n, m
    real(ReKi), allocatable :: x(:,:), gamma(:), core(:), cp(:,:), u(:,:), v(:,:)
    integer, allocatable :: ends(:,:)
    double precision :: ours, loops
    integer(int64) :: start, finish, rate
    integer :: i
    call wake(n, m, 0, x, ends, gamma, core, cp)
    allocate (u(3, m), v(3, m))
    ours = huge(ours)
    do i = 1, 3
      u = 0
      call system_clock(start, rate)
      call ui_seg(1, m, cp, 1, n, x, ends, gamma, 3, core, u)
      call system_clock(finish)
      ours = min(ours, dble(finish - start) / dble(rate))
    end do
    v = 0
    call system_clock(start)
    call loop_seg(1, m, cp, 1, n, x, ends, gamma, 3, core, v)
    call system_clock(finish)
    loops = dble(finish - start) / dble(rate)
    print '(a,i0,2(a,i0),a,f8.3,a,f8.3,a,f6.1,a,es8.1)', 'ReKi = ', ReKi, ', ', n, ' segments, ', m, ' points: loop', loops, &
      ' s, drop-in', ours, ' s, ratio', loops / ours, ', relative L2 difference', norm2(u - v) / norm2(v)
  end subroutine
end program
