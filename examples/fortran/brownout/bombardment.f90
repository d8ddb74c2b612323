!> Bombardment: grains that fall with enough speed dig a crater, and what was in it flies. Crater of Lu & Shao (1999).
!> In: dust before and after a step in which the library has let it bounce. Out: what struck the bed, which parcels fly.
module bombardment
  use kinds, only: wp, pi, gravity
  use dust, only: dust_t, grain_density, median_diameter
  implicit none (type, external)
  private
  public :: bombardment_t, crater_share, digs, struck, left_with

  real(wp), parameter :: bulk_density = 1000.0_wp      !< kg/m³, of the bed
  real(wp), parameter :: cell = 1.0_wp                 !< m, of the squares in which what was ejected is counted

  type :: bombardment_t
    real(wp) :: pressure                               !< Pa, plastic pressure of the bed; 0: no bombardment
    real(wp) :: restitution, friction
    integer  :: cells = 0                              !< squares along a side
    integer  :: impacts = 0, ejected = 0               !< parcels so far
    real(wp), allocatable :: owed(:, :)                !< parcels that each square has to give
    real(wp), allocatable :: wind(:, :, :)             !< (2, …), m/s, of the last grain that struck there before its impact
  contains
    procedure :: create
    procedure :: strike
    procedure :: eject
    procedure, private :: square
  end type bombardment_t

contains

  subroutine create(self, pressure, restitution, friction, bed_radius)
    class(bombardment_t), intent(inout) :: self
    real(wp), intent(in) :: pressure, restitution, friction, bed_radius

    self%pressure = pressure
    self%restitution = restitution
    self%friction = friction
    self%cells = 2*ceiling(bed_radius/cell)
    allocate (self%owed(self%cells, self%cells), source=0.0_wp)
    allocate (self%wind(2, self%cells, self%cells), source=0.0_wp)
  end subroutine create

  !> Mass that a grain throws out of the bed, in masses of the grain, whatever its size. The crater's volume is
  !> m U²/(4 p) (sin 2α - 4 sin²α + 7.5 π U sin³α/(β d)), β = √(2 p d/m), m = π ρp d³/6.
  elemental real(wp) function crater_share(along, down, pressure)
    real(wp), intent(in) :: along, down                !< m/s, velocity at the impact: U cos α, U sin α
    real(wp), intent(in) :: pressure
    real(wp) :: speed, sine, cosine

    speed = hypot(along, down)
    crater_share = 0
    if (.not. speed > 0) return
    sine = down/speed
    cosine = along/speed
    crater_share = bulk_density*speed**2/(4*pressure)*max(0.0_wp, 2*sine*cosine - 4*sine**2 &
                   + 7.5_wp*pi*sine**3*speed*sqrt(pi*grain_density/(12*pressure)))
  end function crater_share

  !> Whether the crater has room for a grain of the bed.
  elemental logical function digs(share, diameter)
    real(wp), intent(in) :: share, diameter

    digs = share*diameter**3 >= median_diameter**3
  end function digs

  !> Whether a parcel has bounced in a step: it flies up, at a height that the flight from the ground explains.
  elemental logical function struck(fell, height, rises, dt)
    real(wp), intent(in) :: fell                       !< m/s, downwards before the step
    real(wp), intent(in) :: height, rises, dt          !< m, m/s, after it; s

    struck = fell > 0 .and. rises > 0 .and. height <= (rises + 0.5_wp*gravity*dt)*dt
  end function struck

  !> Speed with which a parcel left the ground, from its height and its speed a little later.
  elemental real(wp) function left_with(height, rises)
    real(wp), intent(in) :: height, rises              !< m, m/s

    left_with = sqrt(rises**2 + 2*gravity*height)
  end function left_with

  !> One parcel before and after a step. The velocity after a bounce tells that before it.
  subroutine strike(self, velocity_before, position, velocity, diameter, dt)
    class(bombardment_t), intent(inout) :: self
    real(wp), intent(in) :: velocity_before(3), position(3), velocity(3), diameter, dt
    real(wp) :: share
    integer :: at(2)

    if (self%pressure <= 0 .or. self%restitution <= 0 .or. self%friction >= 1) return
    if (.not. struck(-velocity_before(3), position(3), velocity(3), dt)) return
    self%impacts = self%impacts + 1
    share = crater_share(norm2(velocity(1:2))/(1 - self%friction), left_with(position(3), velocity(3))/self%restitution, &
                         self%pressure)
    at = self%square(position)
    if (.not. digs(share, diameter) .or. any(at < 1 .or. at > self%cells)) return
    self%owed(at(1), at(2)) = self%owed(at(1), at(2)) + share
    self%wind(:, at(1), at(2)) = velocity(1:2)/(1 - self%friction)
  end subroutine strike

  !> Resting parcels of squares that owe one fly. Where none is left, the debt is forgotten.
  subroutine eject(self, dust, leaving)
    class(bombardment_t), intent(inout) :: self
    type(dust_t), intent(inout) :: dust
    integer, allocatable, intent(inout) :: leaving(:)
    integer :: i, at(2), first

    if (.not. any(self%owed >= 1)) return
    first = size(leaving)
    do i = 1, dust%n
      if (dust%airborne(i)) cycle
      at = self%square(dust%position(:, i))
      if (any(at < 1 .or. at > self%cells)) cycle
      if (self%owed(at(1), at(2)) < 1) cycle
      self%owed(at(1), at(2)) = self%owed(at(1), at(2)) - 1
      call dust%release(i, self%wind(:, at(1), at(2)))
      leaving = [leaving, i]
    end do
    self%ejected = self%ejected + size(leaving) - first
    where (self%owed >= 1) self%owed = 0
  end subroutine eject

  pure function square(self, position) result(at)
    class(bombardment_t), intent(in) :: self
    real(wp), intent(in) :: position(3)
    integer :: at(2)

    at = self%cells/2 + 1 + floor(position(1:2)/cell)
  end function square
end module bombardment
