!> Sessions, plans and the library: life, queries, changes of sources and targets. Twin: tests/c/objects.c.
!> The host's end of the log.
module log_lines
  use, intrinsic :: iso_c_binding
  use wakefmm
  implicit none
  integer :: lines = 0

contains

  subroutine count_lines(level, message, user) bind(c)
    integer(c_int32_t), value :: level
    type(c_ptr), value :: message, user

    if (level == WFMM_LOG_INFO .and. c_associated(message) .and. .not. c_associated(user)) lines = lines + 1
  end subroutine

end module log_lines

program objects
  use, intrinsic :: iso_c_binding
  use wakefmm
  use checks
  use log_lines
  implicit none

  integer, parameter :: dp = c_double, sp = c_float, N = 300, M = 200
  real(dp) :: position(3, N), strength(3, N), charge(N), x(3, M)

  call random_init(.true., .true.)
  call random_number(position)
  call random_number(strength)
  call random_number(charge)
  call random_number(x)
  strength = strength - 0.5_dp
  call the_library_tells_its_version()
  call the_log_goes_to_the_host()
  call defaults_are_those_of_c()
  call sessions_live_as_long_as_their_plans()
  call sources_and_targets_change_one_by_one()
  call a_plan_tells_what_it_did()
  call a_plan_tells_of_singular_kernels_and_large_tolerances()
  call the_environment_says_how_many_threads()
  call finish('objects')

