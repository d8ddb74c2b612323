!> The rotor: size, speed, circulation of its blades, and where it flies.
module rotor
  use kinds, only: wp, pi
  implicit none (type, external)
  private
  public :: rotor_t, new_rotor

  type :: rotor_t
    integer  :: blades
    real(wp) :: radius = 5.5_wp                  !< m
    real(wp) :: root = 0.2_wp                    !< where the lifting blade begins, in radii
    real(wp) :: tip_speed = 200.0_wp             !< m/s
    real(wp) :: thrust_coefficient = 0.008_wp    !< T / (ρ π R² (ΩR)²)
    real(wp) :: height                           !< m, of the hover, or of the rotor when the wheels stand on the ground
    logical  :: lands                            !< an approach comes first
    real(wp) :: approach_time = 4.0_wp           !< s, touchdown is at its end
    real(wp) :: approach_length = 5.0_wp         !< radii flown in that time
    real(wp) :: approach_height = 2.2_wp         !< radii, where the approach begins
  contains
    procedure :: angular_speed
    procedure :: circulation
    procedure :: hub
    procedure :: blade_point
    procedure :: flight_path
  end type rotor_t

contains

  pure function new_rotor(blades, height_in_radii, lands) result(self)
    integer, intent(in) :: blades
    real(wp), intent(in) :: height_in_radii
    logical, intent(in) :: lands
    type(rotor_t) :: self

    self%blades = blades
    self%height = height_in_radii*self%radius
    self%lands = lands
  end function new_rotor

  pure real(wp) function angular_speed(self)
    class(rotor_t), intent(in) :: self

    angular_speed = self%tip_speed/self%radius
  end function angular_speed

  !> Γ of one blade, constant along it: Nb ρ Γ Ω R²/2 carries the thrust.
  pure real(wp) function circulation(self)
    class(rotor_t), intent(in) :: self

    circulation = 2*pi*self%thrust_coefficient*self%tip_speed*self%radius/self%blades
  end function circulation

  !> Hub position at time t: at rest over the origin, or coming in along x with a constant deceleration. The rate of descent
  !> is zero at both ends of the approach; from touchdown on the rotor stays where it is.
  pure function hub(self, t) result(x)
    class(rotor_t), intent(in) :: self
    real(wp), intent(in) :: t
    real(wp) :: x(3), left

    x = [0.0_wp, 0.0_wp, self%height]
    if (self%lands .and. t < self%approach_time) then
      left = 1 - t/self%approach_time
      x(1) = -self%approach_length*self%radius*left**2
      x(3) = self%height + (self%approach_height*self%radius - self%height)*left**2*(3 - 2*left)
    end if
  end function hub

  !> What the flight does at time t, in a word.
  pure function flight_path(self, t) result(word)
    class(rotor_t), intent(in) :: self
    real(wp), intent(in) :: t
    character(:), allocatable :: word

    word = 'hover'
    if (self%lands) word = 'approach'
    if (self%lands .and. t >= self%approach_time) word = 'on the ground'
  end function flight_path

  !> Point of a blade at `r` radii; blades turn counter-clockwise seen from above.
  pure function blade_point(self, blade, r, t) result(x)
    class(rotor_t), intent(in) :: self
    integer, intent(in) :: blade
    real(wp), intent(in) :: r, t
    real(wp) :: x(3), azimuth

    azimuth = self%angular_speed()*t + 2*pi*(blade - 1)/self%blades
    x = self%hub(t) + r*self%radius*[cos(azimuth), sin(azimuth), 0.0_wp]
  end function blade_point
end module rotor
