!> Flows: elements of every kind come, move and go, and bad input. Twin: tests/c/flow.c.
!> The host's own velocity.
module gusts
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: calls = 0, answer = 0

contains

  function blow(time, n, position, velocity, memory, stream, user) result(status) bind(c)
    real(c_double), value :: time
    integer(c_int64_t), value :: n
    real(c_double), intent(in) :: position(3, n)
    real(c_double), intent(inout) :: velocity(3, n)
    integer(c_int32_t), value :: memory
    type(c_ptr), value :: stream, user
    integer(c_int32_t) :: status

    calls = calls + 1
    status = int(answer, c_int32_t)
    if (memory /= 0 .or. c_associated(stream) .or. c_associated(user) .or. time < 0) status = 99
    velocity(1, :) = velocity(1, :) + 1 + 0*position(1, :)
  end function

end module gusts

program flows
  use, intrinsic :: iso_c_binding
  use wakefmm
  use checks
  use gusts
  implicit none

  integer, parameter :: dp = c_double, sp = c_float, N = 40
  real(dp), parameter :: PI = acos(-1._dp)
  real(dp) :: ring(3, N), gammas(N), cores(N)
  integer(c_int32_t) :: ends(2, N)
  integer :: k

  do k = 1, N
    ring(:, k) = [cos(2*PI*(k - 1)/N), sin(2*PI*(k - 1)/N), 0._dp]
    ends(:, k) = [k, mod(k, N) + 1]
  end do
  gammas = 1
  cores = 0.1_dp
  call a_ring_carries_tracers()
  call particles_bound_segments_and_dust()
  call filaments_are_added_and_cut()
  call single_arrays_of_every_kind()
  call the_host_adds_its_velocity()
  call a_flow_is_saved_and_goes_on()
  call bad_input()
  call finish('flow')

