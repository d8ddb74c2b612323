!> Known values: segments, particles and charges, both kinds, every regularization, layouts of the arrays.
!> Enters: nothing. Leaves: code 0 when every number is that of the formulas. Twin: tests/c/values.c.
program values
  use, intrinsic :: iso_c_binding
  use, intrinsic :: ieee_arithmetic, only: ieee_value, ieee_quiet_nan
  use wakefmm
  use checks
  implicit none

  integer, parameter :: dp = c_double, sp = c_float
  real(dp), parameter :: PI = 3.14159265358979323846_dp
  real(dp), parameter :: POINTS(3, 2) = reshape([0._dp, 0._dp, -1._dp, 0._dp, 0._dp, 1._dp], [3, 2])
  integer, parameter :: ENDS(2, 1) = reshape([1, 2], [2, 1])
  real(dp), parameter :: GAMMA1(1) = [1._dp], CORE(1) = [0.5_dp]
  real(dp), parameter :: TARGET1(3, 1) = reshape([0.05_dp, 0._dp, -0.5_dp], [3, 1])
  ! u_y of WFMM_REG_NONE to _OFFSET at that target, s = 1/(4 pi).
  real(dp), parameter :: SEGMENT(0:5) = [3.174316846759495_dp, 0.03174316846759495_dp, 0.03963356378147256_dp, &
    0.03174158142819854_dp, 3.174316846759495_dp*0.01_dp/1.01_dp, 0.01586230555830498_dp]

  call segments_have_their_known_velocity()
  call particles_follow_their_formula()
  call gradients_are_derivatives_in_the_stated_order()
  call charges_have_potential_and_gradient()
  call layouts_of_host_codes()
  call what_has_no_value_adds_zero()
  call a_ground_plane_mirrors()
  call far_fields_hold_their_tolerance(WFMM_METHOD_TREECODE, WFMM_EXPANSION_HARMONICS, 0)
  call far_fields_hold_their_tolerance(WFMM_METHOD_FMM, WFMM_EXPANSION_PSEUDO_PARTICLES, 60)
  call a_period_makes_a_line()
  call finish('values')

