!> Every kind of bad input: its status, a message that names the offender, and a plan that is as it was before.
!> Enters: nothing. Leaves: code 0 when every call was refused as stated. Twin: tests/c/bad_input.c. What the module
!> itself prevents (NULL arrays) is tested there; what only the module can notice (shapes) is tested here.
program bad_input
  use, intrinsic :: iso_c_binding
  use, intrinsic :: ieee_arithmetic, only: ieee_value, ieee_quiet_nan, ieee_positive_inf
  use wakefmm
  use checks
  implicit none

  integer, parameter :: dp = c_double, sp = c_float
  real(dp), parameter :: POINTS(3, 3) = reshape([0._dp, 0._dp, -1._dp, 0._dp, 0._dp, 1._dp, 1._dp, 1._dp, 1._dp], [3, 3])
  real(dp), parameter :: GAMMAS(2) = [1._dp, 2._dp], CORES(2) = [0.5_dp, 0.1_dp], Q(2) = [1._dp, -1._dp]
  real(dp), parameter :: A(3, 2) = reshape([1._dp, 2._dp, 3._dp, 4._dp, 5._dp, 6._dp], [3, 2])
  real(dp), parameter :: X(3, 2) = reshape([0.05_dp, 0._dp, -0.5_dp, 2._dp, 1._dp, 0._dp], [3, 2])
  integer, parameter :: ENDS(2, 2) = reshape([1, 2, 2, 3], [2, 2]), ENDS_OF_THREE(3, 2) = reshape([1, 2, 3, 2, 3, 1], [3, 2])
  type(wfmm_plan) :: plan
  real(dp) :: before(3, 2), potential_before(2)
  integer :: ierr

  call wfmm_plan_create(plan)
  call wfmm_plan_set_segments(plan, POINTS, ENDS, GAMMAS, CORES)
  call wfmm_plan_set_particles(plan, POINTS(:, 1:2), A, CORES)
  call wfmm_plan_set_charges(plan, POINTS(:, 1:2), Q)
  call wfmm_plan_set_targets(plan, X)
  call wfmm_plan_evaluate(plan, before)
  call wfmm_plan_evaluate_potential(plan, potential_before)
  call shapes_and_counts()
  call indices()
  call numbers(ieee_value(1._dp, ieee_quiet_nan))
  call numbers(ieee_value(1._dp, ieee_positive_inf))
  call options()
  call memory()
  call too_early()
  call wfmm_plan_destroy(plan)
  call finish('bad_input')

