!> The free wake: one tip vortex a blade, a chain of straight segments that drifts with the air.
!> In: the rotor, then every step where the chains have gone, or the air's velocity at their nodes. Out: segments and nodes.
!> Chains may differ in length: a flow of the library splits segments that grow long.
module wake
  use kinds, only: wp, air_density, air_viscosity
  use rotor, only: rotor_t
  use segments, only: segment_set
  implicit none (type, external)
  private
  public :: wake_t, core_radius_at, tip, kinematic_viscosity

  integer, parameter :: tip = 2                        !< node 1 is the blade's root, node 2 its tip; the others are free
  real(wp), parameter :: initial_core = 0.08_wp        !< m, no core gets thinner
  real(wp), parameter :: kinematic_viscosity = air_viscosity/air_density   !< m²/s

  type :: wake_t
    integer  :: blades
    integer  :: capacity                               !< nodes that a chain may have
    integer, allocatable :: nodes(:)                   !< (blades), live nodes of each
    real(wp) :: circulation, dt
    real(wp) :: squire                                 !< a1 of Squire's δ = 1 + a1 Γ/ν
    real(wp) :: oldest                                 !< s, nodes beyond this age are dropped
    real(wp), allocatable :: node(:, :, :)             !< (3, capacity, blades), m, from root over tip to the oldest
    real(wp), allocatable :: node_age(:, :)            !< (capacity, blades), s since it left the blade
    real(wp), allocatable :: core(:, :)                !< (capacity, blades), m, of the segment from this node to the next
    real(wp), allocatable :: velocity_before(:, :, :)  !< (3, capacity, blades), m/s, of the step before
  contains
    procedure :: create
    procedure :: attach
    procedure :: put_segments
    procedure :: put_blades
    procedure :: put_free
    procedure :: renew
    procedure :: free_count
    procedure :: target_count
    procedure :: put_targets
    procedure :: advance
  end type wake_t

