!> The ground, z = 0: image vortices that keep the air out of it, and the log law of the air just above it.
module ground
  use kinds, only: wp
  use segments, only: segment_set
  implicit none (type, external)
  private
  public :: add_images, friction_velocity, wall_layer_factor, reference_height

  real(wp), parameter :: karman = 0.41_wp
  real(wp), parameter :: roughness = 1.0e-4_wp         !< m, height where the log law vanishes: flat sand

  !> m, top of the wall layer: the potential flow of the vortices is taken to drive the log law from here.
  real(wp), parameter :: reference_height = 0.1_wp

contains

  !> Mirrors all segments at z = 0: the same order of points, the opposite circulation. No air then passes the ground.
  subroutine add_images(set)
    type(segment_set), intent(inout) :: set
    integer :: np, n

    np = set%n_points
    n = set%n
    set%points(1:2, np + 1:2*np) = set%points(1:2, :np)
    set%points(3, np + 1:2*np) = -set%points(3, :np)
    set%connectivity(:, n + 1:2*n) = set%connectivity(:, :n) + np
    set%circulation(n + 1:2*n) = -set%circulation(:n)
    set%core_radius(n + 1:2*n) = set%core_radius(:n)
    set%n_points = 2*np
    set%n = 2*n
  end subroutine add_images

  !> u* from the horizontal speed at `reference_height`: U(z) = u*/κ ln(z/z0).
  elemental real(wp) function friction_velocity(speed)
    real(wp), intent(in) :: speed

    friction_velocity = karman*speed/log(reference_height/roughness)
  end function friction_velocity

  !> What the log law leaves of the horizontal velocity at height z inside the wall layer; 1 above it.
  elemental real(wp) function wall_layer_factor(z)
    real(wp), intent(in) :: z

    wall_layer_factor = 1
    if (z < reference_height) &
      wall_layer_factor = log(max(z, roughness)/roughness)/log(reference_height/roughness)
  end function wall_layer_factor
end module ground
