!> The step on a flow of libwakefmm: wake and airborne dust move in the library, together and by one sum a stage.
!> In: wake, dust and rotor before a step. Out: after it. What the program adds is what a flow leaves to its host: the blades, the
!> newest segment, the air close to the ground, and which parcels leave the ground.
module flow_step
  use, intrinsic :: iso_c_binding, only: c_double, c_int32_t, c_int64_t, c_ptr, c_funptr, c_funloc
  use kinds, only: wp, gravity, air_density, air_viscosity
  use options, only: run_options
  use rotor, only: rotor_t
  use segments, only: segment_set
  use wake, only: wake_t
  use dust, only: dust_t, grain_density
  use ground, only: wall_layer_factor, reference_height
  use progress, only: wall_clock
  use wakefmm, only: wfmm_session, wfmm_session_options, wfmm_session_create, wfmm_session_destroy, &
    wfmm_flow, wfmm_plan_options, wfmm_flow_options, wfmm_flow_create, wfmm_flow_destroy, wfmm_flow_set_filaments, &
    wfmm_flow_set_bound_segments, wfmm_flow_set_tracers, wfmm_flow_add_dust, wfmm_flow_remove, wfmm_flow_advance, &
    wfmm_flow_get, wfmm_flow_velocity, wfmm_flow_set_velocity_callback, &
    WFMM_INTEGRATOR_AB2, WFMM_PRECISION_F32, WFMM_PRECISION_F64, &
    WFMM_KIND_FILAMENTS, WFMM_KIND_TRACERS, WFMM_KIND_DUST, WFMM_QUANTITY_POSITION, WFMM_QUANTITY_VELOCITY
  implicit none (type, external)
  private
  public :: stepper_t

  !> Steps between two looks at the wind that resting parcels stand: it is most of the work, and a blade passes in nine steps.
  integer, parameter :: wind_every = 2

  type :: stepper_t
    real(wp) :: seconds = 0                            !< spent in the library so far
    integer, private :: steps = 0
    type(wfmm_session), private :: session
    type(wfmm_flow), private :: flow
    integer, allocatable, private :: row(:)            !< the parcel in each row of the flow's dust
  contains
    procedure :: create
    procedure :: step
    procedure :: finish
    procedure, private :: expose
    procedure, private :: take_dust
  end type stepper_t