contains

  subroutine the_library_tells_its_version()
    integer(c_int32_t) :: major, minor, patch
    type(wfmm_plan) :: none
    integer :: ierr

    major = -1
    call wfmm_version(major, minor, patch)
    call check(wfmm_abi_version() == WFMM_MODULE_ABI_VERSION, 'binary interface')
    call check(major == WFMM_VERSION_MAJOR .and. minor == WFMM_VERSION_MINOR .and. patch == WFMM_VERSION_PATCH, 'version')
    call check(wfmm_status_name(WFMM_ERR_BUSY) == 'WFMM_ERR_BUSY', 'name of a status')
    call wfmm_plan_prepare(none, ierr)
    call expect(ierr, WFMM_ERR_NULL, 'plan is NULL')
  end subroutine

  subroutine the_log_goes_to_the_host()
    type(wfmm_session) :: session
    integer :: ierr

    call wfmm_log_set(WFMM_LOG_INFO, c_funloc(count_lines))
    call wfmm_session_create(session)
    call check(lines > 0, 'a line was logged')
    call wfmm_log_set(WFMM_LOG_OFF)
    call wfmm_session_destroy(session)
    call wfmm_log_set(77, ierr=ierr)
    call expect(ierr, WFMM_ERR_CONSTANT, '77')
  end subroutine

  subroutine defaults_are_those_of_c()
    interface
      function plan_defaults(o, size) bind(c, name='wfmm_plan_options_init') result(status)
        import
        type(wfmm_plan_options), intent(inout) :: o
        integer(c_size_t), value :: size
        integer(c_int32_t) :: status
      end function
      function session_defaults(o, size) bind(c, name='wfmm_session_options_init') result(status)
        import
        type(wfmm_session_options), intent(inout) :: o
        integer(c_size_t), value :: size
        integer(c_int32_t) :: status
      end function
    end interface
    type(wfmm_plan_options) :: f, c
    type(wfmm_session_options) :: fs, cs
    type(wfmm_report) :: report

    call check(plan_defaults(c, c_sizeof(c)) == WFMM_OK, 'options of a plan')
    call check(f%struct_size == c%struct_size .and. f%struct_size == c_sizeof(f), 'struct_size')
    call check(f%method == c%method .and. f%precision == c%precision .and. f%order == c%order, 'method to order')
    call check(f%leaf_capacity == c%leaf_capacity, 'leaf_capacity')
    call check(f%segment_regularization == c%segment_regularization, 'segment_regularization')
    call check(f%particle_regularization == c%particle_regularization, 'particle_regularization')
    call check(f%index_base == 1 .and. c%index_base == 0, 'index_base')
    call check(abs(f%tolerance - c%tolerance) + abs(f%normalization - c%normalization) <= 0, 'tolerance, normalization')
    call check(abs(f%core_radius - c%core_radius) <= 0 .and. f%flags == c%flags, 'core_radius, flags')
    call check(session_defaults(cs, c_sizeof(cs)) == WFMM_OK, 'options of a session')
    call check(fs%struct_size == cs%struct_size .and. fs%backend == cs%backend, 'session: size, backend')
    call check(fs%device == cs%device .and. fs%threads == cs%threads .and. fs%flags == cs%flags, 'session: rest')
    call check(report%struct_size == c_sizeof(report), 'report')
    f%tolerance = 7
    call wfmm_plan_options_init(f)
    call check(f%index_base == 1 .and. f%tolerance < 1, 'initialized again')
    call wfmm_session_options_init(fs)
  end subroutine

  subroutine sessions_live_as_long_as_their_plans()
    type(wfmm_session) :: session, copy
    type(wfmm_session_options) :: options
    type(wfmm_plan) :: plan, old
    character(len=:), allocatable :: line
    real(dp) :: u(3, 1)
    integer :: ierr

    options%threads = 1
    options%backend = WFMM_BACKEND_CPU
    call wfmm_session_create(session, options)
    call wfmm_session_describe(session, line)
    call check(index(line, '1 thread') > 0, 'description')
    call wfmm_plan_create(plan, session=session)
    copy = session
    call wfmm_session_destroy(session)
    call wfmm_session_destroy(session)
    call wfmm_session_describe(copy, line, ierr)
    call expect(ierr, WFMM_ERR_HANDLE, 'no live session')
    call wfmm_plan_set_particles(plan, position(:, 1:1), strength(:, 1:1))
    call wfmm_plan_set_targets(plan, x(:, 1:1))
    call wfmm_plan_evaluate(plan, u)
    old = plan
    call wfmm_plan_destroy(plan)
    call wfmm_plan_destroy(plan)
    call wfmm_plan_destroy(old, ierr)
    call expect(ierr, WFMM_ERR_HANDLE, 'no live plan')
  end subroutine

  subroutine sources_and_targets_change_one_by_one()
    type(wfmm_plan) :: plan
    real(dp) :: u(3, M), v(3, M), g(3, 3, M), one(3, 1), phi(M), gp(3, M)
    integer(c_int64_t) :: counts(4)

    call wfmm_plan_create(plan)
    call wfmm_plan_set_particles(plan, position, strength)
    call wfmm_plan_set_targets(plan, x)
    call wfmm_plan_prepare(plan)
    call wfmm_plan_evaluate(plan, u, g)
    call wfmm_induce_particles(position, strength, x(:, M:M), one)
    call check(all(abs(u(:, M) - one(:, 1)) < 1e-3_dp*sum(abs(one))), 'all targets against one')
    call wfmm_plan_set_strength(plan, 2*strength)
    call wfmm_plan_evaluate(plan, v)
    call check(maxval(abs(v - 2*u)) < 1e-3_dp*maxval(abs(u)), 'twice as strong')
    call wfmm_plan_set_strengths(plan, strength)
    call wfmm_plan_evaluate(plan, v)
    call check(maxval(abs(v - u)) < 1e-3_dp*maxval(abs(u)), 'as before')
    v(:, 2) = 77
    call wfmm_plan_set_targets(plan, x(:, M:M))
    call wfmm_plan_evaluate(plan, v)
    call check(all(abs(v(:, 1) - one(:, 1)) < 1e-3_dp*sum(abs(one))) .and. all(v(:, 2) == 77), 'the tail is not written')
    call wfmm_plan_set_segments(plan, position(:, 1:2), reshape([1, 2], [2, 1]), [1._dp])
    call wfmm_plan_set_circulation(plan, [0._dp])
    call wfmm_plan_evaluate(plan, u)
    call check(all(abs(v(:, 1) - u(:, 1)) < 1e-3_dp*sum(abs(one))), 'a segment without circulation')
    call wfmm_plan_set_segments(plan, position, reshape([1, 2], [2, 1]), [1._dp], n=0)
    call wfmm_plan_set_particles(plan, position, strength, n=0)
    call wfmm_plan_evaluate(plan, u)
    call check(all(u(:, 1) == 0), 'no sources')
    call wfmm_plan_counts(plan, counts(1), counts(2), counts(3), counts(4))
    call check(all(counts == [0, 0, 0, 1]), 'counts')
    call wfmm_plan_set_targets(plan, x, n=0)
    u = 5
    call wfmm_plan_evaluate(plan, u)
    call check(all(u == 5), 'no targets')
    call wfmm_plan_set_targets(plan, x)
    call wfmm_plan_set_charges(plan, position, charge)
    call wfmm_plan_evaluate_potential(plan, phi, gp)
    call wfmm_plan_set_charge(plan, 0*charge)
    call wfmm_plan_evaluate_potential(plan, phi)
    call check(all(phi == 0), 'charges of zero')
    call wfmm_plan_destroy(plan)
  end subroutine

  subroutine a_plan_tells_what_it_did()
    type(wfmm_plan) :: plan
    type(wfmm_plan_options) :: options
    type(wfmm_report) :: report
    character(len=:), allocatable :: why
    real(sp) :: u(3, M), e32
    real(dp) :: e64
    integer(c_int64_t) :: host, device

    options%tolerance = 1e-3_dp
    call wfmm_plan_create(plan, options=options)
    call wfmm_plan_set_particles(plan, real(position, sp), real(strength, sp))
    call wfmm_plan_set_targets(plan, real(x, sp))
    call wfmm_plan_evaluate(plan, u)
    e32 = -1
    e64 = -1
    call wfmm_plan_check(plan, 50, 1, e32)
    call wfmm_plan_check(plan, 50, 1, e64)
    call check(e32 >= 0 .and. e32 <= 1e-3 .and. e64 >= 0 .and. e64 <= 1e-3_dp, 'measured error')
    call wfmm_plan_report(plan, report)
    call check(report%precision == WFMM_PRECISION_F32 .and. report%near_pairs > 0, 'report')
    call check(report%seconds(WFMM_PASS_TOTAL) > 0, 'seconds')
    host = 0
    call wfmm_plan_workspace(plan, host, device)
    call check(host >= 4*3*(2*N + M), 'workspace')
    call wfmm_plan_recipe(plan, why)
    call check(len(why) > 20, 'recipe')
    call wfmm_plan_destroy(plan)
  end subroutine

  subroutine a_plan_tells_of_singular_kernels_and_large_tolerances()
    type(wfmm_plan) :: plan
    character(len=:), allocatable :: why
    real(dp) :: u(3, M)

    call wfmm_plan_create(plan, options=wfmm_plan_options(tolerance=0.5_dp))
    call wfmm_plan_set_particles(plan, position, strength)
    call wfmm_plan_set_targets(plan, x)
    call wfmm_plan_evaluate(plan, u)
    call wfmm_plan_recipe(plan, why)
    call check(index(why, 'singular: WFMM_REG_GAUSS_ERF') > 0 .and. index(why, 'The tolerance is 0.1') > 0, why)
    call wfmm_plan_set_particles(plan, position, strength, core_radius=spread(0.01_dp, 1, N))
    call wfmm_plan_evaluate(plan, u)
    call wfmm_plan_recipe(plan, why)
    call check(index(why, 'singular') == 0, why)
    call wfmm_plan_destroy(plan)
  end subroutine

  subroutine the_environment_says_how_many_threads()
    interface
      function setenv(name, value, overwrite) bind(c, name='setenv') result(failed)
        import
        character(kind=c_char), intent(in) :: name(*), value(*)
        integer(c_int), value :: overwrite
        integer(c_int) :: failed
      end function
    end interface
    type(wfmm_session) :: session
    character(len=:), allocatable :: text

    call check(setenv('WAKEFMM_NUM_THREADS'//c_null_char, '3'//c_null_char, 1_c_int) == 0, 'setenv')
    call wfmm_session_create(session)
    call wfmm_session_describe(session, text)
    call check(index(text, 'CPU, 3 threads') > 0, text)
    call wfmm_session_destroy(session)
  end subroutine

end program objects
