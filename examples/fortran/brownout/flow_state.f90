!> The flow of libwakefmm that wake and airborne dust move in: its options, the air close to the ground, its checkpoint.
!> In: the run's options, or a file. Out: a flow without elements, or as it was saved.
module flow_state
  use, intrinsic :: iso_c_binding, only: c_double, c_int32_t, c_int64_t, c_ptr, c_funptr, c_funloc
  use kinds, only: wp, gravity, air_density, air_viscosity
  use options, only: run_options
  use wake, only: kinematic_viscosity
  use ground, only: wall_layer_factor, reference_height
  use wakefmm, only: wfmm_session, wfmm_session_options, wfmm_session_create, wfmm_flow, wfmm_plan_options, &
    wfmm_flow_options, wfmm_flow_create, wfmm_flow_load, wfmm_flow_set_velocity_callback, &
    WFMM_INTEGRATOR_EULER, WFMM_INTEGRATOR_AB2, WFMM_INTEGRATOR_RK3, WFMM_INTEGRATOR_RK4, &
    WFMM_PRECISION_F32, WFMM_PRECISION_F64, WFMM_FLAG_REPRODUCIBLE
  implicit none (type, external)
  private
  public :: make_flow, load_flow

contains

  !> The ground is a plane of the sums: images are implied. Cores grow and are strained in the library; segments longer than
  !> `shed_length` allows are split.
  subroutine make_flow(run, shed_length, session, flow)
    type(run_options), intent(in) :: run
    real(wp), intent(in) :: shed_length                !< m, of a segment that leaves the blade
    type(wfmm_session), intent(inout) :: session
    type(wfmm_flow), intent(inout) :: flow
    type(wfmm_plan_options) :: sums
    type(wfmm_flow_options) :: motion

    call make_session(run, session)
    sums%tolerance = run%tolerance
    sums%precision = merge(WFMM_PRECISION_F32, WFMM_PRECISION_F64, run%precision == 'single')
    sums%plane_axis = 3
    if (run%reproducible) sums%flags = WFMM_FLAG_REPRODUCIBLE
    motion%integrator = integrator_named(run%integrator)
    motion%viscosity = kinematic_viscosity
    motion%squire = run%squire
    motion%split_length = run%split*shed_length
    motion%gravity = [0.0_c_double, 0.0_c_double, -real(gravity, c_double)]
    motion%fluid_density = air_density
    motion%fluid_viscosity = air_viscosity
    motion%restitution = run%restitution
    motion%friction = run%friction
    call wfmm_flow_create(flow, session, sums, motion)
    call wfmm_flow_set_velocity_callback(flow, callback())
  end subroutine make_flow

  !> A flow that was saved goes on, with the options that it was made with.
  subroutine load_flow(run, path, session, flow)
    type(run_options), intent(in) :: run
    character(*), intent(in) :: path
    type(wfmm_session), intent(inout) :: session
    type(wfmm_flow), intent(inout) :: flow

    call make_session(run, session)
    call wfmm_flow_load(path, flow, session)
    call wfmm_flow_set_velocity_callback(flow, callback())
  end subroutine load_flow

  subroutine make_session(run, session)
    type(run_options), intent(in) :: run
    type(wfmm_session), intent(inout) :: session
    type(wfmm_session_options) :: where_to

    where_to%threads = run%threads
    call wfmm_session_create(session, where_to)
  end subroutine make_session

  pure integer function integrator_named(name)
    character(*), intent(in) :: name

    select case (name)
    case ('euler'); integrator_named = WFMM_INTEGRATOR_EULER
    case ('ab2');   integrator_named = WFMM_INTEGRATOR_AB2
    case ('rk4');   integrator_named = WFMM_INTEGRATOR_RK4
    case default;   integrator_named = WFMM_INTEGRATOR_RK3
    end select
  end function integrator_named

  function callback() result(address)
    type(c_funptr) :: address

    address = c_funloc(slow_near_ground)
  end function callback

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
end module flow_state