contains

  subroutine segments_have_their_known_velocity()
    type(wfmm_plan_options) :: options
    real(dp) :: u(3, 1), g(3, 3, 1)
    real(sp) :: v(3, 1), h(3, 3, 1)
    integer :: reg

    do reg = WFMM_REG_NONE, WFMM_REG_OFFSET
      options%segment_regularization = reg
      options%tolerance = 1e-10_dp
      call wfmm_induce_segments(POINTS, ENDS, GAMMA1, TARGET1, u, core_radius=CORE, options=options, gradient=g)
      call check(close_to(u(2, 1), SEGMENT(reg), 1e-13_dp), 'segment, double')
      call check(all(u([1, 3], 1) == 0), 'segment, other components')
      options%tolerance = 1e-5_dp
      call wfmm_induce_segments(real(POINTS, sp), ENDS, real(GAMMA1, sp), real(TARGET1, sp), v, &
        core_radius=real(CORE, sp), options=options, gradient=h)
      call check(close_to(real(v(2, 1), dp), SEGMENT(reg), 1e-5_dp), 'segment, single')
    end do
  end subroutine

  !> S(r) of the sums: u = s a x d S(r).
  function particle_s(reg, r, c) result(s)
    integer, intent(in) :: reg
    real(dp), intent(in) :: r, c
    real(dp) :: s, q

    q = r/c
    select case (reg)
    case (WFMM_REG_NONE); s = 1/r**3
    case (WFMM_REG_GAUSS_ERF); s = (erf(q/sqrt(2._dp)) - sqrt(2/PI)*q*exp(-q**2/2))/r**3
    case (WFMM_REG_EXPONENTIAL); s = (1 - exp(-q**3))/r**3
    case (WFMM_REG_COMPACT); s = 1/sqrt(r**6 + c**6)
    case (WFMM_REG_ROSENHEAD); s = (r**2 + c**2)**(-1.5_dp)
    case (WFMM_REG_WINCKELMANS); s = (r**2 + 2.5_dp*c**2)*(r**2 + c**2)**(-2.5_dp)
    case default; s = min(1._dp, q**2)/r**3
    end select
  end function

  function cross(a, b) result(c)
    real(dp), intent(in) :: a(3), b(3)
    real(dp) :: c(3)

    c = [a(2)*b(3) - a(3)*b(2), a(3)*b(1) - a(1)*b(3), a(1)*b(2) - a(2)*b(1)]
  end function

  subroutine particles_follow_their_formula()
    real(dp), parameter :: position(3, 2) = reshape([0._dp, 0._dp, 0._dp, 1._dp, 2._dp, 3._dp], [3, 2])
    real(dp), parameter :: strength(3, 2) = reshape([1._dp, 2._dp, 3._dp, -1._dp, 0.5_dp, 2._dp], [3, 2])
    real(dp), parameter :: cores(2) = [0.4_dp, 3._dp], x(3, 1) = reshape([0.3_dp, -0.2_dp, 0.1_dp], [3, 1])
    type(wfmm_plan_options) :: options
    real(dp) :: want(3), u(3, 1)
    real(sp) :: v(3, 1)
    integer :: reg, k, i

    options%normalization = 1
    do reg = WFMM_REG_NONE, WFMM_REG_POLYNOMIAL
      if (reg /= WFMM_REG_NONE .and. reg < WFMM_REG_GAUSS_ERF) cycle
      options%particle_regularization = reg
      options%tolerance = 1e-10_dp
      want = 0
      do k = 1, 2
        want = want + particle_s(reg, norm2(x(:, 1) - position(:, k)), cores(k))*cross(strength(:, k), x(:, 1) - position(:, k))
      end do
      call wfmm_induce_particles(position, strength, x, u, core_radius=cores, options=options)
      options%tolerance = 1e-5_dp
      call wfmm_induce_particles(real(position, sp), real(strength, sp), real(x, sp), v, core_radius=real(cores, sp), &
        options=options)
      do i = 1, 3
        call check(close_to(u(i, 1), want(i), 1e-11_dp), 'particle, double')
        call check(close_to(real(v(i, 1), dp), want(i), 2e-5_dp), 'particle, single')
      end do
    end do
  end subroutine

  subroutine gradients_are_derivatives_in_the_stated_order()
    real(dp), parameter :: h = 1e-5_dp
    type(wfmm_plan_options) :: options
    real(dp) :: x(3, 1), u(3, 1), g(3, 3, 1), y(3, 2), v(3, 2)
    integer :: i, j

    options%tolerance = 1e-10_dp
    x(:, 1) = [0.3_dp, 0.2_dp, -0.4_dp]
    call wfmm_induce_segments(POINTS, ENDS, GAMMA1, x, u, core_radius=CORE, options=options, gradient=g)
    do j = 1, 3
      y = spread(x(:, 1), 2, 2)
      y(j, 1) = y(j, 1) + h
      y(j, 2) = y(j, 2) - h
      call wfmm_induce_segments(POINTS, ENDS, GAMMA1, y, v, core_radius=CORE, options=options)
      do i = 1, 3
        call check(abs(g(j, i, 1) - (v(i, 1) - v(i, 2))/(2*h)) < 1e-8_dp, 'gradient(j, i, k) = du_i/dx_j')
      end do
    end do
  end subroutine

  subroutine charges_have_potential_and_gradient()
    real(dp), parameter :: position(3, 2) = reshape([0._dp, 0._dp, 0._dp, 1._dp, 0._dp, 0._dp], [3, 2])
    real(dp), parameter :: charge(2) = [2._dp, -1._dp]
    real(dp), parameter :: x(3, 2) = reshape([0._dp, 3._dp, 4._dp, 1._dp, 0._dp, 0._dp], [3, 2])
    type(wfmm_plan) :: plan
    type(wfmm_plan_options) :: options
    real(dp) :: phi(2), g(3, 2)
    real(sp) :: phis(2), gs(3, 2)

    options%normalization = 1
    options%tolerance = 1e-10_dp
    call wfmm_plan_create(plan, options=options)
    call wfmm_plan_set_charges(plan, position, charge)
    call wfmm_plan_set_targets(plan, x)
    call wfmm_plan_evaluate_potential(plan, phi, g)
    call check(close_to(phi(1), 0.4_dp - 1/sqrt(26._dp), 1e-12_dp), 'potential')
    call check(close_to(phi(2), 2._dp, 1e-12_dp), 'potential on a charge')
    call check(close_to(g(2, 1), -6/125._dp + 3/26._dp**1.5_dp, 1e-12_dp), 'gradient of the potential')
    call check(close_to(g(1, 2), -2._dp, 1e-12_dp), 'gradient on a charge')
    call wfmm_plan_destroy(plan)
    options%tolerance = 1e-4_dp
    call wfmm_plan_create(plan, options=options)
    call wfmm_plan_set_charges(plan, real(position, sp), real(charge, sp))
    call wfmm_plan_set_targets(plan, real(x, sp))
    call wfmm_plan_evaluate_potential(plan, phis, gs)
    call check(close_to(real(phis(1), dp), 0.4_dp - 1/sqrt(26._dp), 1e-5_dp), 'potential, single')
    call wfmm_plan_destroy(plan)
  end subroutine

  !> OLAF's shape: rows of four, sentinels behind the live count, results added, and one core for all.
  subroutine layouts_of_host_codes()
    type(wfmm_plan_options) :: options
    real(dp) :: many(3, 4), gammas(3), cores(3), x(3, 2), u(3, 2), nan
    integer :: connectivity(4, 3)

    nan = ieee_value(nan, ieee_quiet_nan)
    many = nan
    many(:, 1:2) = POINTS
    connectivity = -999
    connectivity(1:2, 1) = [1, 2]
    gammas = [1._dp, nan, nan]
    cores = [0.5_dp, nan, nan]
    x = nan
    x(:, 1) = TARGET1(:, 1)
    u = reshape([10, 20, 30, 40, 50, 60], [3, 2])
    options%tolerance = 1e-10_dp
    options%flags = WFMM_FLAG_ACCUMULATE
    call wfmm_induce_segments(many, connectivity, gammas, x, u, core_radius=cores, options=options, &
      n_points=2, n=1, n_targets=1)
    call check(close_to(u(2, 1), 20 + SEGMENT(WFMM_REG_VATISTAS), 1e-14_dp), 'added to what was there')
    call check(all(u(:, 2) == [40, 50, 60]) .and. u(1, 1) == 10 .and. u(3, 1) == 30, 'the tail stays')
    options%core_radius = 0.5_dp
    call wfmm_induce_segments(many, connectivity, gammas, x, u, options=options, n_points=2, n=1, n_targets=1)
    call check(close_to(u(2, 1), 20 + 2*SEGMENT(WFMM_REG_VATISTAS), 1e-14_dp), 'one core for all')
  end subroutine

  subroutine what_has_no_value_adds_zero()
    real(dp), parameter :: x(3, 3) = reshape([0._dp, 0._dp, -1._dp, 0._dp, 0._dp, 0.25_dp, 0._dp, 0._dp, 7._dp], [3, 3])
    type(wfmm_plan_options) :: options
    real(dp) :: u(3, 3)

    options%segment_regularization = WFMM_REG_NONE
    call wfmm_induce_segments(POINTS, ENDS, GAMMA1, x, u, options=options)
    call check(all(u == 0), 'on the line')
    call wfmm_induce_segments(POINTS, reshape([2, 2, 1, 2], [2, 2]), [5._dp, 0._dp], x + 1, u, options=options)
    call check(all(u == 0), 'without length or circulation')
  end subroutine

  !> A charge and a particle above the plane y = 1, and their images.
  subroutine a_ground_plane_mirrors()
    real(dp), parameter :: at(3, 1) = reshape([0._dp, 3._dp, 0._dp], [3, 1])
    real(dp), parameter :: x(3, 2) = reshape([4._dp, 1._dp, 0._dp, 0._dp, 2._dp, 0._dp], [3, 2])
    type(wfmm_plan_options) :: options
    type(wfmm_plan) :: plan
    real(dp) :: u(3, 2), phi(2)
    integer :: ierr

    options%normalization = 1
    options%plane_axis = 2
    options%plane_position = 1
    options%particle_regularization = WFMM_REG_NONE
    call wfmm_induce_particles(at, reshape([0._dp, 0._dp, 1._dp], [3, 1]), x, u, options=options)
    call check(close_to(u(1, 1), 4/20._dp**1.5_dp, 1e-14_dp) .and. abs(u(2, 1)) < 1e-15_dp, 'on the plane')
    call check(close_to(u(1, 2), 1 + 1/9._dp, 1e-14_dp), 'above the plane')
    call wfmm_plan_create(plan, options=options)
    call wfmm_plan_set_charges(plan, at, [2._dp])
    call wfmm_plan_set_targets(plan, x)
    call wfmm_plan_evaluate_potential(plan, phi)
    call check(close_to(phi(1), 4/sqrt(20._dp), 1e-14_dp), 'a charge, on the plane')
    call check(close_to(phi(2), 8/3._dp, 1e-14_dp), 'a charge, above the plane')
    call wfmm_plan_destroy(plan)
    call wfmm_plan_create(plan, options=wfmm_plan_options(period=[0._dp, -1._dp, 0._dp]), ierr=ierr)
    call expect(ierr, WFMM_ERR_VALUE, 'period[1] = -1')
  end subroutine

  !> A segment that is as long as the period is an infinite line.
  subroutine a_period_makes_a_line()
    real(dp), parameter :: pi = acos(-1._dp)
    real(dp), parameter :: x(3, 2) = reshape([0.3_dp, 0.4_dp, 0.3_dp, -0.6_dp, 0.8_dp, 7.9_dp], [3, 2])
    type(wfmm_plan_options) :: options
    real(dp) :: u(3, 2)

    options%period = [0._dp, 0._dp, 2._dp]
    options%tolerance = 1e-10_dp
    call wfmm_induce_segments(POINTS, ENDS, GAMMA1, x, u, options=options)
    call check(all(abs(u(:, 1) - [-0.8_dp, 0.6_dp, 0._dp]/(2*pi*0.5_dp)) < 1e-9_dp), 'beside an infinite line')
    call check(all(abs(u(:, 2) - [-0.8_dp, -0.6_dp, 0._dp]/(2*pi)) < 1e-9_dp), 'periods beyond')
  end subroutine

  !> The treecode, and the FMM by pseudo-particles, against the direct sum: 4,000 particles, 2,500 targets, positions by multiples of irrational numbers.
  subroutine far_fields_hold_their_tolerance(method, expansion, leaf_capacity)
    integer, intent(in) :: method, expansion, leaf_capacity
    integer, parameter :: n = 4000, m = 2500
    real(dp), parameter :: step(3) = [0.6180339887498949_dp, 0.7548776662466927_dp, 0.8191725133961645_dp]
    type(wfmm_plan_options) :: options
    type(wfmm_plan) :: plan
    type(wfmm_report) :: report
    real(dp), allocatable :: x(:, :), a(:, :), y(:, :), u(:, :), v(:, :)
    real(dp) :: error
    integer :: i, k

    allocate (x(3, n), a(3, n), y(3, m), u(3, m), v(3, m))
    do k = 1, n
      x(:, k) = modulo(k*step, 1._dp)
      a(:, k) = [(sin(real(3*(k - 1) + i, dp)), i=0, 2)]
    end do
    do k = 1, m
      y(:, k) = modulo(k*step + 0.31_dp, 1._dp)
    end do
    options%method = method
    options%expansion = expansion
    options%leaf_capacity = leaf_capacity
    options%tolerance = 1e-3_dp
    call wfmm_plan_create(plan, options=options)
    call wfmm_plan_set_particles(plan, x, a)
    call wfmm_plan_set_targets(plan, y)
    call wfmm_plan_evaluate(plan, u)
    call wfmm_plan_report(plan, report)
    call check(report%method == method .and. report%far_pairs > 0, 'method of the report')
    call check((report%seconds(WFMM_PASS_M2P) > 0) .eqv. method == WFMM_METHOD_TREECODE, 'passes of a treecode')
    call check((report%seconds(WFMM_PASS_M2L) > 0) .eqv. method == WFMM_METHOD_FMM, 'passes of an FMM')
    call wfmm_plan_destroy(plan)
    options = wfmm_plan_options(method=WFMM_METHOD_DIRECT)
    call wfmm_induce_particles(x, a, y, v, options=options)
    error = sqrt(sum((u - v)**2)/sum(v**2))
    call check(error > 0 .and. error <= 1e-3_dp, 'error of a far field')
  end subroutine

end program values
