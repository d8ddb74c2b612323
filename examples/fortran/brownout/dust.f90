!> The dust: parcels that rest on the ground until the air or a falling grain lifts them, then fly with drag and gravity
!> (one-way coupled). All stand for the same mass of grains of one size.
!> In: the air's velocity where every parcel is. Out: where they go.
module dust
  use kinds, only: wp, pi, gravity, air_density, air_viscosity
  use ground, only: friction_velocity, wall_layer_factor, reference_height
  implicit none (type, external)
  private
  public :: dust_t, threshold_friction_velocity, response_time_of, fly, grain_density, median_diameter

  real(wp), parameter :: grain_density = 2650.0_wp     !< kg/m³, quartz
  real(wp), parameter :: median_diameter = 30.0e-6_wp  !< m, of the bed by mass
  real(wp), parameter :: cohesion = 3.0e-4_wp          !< kg/s², γ of Shao and Lu's threshold
  real(wp), parameter :: lift_factor = 0.111_wp        !< A of the same
  real(wp), parameter :: emission_time = 10.0_wp       !< s, see `expose`
  real(wp), parameter :: mixed_height = 0.35_wp        !< m, saltation and turbulence spread fresh dust up to here

  type :: dust_t
    integer :: n = 0
    real(wp) :: parcel_mass = 0                        !< kg
    real(wp), allocatable :: position(:, :)            !< (3, n), m; a resting parcel is kept at `reference_height`
    real(wp), allocatable :: velocity(:, :)            !< (3, n), m/s
    real(wp), allocatable :: air_before(:, :)          !< (3, n), m/s, the air it met a step ago
    real(wp), allocatable :: diameter(:)               !< (n), m
    real(wp), allocatable :: response_time(:)          !< (n), s
    real(wp), allocatable :: threshold(:)              !< (n), m/s, friction velocity that moves it
    real(wp), allocatable :: exposure(:)               !< (n), wind it has stood so far
    real(wp), allocatable :: resistance(:)             !< (n), wind it stands: exponential variates
    real(wp), allocatable :: release_height(:)         !< (n), m
    logical, allocatable  :: airborne(:)               !< (n)
  contains
    procedure :: create
    procedure :: advance
    procedure :: expose
    procedure :: release
    procedure :: settle
  end type dust_t

