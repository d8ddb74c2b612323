!> Point numbers of 64 bits do what those of 32 do, in every call that takes them. Compiled twice, with default integers of 32 and
!> of 64 bits: `ends` is a default integer, and so are all counts.
program integers
  use, intrinsic :: iso_c_binding
  use wakefmm
  use checks
  implicit none

  integer, parameter :: dp = c_double, sp = c_float, N = 40
  integer(c_int64_t), parameter :: FAR = 4000000000_c_int64_t
  integer :: ends(2, N), i
  integer(c_int32_t) :: short(3, N)
  integer(c_int64_t) :: long(3, N)
  real(dp) :: points(3, N + 1), gammas(N), cores(N), x(3, 5), wanted(3, 5)

  do i = 1, N + 1
    points(:, i) = [cos(0.3_dp*i), sin(0.3_dp*i), 0.1_dp*i]
  end do
  gammas = 1
  cores = 0.1_dp
  do i = 1, 5
    x(:, i) = [0.2_dp*i, 0.1_dp, 0.5_dp*i]
  end do
  ! The third row belongs to the caller: nobody reads it.
  do i = 1, N
    ends(:, i) = [i, i + 1]
    short(:, i) = int([i, i + 1, -1], c_int32_t)
    long(:, i) = [int(i, c_int64_t), int(i + 1, c_int64_t), FAR]
  end do
  call wfmm_induce_segments(points, short, gammas, x, wanted, core_radius=cores)
  call check(all(sqrt(sum(wanted**2, 1)) > 0.01_dp), 'a velocity at every target')
  call plans_take_either_kind()
  call single_precision_takes_either_kind()
  call flows_take_either_kind()
  call what_is_no_point_is_named()
  call finish('integers')