contains

  !> `growth`: how many times as many segments as are shed a chain may come to have by splitting.
  subroutine create(self, rotor, dt, squire, segments_per_filament, growth)
    class(wake_t), intent(inout) :: self
    type(rotor_t), intent(in) :: rotor
    real(wp), intent(in) :: dt, squire
    integer, intent(in) :: segments_per_filament, growth

    self%blades = rotor%blades
    self%capacity = growth*segments_per_filament + tip + 1
    self%circulation = rotor%circulation()
    self%dt = dt
    self%squire = squire
    self%oldest = (segments_per_filament + 0.5_wp)*dt
    allocate (self%nodes(self%blades), source=tip)
    allocate (self%node(3, self%capacity, self%blades), source=0.0_wp)
    allocate (self%velocity_before, source=self%node)
    allocate (self%node_age(self%capacity, self%blades), source=0.0_wp)
    allocate (self%core(self%capacity, self%blades), source=initial_core)
    call self%attach(rotor, 0.0_wp)
  end subroutine create

  !> Root and tip nodes go where the blades are.
  subroutine attach(self, rotor, t)
    class(wake_t), intent(inout) :: self
    type(rotor_t), intent(in) :: rotor
    real(wp), intent(in) :: t
    integer :: b

    do b = 1, self%blades
      self%node(:, 1, b) = rotor%blade_point(b, rotor%root, t)
      self%node(:, tip, b) = rotor%blade_point(b, 1.0_wp, t)
    end do
  end subroutine attach

  !> Core growth of Lamb and Oseen with Squire's eddy viscosity: c² = c0² + 4 α δ ν t, δ = 1 + a1 Γ/ν; without strain.
  elemental real(wp) function core_radius_at(age, circulation, squire)
    real(wp), intent(in) :: age, circulation, squire
    real(wp), parameter :: alpha = 1.25643_wp

    core_radius_at = sqrt(initial_core**2 + 4*alpha*(kinematic_viscosity + squire*abs(circulation))*age)
  end function core_radius_at

  subroutine put_segments(self, set)
    class(wake_t), intent(in) :: self
    type(segment_set), intent(inout) :: set
    integer :: b

    do b = 1, self%blades
      associate (n => self%nodes(b))
        call set%append_filament(self%node(:, :n, b), self%circulation, self%core(:n - 1, b))
      end associate
    end do
  end subroutine put_segments

  !> From root to tip of each blade; the tips are the even points.
  subroutine put_blades(self, set)
    class(wake_t), intent(in) :: self
    type(segment_set), intent(inout) :: set
    integer :: b

    do b = 1, self%blades
      call set%append_filament(self%node(:, :tip, b), self%circulation, self%core(:1, b))
    end do
  end subroutine put_blades

  !> From the tip of each blade to the oldest node, one blade after the other; nothing before the first step.
  subroutine put_free(self, set)
    class(wake_t), intent(in) :: self
    type(segment_set), intent(inout) :: set
    integer :: b

    do b = 1, self%blades
      associate (n => self%nodes(b))
        if (n > tip) call set%append_filament(self%node(:, tip:n, b), self%circulation, self%core(tip:n - 1, b))
      end associate
    end do
  end subroutine put_free

  !> After a step: the chain of blade b, from the node that was at its tip to the oldest, is now at `x`, had these ages before
  !> the step and has these cores. The segment from it to the tip's new position, which `attach` sets, is the one that is shed.
  subroutine renew(self, b, x, age, core)
    class(wake_t), intent(inout) :: self
    integer, intent(in) :: b
    real(wp), intent(in) :: x(:, :), age(:)            !< (3, m), m; (m), s
    real(wp), intent(in) :: core(:)                    !< (m - 1), m
    integer :: m

    m = min(count(age + self%dt <= self%oldest), self%capacity - tip)
    self%node(:, tip + 1:tip + m, b) = x(:, :m)
    self%node_age(tip + 1:tip + m, b) = age(:m) + self%dt
    self%core(tip + 1:tip + m - 1, b) = max(core(:m - 1), initial_core)
    self%core(tip, b) = core_radius_at(0.5_wp*self%dt, self%circulation, self%squire)
    self%nodes(b) = tip + m
  end subroutine renew

  !> Free segments.
  pure integer function free_count(self)
    class(wake_t), intent(in) :: self

    free_count = sum(self%nodes - tip)
  end function free_count

  !> Free nodes, whose velocity is wanted.
  pure integer function target_count(self)
    class(wake_t), intent(in) :: self

    target_count = sum(self%nodes - tip + 1)
  end function target_count

  subroutine put_targets(self, target)
    class(wake_t), intent(in) :: self
    real(wp), intent(out) :: target(:, :)
    integer :: b, first

    first = 0
    do b = 1, self%blades
      associate (m => self%nodes(b) - tip + 1)
        target(:, first + 1:first + m) = self%node(:, tip:self%nodes(b), b)
        first = first + m
      end associate
    end do
  end subroutine put_targets

  !> Drifts all free nodes by one step (Adams–Bashforth 2; Euler for a node's first), then sheds a new one at each tip.
  subroutine advance(self, velocity, rotor, t)
    class(wake_t), intent(inout) :: self
    real(wp), intent(in) :: velocity(:, :)             !< (3, target_count()), m/s
    type(rotor_t), intent(in) :: rotor
    real(wp), intent(in) :: t                          !< s, end of the step
    integer :: b, first, m

    first = 0
    do b = 1, self%blades
      m = self%nodes(b) - tip + 1
      call drift(self%node(:, tip:self%nodes(b), b), velocity(:, first + 1:first + m), self%node_age(tip:self%nodes(b), b))
      first = first + m
    end do
    call self%attach(rotor, t)

  contains

    subroutine drift(node, u, age)
      real(wp), intent(in) :: node(:, :), u(:, :), age(:)
      real(wp) :: x(3, m), old(m)

      x = node + self%dt*u
      x(:, 2:) = x(:, 2:) + 0.5_wp*self%dt*(u(:, 2:) - self%velocity_before(:, tip + 1:tip + m - 1, b))
      old = age
      call self%renew(b, x, old, core_radius_at(old(:m - 1) + 1.5_wp*self%dt, self%circulation, self%squire))
      self%velocity_before(:, tip + 1:self%nodes(b), b) = u(:, :self%nodes(b) - tip)
    end subroutine drift
  end subroutine advance
end module wake