contains

  !> Spreads n parcels evenly over a disk. All randomness is drawn here: a run never asks for more,
  !> so that methods which agree on the air agree on the cloud.
  subroutine create(self, n, bed_radius, supply, seed)
    class(dust_t), intent(inout) :: self
    integer, intent(in) :: n, seed
    real(wp), intent(in) :: bed_radius, supply         !< m; kg/m², what the bed has to give
    real(wp), allocatable :: draw(:, :), r(:), angle(:), normal(:)

    allocate (draw(n, 6))
    call seed_random_numbers(seed)
    call random_number(draw)
    draw = max(draw, epsilon(1.0_wp))
    self%n = n
    self%parcel_mass = supply*pi*bed_radius**2/n
    r = bed_radius*sqrt(draw(:, 1))
    angle = 2*pi*draw(:, 2)
    allocate (self%position(3, n), self%velocity(3, n), self%air_before(3, n))
    self%position(1, :) = r*cos(angle)
    self%position(2, :) = r*sin(angle)
    self%position(3, :) = reference_height
    self%velocity = 0
    self%air_before = 0
    normal = sqrt(-2*log(draw(:, 3)))*cos(2*pi*draw(:, 4))
    self%diameter = min(max(median_diameter*exp(0.5_wp*normal), 5.0e-6_wp), 120.0e-6_wp)
    self%response_time = response_time_of(self%diameter)
    self%threshold = threshold_friction_velocity(self%diameter)
    self%resistance = -log(draw(:, 5))
    self%release_height = mixed_height*draw(:, 6)**2
    allocate (self%exposure(n), source=0.0_wp)
    allocate (self%airborne(n), source=.false.)
  end subroutine create

  subroutine seed_random_numbers(seed)
    integer, intent(in) :: seed
    integer :: length, k

    call random_seed(size=length)
    call random_seed(put=[(seed + 7919*k, k=1, length)])
  end subroutine seed_random_numbers

  !> Shao and Lu: grains move where u* exceeds A √(ρp/ρ g d + γ/(ρ d)): weight holds large ones, cohesion small ones.
  elemental real(wp) function threshold_friction_velocity(diameter)
    real(wp), intent(in) :: diameter

    threshold_friction_velocity = lift_factor*sqrt(grain_density/air_density*gravity*diameter &
                                                   + cohesion/(air_density*diameter))
  end function threshold_friction_velocity

  !> τ = ρp d²/(18 μ), Stokes drag.
  elemental real(wp) function response_time_of(diameter)
    real(wp), intent(in) :: diameter

    response_time_of = grain_density*diameter**2/(18*air_viscosity)
  end function response_time_of

  subroutine advance(self, air, dt)
    class(dust_t), intent(inout) :: self
    real(wp), intent(in) :: air(:, :)                  !< (3, n), m/s, potential flow of the vortices at `position`
    real(wp), intent(in) :: dt
    real(wp) :: here(3)
    integer :: i

    do i = 1, self%n
      here = air(:, i)
      if (self%airborne(i)) then
        here(1:2) = here(1:2)*wall_layer_factor(self%position(3, i))
        call fly(self%position(:, i), self%velocity(:, i), 1.5_wp*here - 0.5_wp*self%air_before(:, i), &
                 self%response_time(i), dt)
        if (self%position(3, i) <= 0) call self%settle(i)
      else
        call self%expose(i, here, dt)
      end if
      self%air_before(:, i) = here
    end do
  end subroutine advance

  !> dV/dt = (U - V)/τ - g over dt with U held: exact, so a grain may be far faster than the step.
  pure subroutine fly(x, v, air, tau, dt)
    real(wp), intent(inout) :: x(3), v(3)
    real(wp), intent(in) :: air(3), tau, dt
    real(wp) :: steady(3), keep

    steady = air - [0.0_wp, 0.0_wp, gravity*tau]
    keep = exp(-dt/tau)
    x = x + steady*dt + (v - steady)*tau*(1 - keep)
    v = steady + (v - steady)*keep
  end subroutine fly

  !> A resting parcel leaves when the wind it has stood, ∫ (u*²/u*t² - 1) dt / emission_time, exceeds its resistance:
  !> many parcels thus leave at a rate that grows with the excess of the wind's stress.
  subroutine expose(self, i, air, dt)
    class(dust_t), intent(inout) :: self
    integer, intent(in) :: i
    real(wp), intent(in) :: air(3), dt
    real(wp) :: excess

    excess = (friction_velocity(norm2(air(1:2)))/self%threshold(i))**2 - 1
    if (excess > 0) self%exposure(i) = self%exposure(i) + excess*dt/emission_time
    if (self%exposure(i) >= self%resistance(i)) call self%release(i, air(1:2))
  end subroutine expose

  !> A parcel leaves the ground with the air's horizontal velocity at the height up to which it is mixed.
  subroutine release(self, i, air)
    class(dust_t), intent(inout) :: self
    integer, intent(in) :: i
    real(wp), intent(in) :: air(2)                     !< m/s, at `reference_height`

    self%airborne(i) = .true.
    self%position(3, i) = self%release_height(i)
    self%velocity(1:2, i) = air*wall_layer_factor(self%release_height(i))
    self%velocity(3, i) = 0
  end subroutine release

  subroutine settle(self, i)
    class(dust_t), intent(inout) :: self
    integer, intent(in) :: i

    self%airborne(i) = .false.
    self%exposure(i) = 0
    self%position(3, i) = reference_height
    self%velocity(:, i) = 0
  end subroutine settle
end module dust
