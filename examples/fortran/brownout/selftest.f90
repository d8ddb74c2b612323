!> Checks of the program's physics, and of the library against the program's own loop. A failed one fails the program.
module selftest
  use kinds, only: wp, pi, gravity
  use checks, only: expect
  use selftest_options, only: check_command_line
  use selftest_dust, only: check_dust
  use selftest_runs, only: check_runs
  use segments, only: segment_set
  use biot_savart_loop, only: sum_segments
  use ground, only: add_images, friction_velocity, wall_layer_factor, reference_height
  use dust, only: fly, response_time_of, threshold_friction_velocity
  use helix_case, only: make_segments, make_targets
  use induced_velocity, only: induction_t
  implicit none (type, external)
  private
  public :: run_selftest

contains

  subroutine run_selftest()
    integer :: failures

    failures = 0
    call check_known_segment(failures)
    call check_ground(failures)
    call check_ring(failures)
    call check_fall(failures)
    call check_lift_off(failures)
    call check_methods(failures)
    call check_command_line(failures)
    call check_dust(failures)
    call check_runs(failures)
    if (failures > 0) error stop 'brownout: a self-test failed'
    print '(a)', 'brownout: all self-tests passed'
  end subroutine run_selftest

  !> One segment beside its core, against a value computed by hand from Vatistas' formula.
  subroutine check_known_segment(failures)
    integer, intent(inout) :: failures
    type(segment_set) :: set
    real(wp) :: u(3, 1)

    call set%reserve(2)
    call set%append_filament(reshape([0.0_wp, 0.0_wp, -1.0_wp, 0.0_wp, 0.0_wp, 1.0_wp], [3, 2]), 1.0_wp, [0.5_wp])
    call sum_segments(set, reshape([0.05_wp, 0.0_wp, -0.5_wp], [3, 1]), u)
    call expect(failures, 'velocity beside one segment', u(2, 1)/0.03174158142819854_wp - 1, 1.0e-13_wp)
  end subroutine check_known_segment

  !> Images leave no velocity through the ground.
  subroutine check_ground(failures)
    integer, intent(inout) :: failures
    type(segment_set) :: set
    real(wp), allocatable :: target(:, :), u(:, :)

    call make_segments(800, 36, set)
    call make_targets(200, target)
    target(3, :) = 0
    allocate (u, mold=target)
    call sum_segments(set, target, u)
    call expect(failures, 'velocity through the ground', maxval(abs(u(3, :)))/maxval(abs(u)), 1.0e-13_wp)
  end subroutine check_ground

  !> A ring of fine segments moves itself. Cores act on the distance to a segment's *line*, which on a circle grows only
  !> as s²/2R with the arc s: the cut-off is near √(2Rc), and the thin-ring speed Γ/(4πR)(ln(8R/c) - β) becomes
  !> Γ/(8πR) ln(8√2 R/c). On the axis the ring's field is Γ/(2R) at its centre.
  subroutine check_ring(failures)
    integer, intent(inout) :: failures
    integer, parameter :: n = 6000
    real(wp), parameter :: core = 1.0e-3_wp, circulation = 2.0_wp
    type(segment_set) :: set
    real(wp) :: node(3, n + 1), target(3, 2), u(3, 2), speed
    integer :: k

    do k = 0, n
      node(:, k + 1) = [cos(2*pi*k/n), sin(2*pi*k/n), 0.0_wp]
    end do
    node(:, n + 1) = node(:, 1)
    call set%reserve(n + 1)
    call set%append_filament(node, circulation, spread(core, 1, n))
    target(:, 1) = node(:, 1)
    target(:, 2) = 0
    call sum_segments(set, target, u)
    speed = circulation/(8*pi)*log(8*sqrt(2.0_wp)/core)
    call expect(failures, 'speed of a thin ring', u(3, 1)/speed - 1, 1.0e-3_wp)
    call expect(failures, 'velocity at its centre', u(3, 2)/(circulation/2) - 1, 1.0e-5_wp)
  end subroutine check_ring

  !> A grain in still air reaches -g τ; the update is exact whatever the step.
  subroutine check_fall(failures)
    integer, intent(inout) :: failures
    real(wp), parameter :: air(3) = [3.0_wp, 0.0_wp, 0.0_wp]
    real(wp) :: x(3), v(3), x1(3), v1(3), tau
    integer :: k

    tau = response_time_of(40.0e-6_wp)
    x = 0
    v = 0
    do k = 1, 400
      call fly(x, v, 0*air, tau, 0.1_wp*tau)
    end do
    call expect(failures, 'terminal velocity', v(3)/(-gravity*tau) - 1, 1.0e-13_wp)
    x1 = 0
    v1 = 0
    call fly(x1, v1, air, tau, 2*tau)
    x = 0
    v = 0
    do k = 1, 50
      call fly(x, v, air, tau, 0.04_wp*tau)
    end do
    call expect(failures, 'one long step of drag against fifty short ones', norm2(x - x1)/norm2(x1), 1.0e-12_wp)
  end subroutine check_fall

  !> Threshold at 100 µm by hand, and the log law against itself.
  subroutine check_lift_off(failures)
    integer, intent(inout) :: failures
    real(wp), parameter :: speed = 10.0_wp, z = 0.02_wp

    call expect(failures, 'threshold friction velocity', threshold_friction_velocity(1.0e-4_wp) - 0.2373_wp, 1.0e-4_wp)
    call expect(failures, 'log law at 2 cm', speed*wall_layer_factor(z) &
                - friction_velocity(speed)/0.41_wp*log(z/1.0e-4_wp), 1.0e-12_wp)
    call expect(failures, 'log law meets the flow above it', wall_layer_factor(reference_height) - 1, 1.0e-14_wp)
  end subroutine check_lift_off

  !> The library's two methods against the loop, from loose to tight.
  subroutine check_methods(failures)
    integer, intent(inout) :: failures
    type(segment_set) :: set
    real(wp), allocatable :: target(:, :), exact(:, :), u(:, :)
    real(wp), parameter :: tolerances(3) = [1.0e-2_wp, 1.0e-4_wp, 1.0e-8_wp]
    integer :: k

    call make_segments(2000, 36, set)
    call make_targets(4000, target)
    allocate (exact, u, mold=target)
    call sum_segments(set, target, exact)
    call evaluate_by('direct', 'double', 1.0e-3_wp)
    call expect(failures, 'library, direct sum', difference(), 1.0e-12_wp)
    call evaluate_by('direct', 'single', 1.0e-3_wp)
    call expect(failures, 'library, direct sum in single precision', difference(), 1.0e-4_wp)
    do k = 1, size(tolerances)
      call evaluate_by('fmm', 'double', tolerances(k))
      call expect(failures, 'library, FMM', difference(), tolerances(k))
    end do

  contains

    subroutine evaluate_by(method, precision, tolerance)
      character(*), intent(in) :: method, precision
      real(wp), intent(in) :: tolerance
      type(induction_t) :: induction

      call induction%create(method, precision, tolerance, 0, .false.)
      call induction%evaluate(set, target, u)
      call induction%finish()
    end subroutine evaluate_by

    real(wp) function difference()
      difference = sqrt(sum((u - exact)**2)/sum(exact**2))
    end function difference
  end subroutine check_methods
end module selftest
