! One wake with two core models: the blades' bound vortices with Rankine cores, the trailing filament with Vatistas cores. The
! regularization is one for all segments of a plan, so each model has a plan, and the second one adds to the field of the first.
program two_cores
  use wakefmm
  implicit none
  integer, parameter :: n = 8000, blades = 40
  real(8), parameter :: step = 0.02d0
  real(8) :: points(3, n + 1), bound(3, blades + 1), circulation(n), core(n), u(3, n + 1), exact(3, n + 1), error
  integer :: i

  do i = 1, n + 1
    points(:, i) = [cos(step * (i - 1)), sin(step * (i - 1)), 0.001d0 * (i - 1)]
  end do
  do i = 1, blades + 1
    bound(:, i) = [2d0 * (i - 1) / blades - 1, 0d0, 0d0]
  end do
  do i = 1, n
    circulation(i) = 1
    core(i) = 0.02d0 * sqrt(1 + 0.01d0 * (i - 1))
  end do

  call velocity(WFMM_METHOD_AUTO, u)
  call velocity(WFMM_METHOD_DIRECT, exact)
  error = sqrt(sum((u - exact)**2) / sum(exact**2))
  print '(a, 3f10.4, a, es8.1)', 'u in the middle:', u(:, n / 2 + 1), ', error', error
  if (error > 2d-4) stop 1

contains

  subroutine velocity(method, field)
    integer, intent(in) :: method
    real(8), intent(out) :: field(:, :)
    type(wfmm_session) :: session
    type(wfmm_plan) :: filament, blade
    type(wfmm_plan_options) :: options

    call wfmm_session_create(session)
    options%tolerance = 1d-4
    options%method = method
    options%segment_regularization = WFMM_REG_VATISTAS
    call wfmm_plan_create(filament, session, options)
    options%segment_regularization = WFMM_REG_RANKINE
    options%core_radius = 0.05d0                        ! of all segments that have no radius of their own
    options%flags = WFMM_FLAG_ACCUMULATE                ! adds to the array of results
    call wfmm_plan_create(blade, session, options)

    call wfmm_plan_set_segments(filament, points, ends(n), circulation, core_radius=core)
    call wfmm_plan_set_targets(filament, points)
    call wfmm_plan_evaluate(filament, field)

    call wfmm_plan_set_segments(blade, bound, ends(blades), circulation(:blades))
    call wfmm_plan_set_targets(blade, points)
    call wfmm_plan_evaluate(blade, field)

    call wfmm_plan_destroy(filament)
    call wfmm_plan_destroy(blade)
    call wfmm_session_destroy(session)
  end subroutine

  ! Point numbers of the segments of one line.
  function ends(segments)
    integer, intent(in) :: segments
    integer :: ends(2, segments), i

    ends(1, :) = [(i, i = 1, segments)]
    ends(2, :) = ends(1, :) + 1
  end function
end program
