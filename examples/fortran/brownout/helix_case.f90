!> A prescribed wake over dusty ground, for timing and checks: four helices that contract, sink and spread along the
!> ground, cores growing with age, and targets of which four fifths lie close to the ground.
module helix_case
  use kinds, only: wp, pi
  use rotor, only: rotor_t, new_rotor
  use segments, only: segment_set
  use wake, only: core_radius_at
  use ground, only: add_images
  implicit none (type, external)
  private
  public :: make_segments, make_targets

contains

  !> `n` segments in all, half of them images.
  subroutine make_segments(n, segments_per_turn, set)
    integer, intent(in) :: n, segments_per_turn
    type(segment_set), intent(out) :: set
    type(rotor_t) :: rotor
    real(wp), allocatable :: node(:, :), core(:)
    real(wp) :: dt
    integer :: b, k, filament

    rotor = new_rotor(4, 1.0_wp, .false.)
    filament = n/(2*rotor%blades)
    dt = 2*pi/rotor%angular_speed()/segments_per_turn
    allocate (node(3, filament + 1), core(filament))
    core = core_radius_at([(k*dt, k=0, filament - 1)], rotor%circulation(), 2.0e-4_wp)
    call set%reserve(2*rotor%blades*(filament + 1))
    do b = 1, rotor%blades
      node(:, 1) = rotor%blade_point(b, 1.0_wp, 0.0_wp)
      do k = 1, filament
        node(:, k + 1) = helix_point(rotor, b, k*dt)
      end do
      call set%append_filament(node, rotor%circulation(), core)
    end do
    call add_images(set)
  end subroutine make_segments

  !> Where the prescribed wake carries a node of this age: down at 12 m/s, slower near the ground, outwards there.
  pure function helix_point(rotor, blade, age) result(x)
    type(rotor_t), intent(in) :: rotor
    integer, intent(in) :: blade
    real(wp), intent(in) :: age
    real(wp) :: x(3), sunk, spread_radius, azimuth

    sunk = 1 - exp(-12*age/rotor%height)
    spread_radius = 0.8_wp + 0.2_wp*exp(-4*sunk) + 3.2_wp*(1 - exp(-max(age - 0.4_wp, 0.0_wp)/3))
    azimuth = 2*pi*(blade - 1)/rotor%blades - rotor%angular_speed()*age
    x = rotor%radius*[spread_radius*cos(azimuth), spread_radius*sin(azimuth), 0.0_wp]
    x(3) = rotor%height*(1 - 0.85_wp*sunk) + 0.05_wp*rotor%radius*sin(3*azimuth + 40*age)
  end function helix_point

  !> `n` points within four rotor radii: four fifths in z ∈ [0, 0.01 R], the rest up to R.
  subroutine make_targets(n, target)
    integer, intent(in) :: n
    real(wp), allocatable, intent(out) :: target(:, :)
    real(wp) :: draw(3), r, radius
    type(rotor_t) :: rotor
    integer :: i

    rotor = new_rotor(4, 1.0_wp, .false.)
    radius = rotor%radius
    allocate (target(3, n))
    do i = 1, n
      call random_number(draw)
      r = 4*radius*sqrt(draw(1))
      target(:, i) = [r*cos(2*pi*draw(2)), r*sin(2*pi*draw(2)), draw(3)*radius]
      if (mod(i, 5) /= 0) target(3, i) = 0.01_wp*target(3, i)
    end do
  end subroutine make_targets
end module helix_case
