! A stranger's Fortran program, in single (-DREAL_KIND=4) or double (8) from one source: a helical wake as segments, and a
! caller in the style of Fortran 77 with x(n), y(n), z(n), who writes into rows of the (3,n) array and never interleaves.
#ifndef REAL_KIND
#define REAL_KIND 8
#endif
program wake
  use wakefmm
  implicit none
  integer, parameter :: rk = REAL_KIND, n = 400, m = 60, spare = 17
  real(rk) :: points(3, n + 1), circulation(n), core(n), targets(3, m), u(3, m), v(3, m), one(3), t
  real(rk) :: x(m), y(m), z(m), ux(m), uy(m), uz(m)
  integer :: ends(2, n), i, k, ierr
  type(wfmm_plan) :: plan
  type(wfmm_plan_options) :: options

  do i = 1, n + 1
    t = 0.05_rk * real(i, rk)
    points(:, i) = [cos(t), sin(t), -0.03_rk * t]
  end do
  do i = 1, n
    ends(:, i) = [i, i + 1]
    circulation(i) = 1 + 0.5_rk * sin(0.1_rk * real(i, rk))
    core(i) = 0.02_rk + 0.0005_rk * real(i, rk)
  end do
  do k = 1, m
    x(k) = -1.2_rk + 0.04_rk * real(k, rk)
    y(k) = 0.1_rk * sin(real(k, rk))
    z(k) = -0.01_rk * real(k, rk)
  end do

  options%tolerance = 1e-5
  options%segment_regularization = WFMM_REG_VATISTAS
  call wfmm_plan_create(plan, options=options)
  call wfmm_plan_set_segments(plan, points, ends, circulation, core_radius=core)

  ! The rows of (3,n) are x, y and z.
  targets(1, :) = x; targets(2, :) = y; targets(3, :) = z
  call wfmm_plan_set_targets(plan, targets)
  call wfmm_plan_evaluate(plan, u)
  ux = u(1, :); uy = u(2, :); uz = u(3, :)

  do k = 1, m
    one = 0
    do i = 1, n
      one = one + induced(points(:, ends(1, i)), points(:, ends(2, i)), circulation(i), core(i), [x(k), y(k), z(k)])
    end do
    v(:, k) = one
  end do
  if (norm2(reshape([ux - v(1, :), uy - v(2, :), uz - v(3, :)], [3 * m])) > 1e-4_rk * norm2(v)) then
    print *, 'wrong by', norm2(u - v) / norm2(v)
    error stop 1
  end if

  ! Arrays longer than their live count; what is wrong comes back as a status with a message.
  u = 0
  call wfmm_plan_set_targets(plan, targets, n=m - spare)
  u(:, m - spare + 1:) = -1
  call wfmm_plan_evaluate(plan, u)
  if (any(u(:, m - spare + 1:) > -1)) error stop 2
  ends(2, 5) = n + 2
  call wfmm_plan_set_segments(plan, points, ends, circulation, core_radius=core, ierr=ierr)
  if (ierr /= WFMM_ERR_INDEX .or. index(wfmm_last_error(), 'connectivity') == 0) error stop 3
  call wfmm_plan_destroy(plan)
  print '(a,i0,a,es8.1)', 'Fortran consumer, real(', rk, '): plain loop agrees to ', &
    norm2(reshape([ux - v(1, :), uy - v(2, :), uz - v(3, :)], [3 * m])) / norm2(v)

contains

  ! One segment with a Vatistas core, as a host code has it.
  pure function induced(p1, p2, gamma, c, at) result(velocity)
    real(rk), intent(in) :: p1(3), p2(3), gamma, c, at(3)
    real(rk) :: velocity(3), r1(3), r2(3), normal(3), a, b, rho2
    r1 = at - p1
    r2 = at - p2
    normal = [r1(2) * r2(3) - r1(3) * r2(2), r1(3) * r2(1) - r1(1) * r2(3), r1(1) * r2(2) - r1(2) * r2(1)]
    a = norm2(r1)
    b = norm2(r2)
    rho2 = dot_product(normal, normal) / dot_product(p2 - p1, p2 - p1)
    velocity = gamma / (16 * atan(1.0_rk)) * rho2 / sqrt(c**4 + rho2**2) * (a + b) / (a * b * (a * b + dot_product(r1, r2))) &
      * normal
  end function
end program