contains

  subroutine new_flow(flow)
    type(wfmm_flow), intent(inout) :: flow
    type(wfmm_plan_options) :: plan
    type(wfmm_flow_options) :: options

    plan%method = WFMM_METHOD_DIRECT
    options%fluid_viscosity = 1.8e-5_dp
    options%gravity(3) = -9.81_dp
    call wfmm_flow_create(flow, plan_options=plan, options=options)
  end subroutine

  subroutine a_ring_carries_tracers()
    type(wfmm_flow) :: flow
    type(wfmm_diagnostics) :: d
    type(wfmm_report) :: r
    real(dp) :: x(3, N), u(3, N), before(3, 1), gradient(3, 3, 1), radii(N), t
    real(sp) :: single(3, N)
    integer(c_int64_t) :: id(N), elements, points, step
    real(dp), parameter :: zero(3, 1) = 0

    call new_flow(flow)
    call wfmm_flow_set_filaments(flow, ring, ends, gammas, core_radius=cores)
    call wfmm_flow_set_tracers(flow, zero)
    call wfmm_flow_counts(flow, WFMM_KIND_FILAMENTS, elements, points)
    call check(elements == N .and. points == N, 'counts')
    call wfmm_flow_velocity(flow, zero, before, gradient)
    call check(close_to(before(3, 1), 0.5_dp, 0.01_dp) .and. abs(gradient(3, 3, 1)) < 1e-12_dp, 'in the middle of a ring')
    call wfmm_flow_advance(flow, 0.01_dp, 3)
    call wfmm_flow_time(flow, t, step)
    call check(close_to(t, 0.03_dp, 1e-15_dp) .and. step == 3, 'time')
    call wfmm_flow_get(flow, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, x, identity=id)
    call check(close_to(x(3, 1), 0.03_dp*before(3, 1), 0.01_dp) .and. id(1) == 0, 'a tracer')
    call wfmm_flow_get(flow, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_VELOCITY, u)
    call wfmm_flow_get(flow, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_VELOCITY, single)
    call check(u(3, 1) > 0.1_dp .and. single(3, 1) == real(u(3, 1), sp), 'velocity of the ring')
    call wfmm_flow_get(flow, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_CORE_RADIUS, radii)
    call check(close_to(radii(4), 0.1_dp, 1e-3_dp), 'core radius')
    call wfmm_flow_set_free_stream(flow, [0.5_dp, 0._dp, 0._dp])
    call wfmm_flow_get(flow, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_VELOCITY, x)
    call check(close_to(x(1, 1) - u(1, 1), 0.5_dp, 1e-12_dp), 'free stream')
    call wfmm_flow_add_tracers(flow, reshape([0._dp, 0._dp, 0._dp, 0.1_dp, 0._dp, 0._dp], [3, 2]))
    call wfmm_flow_remove(flow, WFMM_KIND_TRACERS, [1_c_int64_t, 0_c_int64_t])
    call wfmm_flow_get(flow, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, x, identity=id)
    call check(id(1) == 2 .and. x(1, 1) == 0.1_dp, 'who is left')
    call wfmm_flow_get(flow, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, x)
    call wfmm_flow_get_selected(flow, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, [5_c_int64_t, 2_c_int64_t], u(:, :2))
    call check(all(u(:, 1) == x(:, 6)) .and. all(u(:, 2) == x(:, 3)), 'positions by identity')
    call wfmm_flow_get_selected(flow, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_CORE_RADIUS, [3_c_int64_t], radii(:1))
    call check(close_to(radii(1), 0.1_dp, 1e-3_dp), 'a core radius by identity')
    call wfmm_flow_remove_mask(flow, WFMM_KIND_TRACERS, [1_c_int8_t])
    call wfmm_flow_counts(flow, WFMM_KIND_TRACERS, elements=step)
    call check(step == 0, 'removed by a mask')
    call wfmm_diagnostics_init(d)
    call wfmm_flow_diagnostics(flow, d)
    call check(close_to(d%linear_impulse(3), PI, 0.01_dp) .and. d%reason == WFMM_REASON_SEGMENTS, 'diagnostics')
    call wfmm_flow_report(flow, r)
    call check(r%method == WFMM_METHOD_DIRECT .and. r%near_pairs > 0, 'report')
    call wfmm_flow_destroy(flow)
    call wfmm_flow_destroy(flow)
  end subroutine

  subroutine particles_bound_segments_and_dust()
    type(wfmm_flow) :: flow
    real(dp), parameter :: x(3, 2) = reshape([0._dp, 0._dp, 1._dp, 1._dp, 0._dp, 1._dp], [3, 2])
    real(dp), parameter :: a(3, 2) = reshape([0._dp, 0._dp, 1._dp, 0._dp, 0._dp, -1._dp], [3, 2])
    real(dp), parameter :: bound(3, 2) = reshape([0._dp, 0._dp, -1._dp, 0._dp, 0._dp, 1._dp], [3, 2])
    real(dp) :: got(3, 3), scalars(3)
    integer(c_int64_t) :: id(3), count

    call new_flow(flow)
    call wfmm_flow_set_particles(flow, x, a, core_radius=[1._dp, 1._dp])
    call wfmm_flow_add_particles(flow, reshape([3._sp, 0._sp, 1._sp], [3, 1]), reshape([0._sp, 0._sp, 2._sp], [3, 1]), [0.25_sp])
    call wfmm_flow_set_bound_segments(flow, bound, reshape([1, 2], [2, 1]), [1._dp])
    call wfmm_flow_set_dust(flow, x, [1e-4_dp, 1e-4_dp], [2650._dp, 2650._dp])
    call wfmm_flow_add_dust(flow, x(:, 1:1), [1e-4_dp], [2650._dp], velocity=a(:, 1:1))
    call wfmm_flow_advance(flow, 1e-3_dp, 2)
    call wfmm_flow_get(flow, WFMM_KIND_PARTICLES, WFMM_QUANTITY_STRENGTH, got, identity=id)
    call check(got(3, 1) == 1 .and. got(3, 3) == 2 .and. id(3) == 2, 'strengths')
    call wfmm_flow_get(flow, WFMM_KIND_PARTICLES, WFMM_QUANTITY_CORE_RADIUS, scalars)
    call check(scalars(1) == 1 .and. scalars(3) == 0.25_dp, 'core radii')
    call wfmm_flow_get(flow, WFMM_KIND_DUST, WFMM_QUANTITY_VELOCITY, got)
    call check(got(3, 1) < 0 .and. got(3, 1) > -9.81_dp*2e-3_dp .and. got(3, 3) > 0.9_dp, 'dust falls')
    call wfmm_flow_get(flow, WFMM_KIND_DUST, WFMM_QUANTITY_DIAMETER, scalars)
    call check(scalars(2) == 1e-4_dp, 'diameter')
    call wfmm_flow_set_dust(flow, x, [1._dp], [1._dp], n=0)
    call wfmm_flow_counts(flow, WFMM_KIND_DUST, count)
    call check(count == 0, 'no dust')
    call wfmm_flow_destroy(flow)
  end subroutine

  subroutine filaments_are_added_and_cut()
    type(wfmm_flow) :: flow
    real(dp), parameter :: points(3, 3) = reshape([0, 0, 5, 1, 0, 5, 2, 0, 5], [3, 3])
    integer(c_int32_t) :: got(2, 4)
    integer :: ierr

    call wfmm_flow_create(flow)
    call wfmm_flow_set_filaments(flow, points, reshape([1, 2, 2, 3], [2, 2]), [1._dp, 1._dp])
    call wfmm_flow_add_filaments(flow, points, reshape([1, 2, 2, 3], [2, 2]), [1._dp, 1._dp])
    call wfmm_flow_get_connectivity(flow, WFMM_KIND_FILAMENTS, got)
    call check(all(got == reshape([1, 2, 2, 3, 4, 5, 5, 6], [2, 4])), 'connectivity')
    call wfmm_flow_remove(flow, WFMM_KIND_FILAMENTS, [0_c_int64_t])
    call wfmm_flow_get_connectivity(flow, WFMM_KIND_FILAMENTS, got)
    call check(all(got(:, :3) == reshape([1, 2, 3, 4, 4, 5], [2, 3])), 'connectivity after a cut')
    call wfmm_flow_get_connectivity(flow, WFMM_KIND_FILAMENTS, got(:, :2), ierr=ierr)
    call expect(ierr, WFMM_ERR_COUNT, 'capacity = 2')
    call wfmm_flow_destroy(flow)
  end subroutine

  !> Every generic with single arrays: numbers that both precisions have, so that they come back as they are.
  subroutine single_arrays_of_every_kind()
    type(wfmm_flow) :: flow
    real(sp), parameter :: line(3, 3) = reshape([0., 0., 2., 0.5, 0., 2., 0.5, 0.25, 2.], [3, 3])
    real(sp), parameter :: at(3, 2) = reshape([1.5, 0., 1., -1.5, 0., 1.], [3, 2])
    real(sp), parameter :: a(3, 2) = reshape([0., 0., 1., 0., 0.5, 0.], [3, 2])
    real(sp), parameter :: gamma(2) = [2., -0.5], radius(2) = [0.125, 0.25]
    real(sp), parameter :: diameter(2) = [0.0009765625, 0.00048828125], density(2) = [2048., 1024.]
    integer(c_int32_t), parameter :: two(2, 2) = reshape([1, 2, 2, 3], [2, 2])
    real(sp) :: u(3, 1), g(3, 3, 1), both(3, 6), scalars(3)
    real(dp) :: wide_u(3, 1), wide_g(3, 3, 1), numbers(3)
    integer(c_int64_t) :: count

    call new_flow(flow)
    call wfmm_flow_set_particles(flow, at, a, core_radius=radius)
    call wfmm_flow_add_particles(flow, line(:, 2:2), a(:, 2:2))
    call wfmm_flow_add_particles(flow, real(at(:, 1:1), dp), real(a(:, 2:2), dp), core_radius=[0.25_dp])
    call wfmm_flow_set_filaments(flow, line, two, gamma, core_radius=radius)
    call wfmm_flow_add_filaments(flow, line, two(:, 2:2), gamma(2:2), core_radius=radius(2:2))
    call wfmm_flow_set_bound_segments(flow, line, two, gamma, core_radius=radius)
    call wfmm_flow_set_tracers(flow, at)
    call wfmm_flow_add_tracers(flow, line(:, 1:1))
    call wfmm_flow_set_dust(flow, at, diameter, density, velocity=a)
    call wfmm_flow_add_dust(flow, line(:, 1:1), diameter(2:2), density(2:2))
    call wfmm_flow_counts(flow, WFMM_KIND_FILAMENTS, count)
    call check(count == 3, 'filaments in single precision')
    call wfmm_flow_get(flow, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_CIRCULATION, scalars)
    call check(all(scalars == [2._sp, -0.5_sp, -0.5_sp]), 'circulations in single precision')
    call wfmm_flow_get(flow, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, both)
    call check(all(both(:, 1:3) == line) .and. all(both(:, 4:6) == line), 'points in single precision')
    call wfmm_flow_get(flow, WFMM_KIND_BOUND_SEGMENTS, WFMM_QUANTITY_CORE_RADIUS, numbers(1:2))
    call check(numbers(1) == 0.125_dp .and. numbers(2) == 0.25_dp, 'cores in single precision')
    call wfmm_flow_get(flow, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, both(:, 1:3))
    call check(all(both(:, 1:2) == at) .and. all(both(:, 3) == line(:, 1)), 'tracers in single precision')
    call wfmm_flow_get(flow, WFMM_KIND_DUST, WFMM_QUANTITY_DIAMETER, numbers)
    call check(numbers(3) == 0.00048828125_dp, 'diameters in single precision')
    call wfmm_flow_velocity(flow, real(line(:, 3:3) + 1, dp), wide_u, wide_g)
    call wfmm_flow_velocity(flow, line(:, 3:3) + 1, u, g)
    call check(all(abs(u - wide_u) < 1e-6_dp*maxval(abs(wide_u))), 'velocity in single precision')
    call check(all(abs(g - wide_g) < 1e-5_dp*maxval(abs(wide_g))), 'gradient in single precision')
    call wfmm_flow_destroy(flow)
  end subroutine

  subroutine the_host_adds_its_velocity()
    type(wfmm_flow) :: flow
    real(dp) :: x(3, 1)
    integer :: ierr

    call new_flow(flow)
    x = 0
    call wfmm_flow_set_tracers(flow, x)
    call wfmm_flow_set_velocity_callback(flow, c_funloc(blow))
    call wfmm_flow_advance(flow, 0.25_dp, 2)
    call check(calls == 8, 'four a step')
    answer = 42
    call wfmm_flow_advance(flow, 0.25_dp, 2, ierr)
    call expect(ierr, 42, 'returned 42')
    answer = -1
    call wfmm_flow_advance(flow, 0.25_dp, 2, ierr)
    call expect(ierr, WFMM_ERR_CALLBACK, 'returned -1')
    call wfmm_flow_set_velocity_callback(flow)
    call wfmm_flow_advance(flow, 0.25_dp, 2)
    call wfmm_flow_get(flow, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, x)
    call check(close_to(x(1, 1), 0.5_dp, 1e-15_dp), 'blown')
    call wfmm_flow_destroy(flow)
  end subroutine

  subroutine a_flow_is_saved_and_goes_on()
    character(len=*), parameter :: PATH = '/tmp/wakefmm-flow-fortran.npz'
    type(wfmm_flow) :: flow, again
    real(dp) :: a(3, N), b(3, N)
    type(wfmm_plan_options) :: sums
    type(wfmm_flow_options) :: motion
    integer :: ierr, unit

    call new_flow(flow)
    call wfmm_flow_set_filaments(flow, ring, ends, gammas, core_radius=cores)
    call wfmm_flow_advance(flow, 0.1_dp, 2)
    call wfmm_flow_save(flow, PATH)
    call wfmm_flow_load(PATH, again)
    call wfmm_flow_advance(flow, 0.1_dp, 2)
    call wfmm_flow_advance(again, 0.1_dp, 2)
    call wfmm_flow_get(flow, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, a)
    call wfmm_flow_get(again, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, b)
    call check(all(a == b), 'goes on bit for bit')
    call wfmm_flow_get_options(again, sums, motion)
    call check(sums%index_base == 1 .and. motion%integrator == WFMM_INTEGRATOR_RK4, 'options of a loaded flow')
    call wfmm_flow_destroy(again)
    open (newunit=unit, file=PATH)
    close (unit, status='delete')
    call wfmm_flow_load(PATH, again, ierr=ierr)
    call expect(ierr, WFMM_ERR_FILE, PATH)
    call wfmm_flow_destroy(flow)
  end subroutine

  subroutine bad_input()
    type(wfmm_flow) :: flow, none
    type(wfmm_flow_options) :: options
    real(dp) :: x(3, 2), scalars(2)
    integer :: ierr

    options%integrator = 9
    call wfmm_flow_create(flow, options=options, ierr=ierr)
    call expect(ierr, WFMM_ERR_CONSTANT, 'integrator = 9')
    options = wfmm_flow_options(core_limit=1._dp)
    call wfmm_flow_create(flow, options=options, ierr=ierr)
    call expect(ierr, WFMM_ERR_VALUE, 'core_limit')
    call wfmm_flow_options_init(options)
    call check(options%integrator == WFMM_INTEGRATOR_RK4 .and. options%core_limit == 0, 'defaults')
    call wfmm_flow_advance(none, 1._dp, 1, ierr)
    call expect(ierr, WFMM_ERR_NULL, 'flow is NULL')
    call new_flow(flow)
    x = 1
    call wfmm_flow_set_particles(flow, x, x(:, :1), ierr=ierr)
    call expect(ierr, WFMM_ERR_SHAPE, 'strength')
    call wfmm_flow_set_particles(flow, x, x, [1._dp, -1._dp], ierr=ierr)
    call expect(ierr, WFMM_ERR_VALUE, 'core_radius[1]')
    call wfmm_flow_add_filaments(flow, x, reshape([1, 3], [2, 1]), [1._dp], ierr=ierr)
    call expect(ierr, WFMM_ERR_INDEX, 'connectivity[0][1] = 3')
    call wfmm_flow_set_dust(flow, x, [1._dp, 0._dp], [1._dp, 1._dp], ierr=ierr)
    call expect(ierr, WFMM_ERR_VALUE, 'diameter[1]')
    call wfmm_flow_set_tracers(flow, x)
    call wfmm_flow_get(flow, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, scalars, ierr=ierr)
    call expect(ierr, WFMM_ERR_SHAPE, 'rank 1')
    call wfmm_flow_get(flow, WFMM_KIND_PARTICLES, WFMM_QUANTITY_CORE_RADIUS, x, ierr=ierr)
    call expect(ierr, WFMM_ERR_SHAPE, 'rank 2')
    call wfmm_flow_get(flow, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, x(:, :1), ierr=ierr)
    call expect(ierr, WFMM_ERR_COUNT, 'capacity = 1')
    call wfmm_flow_advance(flow, 0._dp, 1, ierr)
    call expect(ierr, WFMM_ERR_VALUE, 'dt = 0')
    call wfmm_flow_remove(flow, WFMM_KIND_TRACERS, [7_c_int64_t], ierr=ierr)
    call expect(ierr, WFMM_ERR_VALUE, 'identity[0] = 7')
    call wfmm_flow_set_free_stream(flow, [1._dp], ierr)
    call expect(ierr, WFMM_ERR_SHAPE, 'velocity')
    call wfmm_flow_destroy(flow)
  end subroutine

end program flows
