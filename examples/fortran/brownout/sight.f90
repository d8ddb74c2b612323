!> What the pilot sees: the optical depth between the cockpit and a point on the ground ahead, and the visual range.
!> In: rotor and cloud. Out: the numbers of a step.
module sight
  use kinds, only: wp
  use rotor, only: rotor_t
  use cloud, only: cloud_t
  implicit none (type, external)
  private
  public :: sight_t, look, visual_range

  real(wp), parameter :: eye(3) = [1.5_wp, -0.5_wp, -1.6_wp]   !< m, of the pilot on the right, from the hub
  real(wp), parameter :: ahead = 20.0_wp                       !< m, from there to the point on the ground
  real(wp), parameter :: contrast = 0.02_wp                    !< the smallest that an eye notices (Koschmieder)

  type :: sight_t
    real(wp) :: optical_depth = 0
    real(wp) :: visual_range = huge(1.0_wp)            !< m, in a cloud that is everywhere as on this line
    real(wp) :: concentration = 0                      !< kg/m³, the highest in a cell
    real(wp) :: mass = 0                               !< kg of dust in the air
  end type sight_t

contains

  pure function look(rotor, cloud, t) result(seen)
    type(rotor_t), intent(in) :: rotor
    type(cloud_t), intent(in) :: cloud
    real(wp), intent(in) :: t
    type(sight_t) :: seen
    real(wp) :: from(3), to(3)

    from = rotor%hub(t) + eye
    to = [from(1) + ahead, from(2), 0.0_wp]
    seen%optical_depth = cloud%optical_depth(from, to)
    seen%visual_range = visual_range(seen%optical_depth, norm2(to - from))
    seen%concentration = maxval(cloud%concentration)
    seen%mass = cloud%mass()
  end function look

  !> Distance at which black on white keeps the smallest contrast: -ln(contrast)/extinction, at most 100 km.
  elemental real(wp) function visual_range(optical_depth, length)
    real(wp), intent(in) :: optical_depth, length

    visual_range = min(1.0e5_wp, -log(contrast)*length/max(optical_depth, tiny(1.0_wp)**0.25_wp))
  end function visual_range
end module sight
