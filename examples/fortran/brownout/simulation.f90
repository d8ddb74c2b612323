!> One run: rotor, wake and dust, and the step that drives them. This is where the library is used:
!> every step hands it all vortex segments and asks for the air's velocity at all wake nodes and all dust.
module simulation
  use kinds, only: wp, pi
  use options, only: run_options
  use rotor, only: rotor_t, new_rotor
  use segments, only: segment_set
  use wake, only: wake_t
  use dust, only: dust_t
  use ground, only: add_images
  use induced_velocity, only: induction_t
  implicit none (type, external)
  private
  public :: simulation_t

  real(wp), parameter :: bed_radius = 6.0_wp           ! rotor radii

  type :: simulation_t
    type(rotor_t) :: rotor
    type(wake_t) :: wake
    type(dust_t) :: dust
    type(segment_set) :: segments                      !< bound and free vortices, then their images
    type(induction_t) :: induction
    real(wp) :: time = 0, dt = 0                       !< s
    real(wp), allocatable :: target(:, :)              !< (3, wake nodes + dust), m; the tail may be unused
    real(wp), allocatable :: velocity(:, :)            !< the same shape, m/s
  contains
    procedure :: create
    procedure :: step
    procedure :: finish
  end type simulation_t

contains

  subroutine create(self, run)
    class(simulation_t), intent(inout) :: self
    type(run_options), intent(in) :: run
    integer :: shed

    shed = min(run%segments_per_turn*run%wake_turns, run%steps)
    self%rotor = new_rotor(run%blades, run%height, run%flight == 'landing')
    self%dt = 2*pi/self%rotor%angular_speed()/run%segments_per_turn
    call self%wake%create(self%rotor, self%dt, shed)
    call self%dust%create(run%particles, bed_radius*self%rotor%radius, run%seed)
    call self%segments%reserve(2*run%blades*(shed + 2))
    call self%induction%create(run%method, run%precision, run%tolerance, run%threads)
    allocate (self%target(3, run%blades*(shed + 1) + run%particles))
    allocate (self%velocity, mold=self%target)
  end subroutine create

  subroutine step(self)
    class(simulation_t), intent(inout) :: self
    integer :: nodes, n

    call self%segments%clear()
    call self%wake%put_segments(self%segments)
    call add_images(self%segments)

    nodes = self%wake%target_count()
    n = nodes + self%dust%n
    call self%wake%put_targets(self%target(:, :nodes))
    self%target(:, nodes + 1:n) = self%dust%position
    call self%induction%evaluate(self%segments, self%target(:, :n), self%velocity(:, :n))

    self%time = self%time + self%dt
    call self%wake%advance(self%velocity(:, :nodes), self%rotor, self%time)
    call self%dust%advance(self%velocity(:, nodes + 1:n), self%dt)
  end subroutine step

  subroutine finish(self)
    class(simulation_t), intent(inout) :: self

    call self%induction%finish()
  end subroutine finish
end module simulation
