!> One run: rotor, wake and dust, and the step that drives them. Wake and dust move in a flow of the library (`flow_step`); or,
!> to compare the methods of one sum, the program moves them itself and asks for the air's velocity at all nodes and all dust.
module simulation
  use kinds, only: wp, pi
  use options, only: run_options
  use rotor, only: rotor_t, new_rotor
  use segments, only: segment_set
  use wake, only: wake_t
  use dust, only: dust_t
  use ground, only: add_images
  use induced_velocity, only: induction_t
  use flow_step, only: stepper_t
  use cloud, only: cloud_t
  use sight, only: sight_t, look
  implicit none (type, external)
  private
  public :: simulation_t

  real(wp), parameter :: bed_radius = 6.0_wp           ! rotor radii
  real(wp), parameter :: cloud_height = 2.0_wp         ! rotor radii, of the grid over the bed
  integer, parameter :: growth = 4                     ! segments that a shed one may become by splitting

  type :: simulation_t
    type(rotor_t) :: rotor
    type(wake_t) :: wake
    type(dust_t) :: dust
    type(segment_set) :: segments                      !< bound and free vortices, then their images; with a flow the free ones
    character(:), allocatable :: method                !< flow, fmm, direct or loop
    type(stepper_t) :: stepper                         !< where the method is flow
    type(induction_t) :: induction                     !< where it is another
    integer  :: steps = 0                              !< done so far
    real(wp) :: time = 0, dt = 0                       !< s
    type(cloud_t) :: cloud                             !< of the latest step
    type(sight_t) :: sight
    real(wp), allocatable :: target(:, :)              !< (3, wake nodes + dust), m; the tail may be unused
    real(wp), allocatable :: velocity(:, :)            !< the same shape, m/s
  contains
    procedure :: create
    procedure :: step
    procedure :: resume
    procedure :: seconds
    procedure :: finish
    procedure, private :: step_here
  end type simulation_t

contains

  subroutine create(self, run)
    class(simulation_t), intent(inout) :: self
    type(run_options), intent(in) :: run
    integer :: shed
    real(wp) :: bed

    shed = run%segments_per_turn*run%wake_turns
    self%method = run%method
    self%rotor = new_rotor(run%blades, run%height, run%flight == 'landing')
    self%dt = 2*pi/self%rotor%angular_speed()/run%segments_per_turn
    bed = bed_radius*self%rotor%radius
    call self%wake%create(self%rotor, self%dt, run%squire, shed, merge(growth, 1, run%method == 'flow' .and. run%split > 0))
    call self%dust%create(run%particles, bed, run%supply, run%seed)
    call self%cloud%create([-bed, -bed, 0.0_wp], [2*bed, 2*bed, cloud_height*self%rotor%radius], run%cell)
    call self%segments%reserve(2*run%blades*self%wake%capacity)
    if (run%method == 'flow') then
      call self%stepper%create(run, self%rotor, bed)
      return
    end if
    call self%induction%create(run%method, run%precision, run%tolerance, run%threads, run%reproducible)
    allocate (self%target(3, run%blades*(shed + 1) + run%particles))
    allocate (self%velocity, mold=self%target)
  end subroutine create

  subroutine step(self)
    class(simulation_t), intent(inout) :: self

    self%steps = self%steps + 1
    self%time = self%steps*self%dt
    if (self%method == 'flow') then
      call self%stepper%step(self%wake, self%dust, self%rotor, self%segments, self%steps, self%time, self%dt)
    else
      call self%step_here()
    end if
    call self%cloud%fill(self%dust)
    self%sight = look(self%rotor, self%cloud, self%time)
  end subroutine step

  !> After `steps` of an earlier run, whose wake and dust are there.
  subroutine resume(self)
    class(simulation_t), intent(inout) :: self

    self%time = self%steps*self%dt
    call self%cloud%fill(self%dust)
    self%sight = look(self%rotor, self%cloud, self%time)
  end subroutine resume

  !> One sum; wake and dust by Adams–Bashforth 2.
  subroutine step_here(self)
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

    call self%wake%advance(self%velocity(:, :nodes), self%rotor, self%time)
    call self%dust%advance(self%velocity(:, nodes + 1:n), self%dt)
  end subroutine step_here

  !> Spent in the library so far.
  pure real(wp) function seconds(self)
    class(simulation_t), intent(in) :: self

    seconds = merge(self%stepper%seconds, self%induction%seconds, self%method == 'flow')
  end function seconds

  subroutine finish(self)
    class(simulation_t), intent(inout) :: self

    if (self%method == 'flow') then
      call self%stepper%finish()
    else
      call self%induction%finish()
    end if
  end subroutine finish
end module simulation