contains

  subroutine plans_take_either_kind()
    type(wfmm_plan) :: plan
    real(dp) :: u(3, 5)
    integer(c_int64_t) :: longer(3, N + 2)

    call wfmm_plan_create(plan)
    call wfmm_plan_set_targets(plan, x)
    call wfmm_plan_set_segments(plan, points, long, gammas, core_radius=cores)
    call same(plan, 'long')
    call wfmm_plan_set_segments(plan, points, ends, gammas, core_radius=cores)
    call same(plan, 'default')
    ! What lies behind the live count is not read.
    longer = FAR
    longer(:, :N) = long
    call wfmm_plan_set_segments(plan, points, longer, [gammas, 0._dp, 0._dp], core_radius=[cores, 0._dp, 0._dp], n=N)
    call same(plan, 'longer')
    call wfmm_plan_set_segments(plan, points, longer(:, :N:1), gammas, core_radius=cores, n_points=N + 1)
    call same(plan, 'section')
    call wfmm_plan_destroy(plan)
    call wfmm_induce_segments(points, long, gammas, x, u, core_radius=cores)
    call check(all(abs(u - wanted) <= 0), 'one call, long')
    call wfmm_induce_segments(points, ends, gammas, x, u, core_radius=cores, n_targets=5)
    call check(all(abs(u - wanted) <= 0), 'one call, default')
  end subroutine

  subroutine same(plan, what)
    type(wfmm_plan), intent(in) :: plan
    character(len=*), intent(in) :: what
    real(dp) :: u(3, 5)

    u = 0
    call wfmm_plan_evaluate(plan, u)
    call check(all(abs(u - wanted) <= 0), 'plan, '//what)
  end subroutine

  subroutine single_precision_takes_either_kind()
    real(sp) :: u(3, 5), v(3, 5)

    call wfmm_induce_segments(real(points, sp), short, real(gammas, sp), real(x, sp), u, core_radius=real(cores, sp))
    call wfmm_induce_segments(real(points, sp), long, real(gammas, sp), real(x, sp), v, core_radius=real(cores, sp))
    call check(all(abs(u - v) <= 0) .and. all(abs(u - wanted) < 1e-4_dp), 'single')
  end subroutine

  subroutine flows_take_either_kind()
    type(wfmm_flow) :: first, second
    real(dp) :: u(3, 5), v(3, 5)
    integer(c_int64_t) :: got_long(2, 2*N + 1)
    integer(c_int32_t) :: got_short(2, 2*N)
    integer :: ierr

    call wfmm_flow_create(first)
    call wfmm_flow_create(second)
    call wfmm_flow_set_filaments(first, points, short, gammas, core_radius=cores)
    call wfmm_flow_set_filaments(second, points, long, gammas, core_radius=cores)
    call wfmm_flow_add_filaments(first, points + 3, short, gammas, core_radius=cores)
    call wfmm_flow_add_filaments(second, points + 3, long, gammas, core_radius=cores)
    call wfmm_flow_set_bound_segments(first, points - 3, short, gammas, core_radius=cores)
    call wfmm_flow_set_bound_segments(second, points - 3, ends, gammas, core_radius=cores)
    call wfmm_flow_velocity(first, x, u)
    call wfmm_flow_velocity(second, x, v)
    call check(all(abs(u - v) <= 0) .and. any(abs(u) > 0.01_dp), 'flows')
    ! Returned in either kind; columns beyond the segments are not written.
    got_long = FAR
    call wfmm_flow_get_connectivity(second, WFMM_KIND_FILAMENTS, got_long)
    call wfmm_flow_get_connectivity(first, WFMM_KIND_FILAMENTS, got_short)
    call check(all(got_long(:, :2*N) == got_short) .and. all(got_long(:, 2*N + 1) == FAR), 'connectivity of a flow')
    call check(all(got_long(:, :N) == long(:2, :)), 'connectivity as it was set')
    call wfmm_flow_get_connectivity(second, WFMM_KIND_FILAMENTS, got_long, memory=WFMM_MEMORY_DEVICE, ierr=ierr)
    call expect(ierr, WFMM_ERR_MEMORY, '64-bit')
    call wfmm_flow_get_connectivity(second, WFMM_KIND_FILAMENTS, got_long, capacity=1, ierr=ierr)
    call expect(ierr, WFMM_ERR_COUNT, 'capacity = 1')
    call wfmm_flow_destroy(first)
    call wfmm_flow_destroy(second)
  end subroutine

  subroutine what_is_no_point_is_named()
    type(wfmm_plan) :: plan
    integer :: ierr

    call wfmm_plan_create(plan)
    long(1, 3) = N + 2
    call wfmm_plan_set_segments(plan, points, long, gammas, ierr=ierr)
    call expect(ierr, WFMM_ERR_INDEX, 'connectivity[2][0] = 42')
    long(1, 3) = 4294967297_c_int64_t
    call wfmm_plan_set_segments(plan, points, long, gammas, ierr=ierr)
    call expect(ierr, WFMM_ERR_INDEX, 'connectivity(:,3) = 4294967297,4')
    long(1, 3) = -huge(FAR) - 1
    call wfmm_plan_set_segments(plan, points, long, gammas, ierr=ierr)
    call expect(ierr, WFMM_ERR_INDEX, 'connectivity(:,3) = -9223372036854775808,4')
    long(1, 3) = 3
    call wfmm_plan_set_segments(plan, points, long, gammas, memory=WFMM_MEMORY_DEVICE, ierr=ierr)
    call expect(ierr, WFMM_ERR_MEMORY, '64-bit')
    call wfmm_plan_set_segments(plan, points, long(:1, :), gammas, ierr=ierr)
    call expect(ierr, WFMM_ERR_VALUE, 'ld = 1')
    call wfmm_plan_set_segments(plan, points, long, gammas, n=N + 1, ierr=ierr)
    call expect(ierr, WFMM_ERR_SHAPE, 'connectivity')
    call wfmm_plan_set_segments(plan, points, long, gammas, n=-1, ierr=ierr)
    call expect(ierr, WFMM_ERR_COUNT, 'n = -1')
    call wfmm_plan_destroy(plan)
  end subroutine

end program integers