contains

  !> The last call was refused, and the plan gives the same numbers as before.
  subroutine refused(wanted, word)
    integer, intent(in) :: wanted
    character(len=*), intent(in) :: word
    real(dp) :: u(3, 2), phi(2)

    call expect(ierr, wanted, word)
    call wfmm_plan_evaluate(plan, u)
    call wfmm_plan_evaluate_potential(plan, phi)
    call check(all(u == before) .and. all(phi == potential_before), 'the plan changed: '//word)
  end subroutine

  subroutine shapes_and_counts()
    real(dp) :: u(3, 2), g(3, 3, 1), phi(1), e
    integer, parameter :: one_column(1, 2) = 1
    integer :: status

    call wfmm_plan_set_segments(plan, POINTS, ENDS, GAMMAS, CORES, n_points=-1, ierr=ierr)
    call refused(WFMM_ERR_COUNT, 'n_points = -1')
    call wfmm_plan_set_segments(plan, POINTS, ENDS, GAMMAS, CORES, n=-2, ierr=ierr)
    call refused(WFMM_ERR_COUNT, 'n = -2')
    call wfmm_plan_set_segments(plan, POINTS, one_column, GAMMAS, CORES, ierr=ierr)
    call refused(WFMM_ERR_VALUE, 'ld = 1')
    call wfmm_plan_set_segments(plan, POINTS, ENDS, GAMMAS, CORES, n_points=4, ierr=ierr)
    call refused(WFMM_ERR_SHAPE, 'points')
    call wfmm_plan_set_segments(plan, POINTS(1:2, :), ENDS, GAMMAS, CORES, ierr=ierr)
    call refused(WFMM_ERR_SHAPE, 'points has shape (2,3)')
    call wfmm_plan_set_segments(plan, POINTS, ENDS, GAMMAS(1:1), ierr=ierr)
    call refused(WFMM_ERR_SHAPE, 'circulation')
    call wfmm_plan_set_segments(plan, POINTS, ENDS, GAMMAS, CORES(1:1), ierr=ierr)
    call refused(WFMM_ERR_SHAPE, 'core_radius')
    ! Longer than their count, which nobody gave: rows for columns, and arrays of two sets.
    call wfmm_plan_set_segments(plan, POINTS, ENDS_OF_THREE, [1._dp, 2._dp, 3._dp], ierr=ierr)
    call refused(WFMM_ERR_SHAPE, 'circulation has shape (3); (2) is needed')
    call wfmm_plan_set_segments(plan, POINTS, ENDS, [1._dp, 2._dp, 3._dp], ierr=ierr)
    call refused(WFMM_ERR_SHAPE, 'circulation has shape (3); (2) is needed')
    call wfmm_plan_set_particles(plan, POINTS(:, 1:1), A, ierr=ierr)
    call refused(WFMM_ERR_SHAPE, 'strength has shape (3,2); (3,1) is needed')
    call wfmm_plan_set_particles(plan, POINTS(:, 1:2), reshape(A, [3, 3], [0._dp]), CORES, n=2, ierr=ierr)
    call refused(WFMM_OK, '')
    call wfmm_plan_set_particles(plan, X, A(:, 1:1), ierr=ierr)
    call refused(WFMM_ERR_SHAPE, 'strength')
    call wfmm_plan_set_particles(plan, X, A, n=-1, ierr=ierr)
    call refused(WFMM_ERR_COUNT, 'n = -1')
    call wfmm_plan_set_charges(plan, X, Q(1:1), ierr=ierr)
    call refused(WFMM_ERR_SHAPE, 'charge')
    call wfmm_plan_set_charges(plan, X, Q, n=-1, ierr=ierr)
    call refused(WFMM_ERR_COUNT, 'n = -1')
    call wfmm_plan_set_targets(plan, X, n=3, ierr=ierr)
    call refused(WFMM_ERR_SHAPE, 'position')
    call wfmm_plan_set_targets(plan, X, n=-1, ierr=ierr)
    call refused(WFMM_ERR_COUNT, 'n = -1')
    call wfmm_plan_set_strengths(plan, GAMMAS(1:1), ierr=ierr)
    call refused(WFMM_ERR_COUNT, 'circulation')
    call wfmm_plan_set_strengths(plan, A(:, 1:1), ierr=ierr)
    call refused(WFMM_ERR_COUNT, 'strength')
    call wfmm_plan_set_charge(plan, Q(1:1), ierr=ierr)
    call refused(WFMM_ERR_COUNT, 'charge')
    call wfmm_plan_evaluate(plan, u(:, 1:1), ierr=ierr)
    call refused(WFMM_ERR_SHAPE, 'velocity')
    call wfmm_plan_evaluate(plan, u, g, ierr=ierr)
    call refused(WFMM_ERR_SHAPE, 'gradient')
    call wfmm_plan_evaluate_potential(plan, phi, ierr=ierr)
    call refused(WFMM_ERR_SHAPE, 'potential')
    call wfmm_plan_check(plan, 0, 1, e, ierr)
    call refused(WFMM_ERR_COUNT, 'n_samples')
    u = 3
    call wfmm_induce_segments(POINTS, ENDS, GAMMAS, X, u(:, 1:1), ierr=status)
    call expect(status, WFMM_ERR_SHAPE, 'velocity')
    call wfmm_induce_particles(X, A, X, u, n_targets=-5, ierr=status)
    call expect(status, WFMM_ERR_COUNT, 'n_targets = -5')
    call check(all(u == 3), 'nothing is written')
  end subroutine

  subroutine indices()
    call wfmm_plan_set_segments(plan, POINTS, reshape([1, 2, 2, 4], [2, 2]), GAMMAS, CORES, ierr=ierr)
    call refused(WFMM_ERR_INDEX, 'connectivity[1][1] = 4')
    call wfmm_plan_set_segments(plan, POINTS, reshape([0, 2, 2, 3], [2, 2]), GAMMAS, CORES, ierr=ierr)
    call refused(WFMM_ERR_INDEX, '1 to 3')
  end subroutine

  subroutine numbers(bad)
    real(dp), intent(in) :: bad
    real(dp) :: y(3, 2), p(3, 3), b(3, 2)

    y = X
    y(2, 2) = bad
    p = POINTS
    p(3, 3) = bad
    b = A
    b(1, 2) = bad
    call wfmm_plan_set_segments(plan, p, ENDS, GAMMAS, CORES, ierr=ierr)
    call refused(WFMM_ERR_NOT_FINITE, 'points[2][2]')
    call wfmm_plan_set_segments(plan, POINTS, ENDS, [1._dp, bad], CORES, ierr=ierr)
    call refused(WFMM_ERR_NOT_FINITE, 'circulation[1]')
    call wfmm_plan_set_segments(plan, POINTS, ENDS, GAMMAS, [1._dp, bad], ierr=ierr)
    call refused(WFMM_ERR_NOT_FINITE, 'core_radius[1]')
    call wfmm_plan_set_segments(plan, POINTS, ENDS, GAMMAS, [-1._dp, 1._dp], ierr=ierr)
    call refused(WFMM_ERR_VALUE, 'core_radius[0]')
    call wfmm_plan_set_particles(plan, y, A, ierr=ierr)
    call refused(WFMM_ERR_NOT_FINITE, 'position[1][1]')
    call wfmm_plan_set_particles(plan, X, b, ierr=ierr)
    call refused(WFMM_ERR_NOT_FINITE, 'strength[1][0]')
    call wfmm_plan_set_charges(plan, X, [bad, 1._dp], ierr=ierr)
    call refused(WFMM_ERR_NOT_FINITE, 'charge[0]')
    call wfmm_plan_set_targets(plan, y, ierr=ierr)
    call refused(WFMM_ERR_NOT_FINITE, 'position[1][1]')
    call wfmm_plan_set_targets(plan, real(y, sp), ierr=ierr)
    call refused(WFMM_ERR_NOT_FINITE, 'position[1][1]')
    call wfmm_plan_set_strengths(plan, b, ierr=ierr)
    call refused(WFMM_ERR_NOT_FINITE, 'strength[1][0]')
  end subroutine

  subroutine one_option(o, wanted, word)
    type(wfmm_plan_options), intent(in) :: o
    integer, intent(in) :: wanted
    character(len=*), intent(in) :: word
    type(wfmm_plan) :: p
    integer :: status

    call wfmm_plan_create(p, options=o, ierr=status)
    call expect(status, wanted, word)
  end subroutine

  subroutine options()
    type(wfmm_session) :: session
    type(wfmm_session_options) :: so
    integer(c_int32_t), target :: devices(2) = [0_c_int32_t, -3_c_int32_t]
    integer :: status

    call one_option(wfmm_plan_options(method=4), WFMM_ERR_CONSTANT, 'method = 4')
    call one_option(wfmm_plan_options(precision=-1), WFMM_ERR_CONSTANT, 'precision = -1')
    call one_option(wfmm_plan_options(segment_regularization=WFMM_REG_GAUSS_ERF), WFMM_ERR_CONSTANT, 'segment_reg')
    call one_option(wfmm_plan_options(particle_regularization=WFMM_REG_VATISTAS), WFMM_ERR_CONSTANT, 'particle_reg')
    call one_option(wfmm_plan_options(index_base=2), WFMM_ERR_VALUE, 'index_base = 2')
    call one_option(wfmm_plan_options(order=-1), WFMM_ERR_VALUE, 'order = -1')
    call one_option(wfmm_plan_options(leaf_capacity=-1), WFMM_ERR_VALUE, 'leaf_capacity = -1')
    call one_option(wfmm_plan_options(tolerance=0._dp), WFMM_ERR_VALUE, 'tolerance = 0')
    call one_option(wfmm_plan_options(tolerance=-1._dp), WFMM_ERR_VALUE, 'tolerance = -1')
    call one_option(wfmm_plan_options(tolerance=ieee_value(1._dp, ieee_quiet_nan)), WFMM_ERR_NOT_FINITE, 'tolerance')
    call one_option(wfmm_plan_options(tolerance=1e-17_dp), WFMM_ERR_TOLERANCE, 'double precision')
    call one_option(wfmm_plan_options(tolerance=1e-7_dp, precision=WFMM_PRECISION_F32), WFMM_ERR_TOLERANCE, 'single')
    call one_option(wfmm_plan_options(core_radius=-1._dp), WFMM_ERR_VALUE, 'core_radius = -1')
    call one_option(wfmm_plan_options(flags=1048576_c_int64_t), WFMM_ERR_CONSTANT, 'flags')
    call one_option(wfmm_plan_options(struct_size=0), WFMM_ERR_STRUCT_SIZE, 'struct_size = 0')
    so%backend = 3
    call wfmm_session_create(session, so, status)
    call expect(status, WFMM_ERR_CONSTANT, 'backend = 3')
    so%backend = WFMM_BACKEND_AUTO
    so%threads = -1
    call wfmm_session_create(session, so, status)
    call expect(status, WFMM_ERR_VALUE, 'threads = -1')
    so%threads = 0
    so%n_devices = 2
    so%devices = c_loc(devices)
    call wfmm_session_create(session, so, status)
    call expect(status, WFMM_ERR_VALUE, 'devices[1] = -3')
  end subroutine

  subroutine memory()
    type(wfmm_session) :: session
    type(wfmm_plan) :: p
    integer :: status

    call wfmm_plan_set_targets(plan, X, memory=3, ierr=ierr)
    call refused(WFMM_ERR_CONSTANT, 'memory = 3')
    call wfmm_session_create(session, wfmm_session_options(backend=WFMM_BACKEND_CPU))
    call wfmm_plan_create(p, session=session)
    call wfmm_plan_set_targets(p, X, memory=WFMM_MEMORY_DEVICE, ierr=status)
    call expect(status, WFMM_ERR_MEMORY, 'CPU')
    call wfmm_plan_destroy(p)
    call wfmm_session_destroy(session)
  end subroutine

  subroutine too_early()
    type(wfmm_plan) :: p
    real(dp) :: u(3, 2)
    real(sp) :: v(3, 2)
    integer :: status

    u = 3
    call wfmm_plan_create(p, options=wfmm_plan_options(tolerance=1e-7_dp))
    call wfmm_plan_evaluate(p, u, ierr=status)
    call expect(status, WFMM_ERR_STATE, 'sources')
    call wfmm_plan_prepare(p, status)
    call expect(status, WFMM_ERR_STATE, 'before')
    call wfmm_plan_set_particles(p, real(X, sp), real(A, sp))
    call wfmm_plan_evaluate(p, u, ierr=status)
    call expect(status, WFMM_ERR_STATE, 'targets')
    call wfmm_plan_set_targets(p, real(X, sp))
    call wfmm_plan_evaluate(p, v, ierr=status)
    call expect(status, WFMM_ERR_TOLERANCE, 'single precision')
    call check(all(u == 3), 'nothing is written')
    call wfmm_plan_destroy(p)
  end subroutine

end program bad_input
