!> Evaluations beside the host's own work. Twin: tests/c/overlap.c.
program overlap
  use, intrinsic :: iso_c_binding
  use wakefmm
  use checks
  implicit none

  integer, parameter :: dp = c_double, N = 1000
  real(dp), target :: position(3, N), strength(3, N), velocity(3, N), wanted(3, N), slopes(3, 3, N)
  real(dp), asynchronous :: gradient(3, 3, N)
  real(dp), target :: transposed(6, 3, N), wider(3, N + 4) = 0
  type(wfmm_session) :: session
  type(wfmm_session_options) :: so
  type(wfmm_plan_options) :: o
  type(wfmm_plan) :: plan
  integer :: ierr, round

  call random_init(.true., .true.)
  call random_number(position)
  call random_number(strength)
  call wfmm_session_options_init(so)
  so%backend = WFMM_BACKEND_CPU
  call wfmm_session_create(session, so)
  call wfmm_plan_options_init(o)
  o%method = WFMM_METHOD_DIRECT
  o%core_radius = 0.01_dp
  call wfmm_plan_create(plan, session=session, options=o)

  call wfmm_plan_wait(plan, ierr=ierr)
  call expect(ierr, WFMM_OK, '')
  call wfmm_plan_set_particles(plan, position, strength)
  call wfmm_plan_set_targets(plan, position)
  call wfmm_plan_evaluate(plan, wanted, slopes)
  call wfmm_session_register(session, c_loc(velocity), storage_size(velocity, c_int64_t)/8*size(velocity))
  do round = 1, 3
    velocity = 0
    gradient = 0
    call wfmm_plan_evaluate_async(plan, velocity, gradient)
    call wfmm_plan_evaluate_async(plan, velocity, gradient, ierr=ierr)
    call expect(ierr, WFMM_ERR_BUSY, 'plan')
    call wfmm_plan_wait(plan)
    call check(all(transfer(velocity, [0_c_int64_t]) == transfer(wanted, [0_c_int64_t])), 'velocities of async')
    call check(all(transfer(gradient, [0_c_int64_t]) == transfer(slopes, [0_c_int64_t])), 'gradients of async')
  end do
  call wfmm_session_unregister(session, c_loc(velocity))
  call wfmm_session_register(session, c_null_ptr, 8_c_int64_t, ierr)
  call expect(ierr, WFMM_ERR_NULL, 'array')
  ! More than a count of elements may be: 3 GiB. The CPU locks nothing.
  call wfmm_session_register(session, c_loc(velocity), 3*2_c_int64_t**30)
  call wfmm_plan_set_stream(plan)
  call wfmm_plan_evaluate_async(plan, velocity, memory=9, ierr=ierr)
  call expect(ierr, WFMM_ERR_CONSTANT, 'memory')
  ! A temporary would be gone when the field is written.
  call wfmm_plan_evaluate_async(plan, slopes(1, :, :), ierr=ierr)
  call expect(ierr, WFMM_ERR_SHAPE, 'velocity is not contiguous')
  call wfmm_plan_evaluate_async(plan, velocity, transposed(1:6:2, :, :), ierr=ierr)
  call expect(ierr, WFMM_ERR_SHAPE, 'gradient is not contiguous')
  call wfmm_plan_wait(plan, ierr=ierr)
  call expect(ierr, WFMM_OK, '')
  call wfmm_plan_evaluate_async(plan, wider(:, 3:N + 2))
  call wfmm_plan_wait(plan)
  call check(all(wider(:, 3:N + 2) == wanted) .and. all(wider(:, :2) == 0), 'velocities in columns of a wider array')
  call wfmm_plan_destroy(plan)
  ! A session that no longer exists is not the default one.
  call wfmm_session_destroy(session)
  call wfmm_plan_create(plan, session=session, options=o, ierr=ierr)
  call expect(ierr, WFMM_ERR_HANDLE, 'session was not made, or was destroyed')
  call finish('overlap')
end program overlap
