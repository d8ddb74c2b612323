! The velocity of a helical wake with growing cores at its own nodes.
program quickstart
  use wakefmm
  implicit none
  integer, parameter :: n = 20000
  real(8), parameter :: step = 0.02d0
  real(8) :: points(3, n + 1), circulation(n), core(n), u(3, n + 1), error
  integer :: ends(2, n), i
  type(wfmm_plan) :: plan
  type(wfmm_plan_options) :: options

  do i = 1, n + 1
    points(:, i) = [cos(step * (i - 1)), sin(step * (i - 1)), 0.001d0 * (i - 1)]
  end do
  do i = 1, n
    ends(:, i) = [i, i + 1]                       ! numbers of first and last point, counted from 1
    core(i) = 0.02d0 * sqrt(1 + 0.01d0 * (i - 1))
  end do
  circulation = 1

  options%tolerance = 1d-4                        ! relative L2 error of u over all targets
  options%segment_regularization = WFMM_REG_VATISTAS
  call wfmm_plan_create(plan, options=options)
  call wfmm_plan_set_segments(plan, points, ends, circulation, core_radius=core)
  call wfmm_plan_set_targets(plan, points)
  call wfmm_plan_evaluate(plan, u)                ! u(:, k) is the velocity at points(:, k)
  call wfmm_plan_check(plan, 1000, 1, error)      ! against direct sums at 1000 targets
  print '(a, 3f10.4, a, es8.1)', 'u in the middle:', u(:, n / 2 + 1), ', error', error
  call wfmm_plan_destroy(plan)
  if (error > options%tolerance) stop 1
end program