contains

  !> The ground is a plane of the sums: images are implied. A parcel that comes down stays, until it is removed.
  subroutine create(self, run)
    class(stepper_t), intent(inout) :: self
    type(run_options), intent(in) :: run
    type(wfmm_session_options) :: where_to
    type(wfmm_plan_options) :: sums
    type(wfmm_flow_options) :: motion
    type(c_funptr) :: callback

    where_to%threads = run%threads
    call wfmm_session_create(self%session, where_to)
    sums%tolerance = run%tolerance
    sums%precision = merge(WFMM_PRECISION_F32, WFMM_PRECISION_F64, run%precision == 'single')
    sums%plane_axis = 3
    motion%integrator = WFMM_INTEGRATOR_AB2
    motion%gravity = [0.0_c_double, 0.0_c_double, -real(gravity, c_double)]
    motion%fluid_density = air_density
    motion%fluid_viscosity = air_viscosity
    motion%restitution = 0
    motion%friction = 1
    call wfmm_flow_create(self%flow, self%session, sums, motion)
    callback = c_funloc(slow_near_ground)
    call wfmm_flow_set_velocity_callback(self%flow, callback)
    allocate (self%row(0))
  end subroutine create

  !> Inside the wall layer the air follows the log law: its horizontal velocity is less than that of the vortices.
  function slow_near_ground(time, n, position, velocity, memory, stream, user) result(status) bind(c)
    real(c_double), value :: time
    integer(c_int64_t), value :: n
    real(c_double), intent(in) :: position(3, n)
    real(c_double), intent(inout) :: velocity(3, n)
    integer(c_int32_t), value :: memory
    type(c_ptr), value :: stream, user
    integer(c_int32_t) :: status
    integer(c_int64_t) :: i

    associate (unused => [real(time), real(memory), real(storage_size(stream) + storage_size(user))])
      status = merge(0_c_int32_t, 1_c_int32_t, size(unused) == 3)
    end associate
    do i = 1, n
      if (position(3, i) < reference_height) &
        velocity(1:2, i) = velocity(1:2, i)*wall_layer_factor(real(position(3, i), wp))
    end do
  end function slow_near_ground

  !> Cores and newest segments are the program's: filaments are set anew in every step. Their tips are tracers too, since a blade
  !> that has shed nothing yet has no filament.
  subroutine step(self, wake, dust, rotor, set, time, dt)
    class(stepper_t), intent(inout) :: self
    type(wake_t), intent(inout) :: wake
    type(dust_t), intent(inout) :: dust
    type(rotor_t), intent(in) :: rotor
    type(segment_set), intent(inout) :: set            !< the free segments, afterwards
    real(wp), intent(in) :: time, dt                   !< s, end and length of the step
    real(wp), allocatable :: moved(:, :), tips(:, :)
    integer, allocatable :: leaving(:)
    real(wp) :: started

    started = wall_clock()
    call set%clear()
    call wake%put_blades(set)
    call wfmm_flow_set_bound_segments(self%flow, set%points, set%connectivity, set%circulation, set%core_radius, &
                                      n_points=set%n_points, n=set%n)
    allocate (tips(3, wake%blades))
    tips = set%points(:, 2:2*wake%blades:2)
    call set%clear()
    call wake%put_free(set)
    call wfmm_flow_set_filaments(self%flow, set%points, set%connectivity, set%circulation, set%core_radius, &
                                 n_points=set%n_points, n=set%n)
    call wfmm_flow_set_tracers(self%flow, tips)
    allocate (leaving(0))
    self%steps = self%steps + 1
    if (mod(self%steps, wind_every) == 0) call self%expose(dust, wind_every*dt, leaving)

    call wfmm_flow_advance(self%flow, real(dt, c_double), 1)

    allocate (moved(3, set%n_points))
    call wfmm_flow_get(self%flow, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, moved)
    call wfmm_flow_get(self%flow, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, tips)
    call wake%shed(moved, tips, rotor, time)
    call self%take_dust(dust)
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
    real(wp), allocatable :: place(:, :), wind(:, :)
    integer :: i

    resting = pack([(i, i=1, dust%n)], .not. dust%airborne)
    place = dust%position(:, resting)
    allocate (wind, mold=place)
    call wfmm_flow_velocity(self%flow, place, wind)
    do i = 1, size(resting)
      call dust%expose(resting(i), wind(:, i), dt)
    end do
    leaving = pack(resting, dust%airborne(resting))
  end subroutine expose

  !> Where the airborne parcels are; those on the ground leave the flow and rest.
  subroutine take_dust(self, dust)
    class(stepper_t), intent(inout) :: self
    type(dust_t), intent(inout) :: dust
    real(wp), allocatable :: x(:, :), v(:, :)
    integer(c_int64_t), allocatable :: identity(:), landed(:)
    integer :: i

    allocate (x(3, size(self%row)), v(3, size(self%row)), identity(size(self%row)))
    call wfmm_flow_get(self%flow, WFMM_KIND_DUST, WFMM_QUANTITY_POSITION, x, identity)
    call wfmm_flow_get(self%flow, WFMM_KIND_DUST, WFMM_QUANTITY_VELOCITY, v)
    dust%position(:, self%row) = x
    dust%velocity(:, self%row) = v
    landed = pack(identity, x(3, :) <= 0)
    if (size(landed) == 0) return
    do i = 1, size(self%row)
      if (x(3, i) <= 0) call dust%settle(self%row(i))
    end do
    call wfmm_flow_remove(self%flow, WFMM_KIND_DUST, landed)
    self%row = pack(self%row, x(3, :) > 0)
  end subroutine take_dust

  subroutine finish(self)
    class(stepper_t), intent(inout) :: self

    call wfmm_flow_destroy(self%flow)
    call wfmm_session_destroy(self%session)
  end subroutine finish
end module flow_step
