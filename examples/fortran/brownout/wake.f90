!> The free wake: one tip vortex a blade, a chain of straight segments that drifts with the air.
!> In: the rotor, then every step the air's velocity at the nodes. Out: segments and nodes.
module wake
  use kinds, only: wp, air_density, air_viscosity
  use rotor, only: rotor_t
  use segments, only: segment_set
  implicit none (type, external)
  private
  public :: wake_t, core_radius_at

  integer, parameter :: tip = 2                        !< node 1 is the blade's root, node 2 its tip; the others are free

  type :: wake_t
    integer  :: blades
    integer  :: nodes = tip                            !< live nodes of a filament
    integer  :: capacity                               !< the oldest node beyond it is dropped
    real(wp) :: circulation, dt
    real(wp), allocatable :: node(:, :, :)             !< (3, capacity, blades), m, from root over tip to the oldest
    real(wp), allocatable :: velocity_before(:, :, :)  !< the same shape, m/s, of the step before
  contains
    procedure :: create
    procedure :: attach
    procedure :: age
    procedure :: node_age
    procedure :: put_segments
    procedure :: put_blades
    procedure :: put_free
    procedure :: shed
    procedure :: target_count
    procedure :: put_targets
    procedure :: advance
  end type wake_t

contains

  subroutine create(self, rotor, dt, segments_per_filament)
    class(wake_t), intent(inout) :: self
    type(rotor_t), intent(in) :: rotor
    real(wp), intent(in) :: dt
    integer, intent(in) :: segments_per_filament

    self%blades = rotor%blades
    self%capacity = segments_per_filament + tip
    self%circulation = rotor%circulation()
    self%dt = dt
    allocate (self%node(3, self%capacity, self%blades))
    allocate (self%velocity_before(3, self%capacity, self%blades), source=0.0_wp)
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

  !> Seconds since segment k of a filament left the blade; zero on the blade. One segment is shed every step.
  elemental real(wp) function age(self, k)
    class(wake_t), intent(in) :: self
    integer, intent(in) :: k

    age = max(0.0_wp, k - tip + 0.5_wp)*self%dt
  end function age

  !> Seconds since node k left the blade.
  elemental real(wp) function node_age(self, k)
    class(wake_t), intent(in) :: self
    integer, intent(in) :: k

    node_age = max(0, k - tip)*self%dt
  end function node_age

  !> Core growth of Lamb and Oseen with Squire's eddy viscosity: c² = c0² + 4 α δ ν t, δ = 1 + a1 Γ/ν.
  elemental real(wp) function core_radius_at(age, circulation)
    real(wp), intent(in) :: age, circulation
    real(wp), parameter :: alpha = 1.25643_wp, a1 = 2.0e-4_wp, initial = 0.08_wp   ! initial core, m
    real(wp), parameter :: nu = air_viscosity/air_density

    core_radius_at = sqrt(initial**2 + 4*alpha*(nu + a1*abs(circulation))*age)
  end function core_radius_at

  subroutine put_segments(self, set)
    class(wake_t), intent(in) :: self
    type(segment_set), intent(inout) :: set
    real(wp) :: core(self%nodes - 1)
    integer :: b, k

    core = core_radius_at(self%age([(k, k=1, self%nodes - 1)]), self%circulation)
    do b = 1, self%blades
      call set%append_filament(self%node(:, :self%nodes, b), self%circulation, core)
    end do
  end subroutine put_segments

  !> From root to tip of each blade; the tips are the even points.
  subroutine put_blades(self, set)
    class(wake_t), intent(in) :: self
    type(segment_set), intent(inout) :: set
    integer :: b

    do b = 1, self%blades
      call set%append_filament(self%node(:, :tip, b), self%circulation, [core_radius_at(0.0_wp, self%circulation)])
    end do
  end subroutine put_blades

  !> From the tip of each blade to the oldest node, one blade after the other; nothing before the first step.
  subroutine put_free(self, set)
    class(wake_t), intent(in) :: self
    type(segment_set), intent(inout) :: set
    real(wp) :: core(tip:self%nodes - 1)
    integer :: b, k

    if (self%nodes == tip) return
    core = core_radius_at(self%age([(k, k=tip, self%nodes - 1)]), self%circulation)
    do b = 1, self%blades
      call set%append_filament(self%node(:, tip:self%nodes, b), self%circulation, core)
    end do
  end subroutine put_free

  !> After a step: nodes of `put_free` and tips have moved; each node becomes the next, and a new one is shed at each tip.
  subroutine shed(self, moved, tips, rotor, t)
    class(wake_t), intent(inout) :: self
    real(wp), intent(in) :: moved(:, :)                !< (3, free nodes of all blades), m; none before the first step
    real(wp), intent(in) :: tips(:, :)                 !< (3, blades), m
    type(rotor_t), intent(in) :: rotor
    real(wp), intent(in) :: t                          !< s, end of the step
    integer :: b, last, first

    last = min(self%nodes, self%capacity - 1)
    do b = 1, self%blades
      first = (b - 1)*(self%nodes - tip + 1)           ! the tip's column is the next one
      self%node(:, tip + 2:last + 1, b) = moved(:, first + 2:first + last - tip + 1)
      self%node(:, tip + 1, b) = tips(:, b)
    end do
    self%nodes = last + 1
    call self%attach(rotor, t)
  end subroutine shed

  !> Free nodes, whose velocity is wanted.
  pure integer function target_count(self)
    class(wake_t), intent(in) :: self

    target_count = (self%nodes - tip + 1)*self%blades
  end function target_count

  subroutine put_targets(self, target)
    class(wake_t), intent(in) :: self
    real(wp), intent(out) :: target(:, :)

    target = reshape(self%node(:, tip:self%nodes, :), [3, self%target_count()])
  end subroutine put_targets

  !> Drifts all free nodes by one step (Adams–Bashforth 2; Euler for a node's first), then sheds a new one at each tip.
  subroutine advance(self, velocity, rotor, t)
    class(wake_t), intent(inout) :: self
    real(wp), intent(in) :: velocity(:, :)             !< (3, target_count()), m/s
    type(rotor_t), intent(in) :: rotor
    real(wp), intent(in) :: t                          !< s, end of the step
    real(wp) :: u(3)
    integer :: b, k, last, column

    last = min(self%nodes, self%capacity - 1)
    do b = 1, self%blades
      do k = last, tip, -1
        column = (b - 1)*(self%nodes - tip + 1) + k - tip + 1
        u = velocity(:, column)
        if (k > tip) u = 1.5_wp*u - 0.5_wp*self%velocity_before(:, k, b)
        self%node(:, k + 1, b) = self%node(:, k, b) + self%dt*u
        self%velocity_before(:, k + 1, b) = velocity(:, column)
      end do
    end do
    self%nodes = last + 1
    call self%attach(rotor, t)
  end subroutine advance
end module wake
