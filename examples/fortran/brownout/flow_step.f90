!> The step on a flow of libwakefmm: wake and airborne dust move in the library, together and by one sum a stage.
!> In: wake, dust and rotor before a step. Out: after it. What the program adds is what a flow leaves to its host: the blades, the
!> newest segment, and which parcels leave the ground.
module flow_step
  use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
  use kinds, only: wp, pi
  use options, only: run_options
  use rotor, only: rotor_t
  use segments, only: segment_set
  use wake, only: wake_t
  use dust, only: dust_t, grain_density
  use bombardment, only: bombardment_t
  use flow_state, only: make_flow, load_flow
  use flow_wake, only: set_vortices, take_wake
  use progress, only: wall_clock
  use wakefmm, only: wfmm_session, wfmm_session_destroy, wfmm_flow, wfmm_flow_destroy, wfmm_flow_add_dust, &
    wfmm_flow_remove, wfmm_flow_advance, wfmm_flow_get, wfmm_flow_velocity, wfmm_flow_save, wfmm_flow_time, &
    WFMM_KIND_DUST, WFMM_QUANTITY_POSITION, WFMM_QUANTITY_VELOCITY
  implicit none (type, external)
  private
  public :: stepper_t

  !> Steps between two looks at the wind that resting parcels stand: it is most of the work, and a blade passes in nine steps.
  integer, parameter :: wind_every = 2

  type :: stepper_t
    real(wp) :: seconds = 0                            !< spent in the library so far
    type(bombardment_t) :: bombardment
    integer, allocatable :: row(:)                     !< the parcel in each row of the flow's dust
    type(wfmm_session), private :: session
    type(wfmm_flow), private :: flow
  contains
    procedure :: create
    procedure :: restore
    procedure :: save
    procedure :: step
    procedure :: finish
    procedure, private :: expose
    procedure, private :: take_dust
  end type stepper_t

contains

  subroutine create(self, run, rotor, bed_radius)
    class(stepper_t), intent(inout) :: self
    type(run_options), intent(in) :: run
    type(rotor_t), intent(in) :: rotor
    real(wp), intent(in) :: bed_radius                 !< m

    call self%bombardment%create(run%pressure, run%restitution, run%friction, bed_radius)
    if (run%restart == '') then
      call make_flow(run, 2*pi*rotor%radius/run%segments_per_turn, self%session, self%flow)
      allocate (self%row(0))
    end if
  end subroutine create

  !> The flow of a file, and how many steps it had taken.
  subroutine restore(self, run, path, steps)
    class(stepper_t), intent(inout) :: self
    type(run_options), intent(in) :: run
    character(*), intent(in) :: path
    integer(c_int64_t), intent(out) :: steps

    steps = 0
    call load_flow(run, path, self%session, self%flow)
    call wfmm_flow_time(self%flow, step=steps)
  end subroutine restore

  subroutine save(self, path)
    class(stepper_t), intent(in) :: self
    character(*), intent(in) :: path

    call wfmm_flow_save(self%flow, path)
  end subroutine save

  subroutine step(self, wake, dust, rotor, set, number, time, dt)
    class(stepper_t), intent(inout) :: self
    type(wake_t), intent(inout) :: wake
    type(dust_t), intent(inout) :: dust
    type(rotor_t), intent(in) :: rotor
    type(segment_set), intent(inout) :: set            !< the free segments before the step, afterwards
    integer, intent(in) :: number                      !< of the step, from 1
    real(wp), intent(in) :: time, dt                   !< s, end and length of the step
    integer, allocatable :: leaving(:)
    real(wp) :: started

    started = wall_clock()
    call set_vortices(self%flow, wake, set)
    allocate (leaving(0))
    if (mod(number, wind_every) == 0) call self%expose(dust, wind_every*dt, leaving)

    call wfmm_flow_advance(self%flow, real(dt, c_double), 1)

    call take_wake(self%flow, wake, rotor, time)
    call self%take_dust(dust, dt)
    call self%bombardment%eject(dust, leaving)
    if (size(leaving) > 0) then
      call wfmm_flow_add_dust(self%flow, dust%position(:, leaving), dust%diameter(leaving), &
                              spread(grain_density, 1, size(leaving)), dust%velocity(:, leaving))
      self%row = [self%row, leaving]
    end if
    self%seconds = self%seconds + wall_clock() - started
  end subroutine step

  !> The wind at the parcels that rest, and those which it lifts; they fly from the next step on.
  subroutine expose(self, dust, dt, leaving)
    class(stepper_t), intent(inout) :: self
    type(dust_t), intent(inout) :: dust
    real(wp), intent(in) :: dt
    integer, allocatable, intent(inout) :: leaving(:)
    integer, allocatable :: resting(:)
    real(wp), allocatable :: position(:, :), wind(:, :)
    integer :: i

    resting = pack([(i, i=1, dust%n)], .not. dust%airborne)
    position = dust%position(:, resting)
    allocate (wind, mold=position)
    call wfmm_flow_velocity(self%flow, position, wind)
    do i = 1, size(resting)
      call dust%expose(resting(i), wind(:, i), dt)
    end do
    leaving = pack(resting, dust%airborne(resting))
  end subroutine expose

  !> Where the airborne parcels are and what they struck; those that stay on the ground leave the flow and rest.
  subroutine take_dust(self, dust, dt)
    class(stepper_t), intent(inout) :: self
    type(dust_t), intent(inout) :: dust
    real(wp), intent(in) :: dt
    real(wp), allocatable :: x(:, :), v(:, :)
    integer(c_int64_t), allocatable :: identity(:)
    logical, allocatable :: rests(:)
    integer :: i

    allocate (x(3, size(self%row)), v(3, size(self%row)), identity(size(self%row)))
    call wfmm_flow_get(self%flow, WFMM_KIND_DUST, WFMM_QUANTITY_POSITION, x, identity)
    call wfmm_flow_get(self%flow, WFMM_KIND_DUST, WFMM_QUANTITY_VELOCITY, v)
    do i = 1, size(self%row)
      call self%bombardment%strike(dust%velocity(:, self%row(i)), x(:, i), v(:, i), dust%diameter(self%row(i)), dt)
    end do
    dust%position(:, self%row) = x
    dust%velocity(:, self%row) = v
    rests = x(3, :) <= 0 .and. norm2(v, 1) <= 0
    if (.not. any(rests)) return
    do i = 1, size(self%row)
      if (rests(i)) call dust%settle(self%row(i))
    end do
    call wfmm_flow_remove(self%flow, WFMM_KIND_DUST, pack(identity, rests))
    self%row = pack(self%row, .not. rests)
  end subroutine take_dust

  subroutine finish(self)
    class(stepper_t), intent(inout) :: self

    call wfmm_flow_destroy(self%flow)
    call wfmm_session_destroy(self%session)
  end subroutine finish
end module flow_step
