!> The pictures at the end: wake, blades and airborne dust over a ground with a line at every rotor radius, from the side and
!> from above. libwakefmm draws them; a flow that takes no step is all it needs.
module picture
  use, intrinsic :: iso_c_binding, only: c_double
  use kinds, only: wp, air_viscosity
  use simulation, only: simulation_t
  use segments, only: segment_set
  use dust, only: grain_density
  use wakefmm, only: wfmm_flow, wfmm_plan_options, wfmm_flow_options, wfmm_flow_create, wfmm_flow_destroy, &
    wfmm_flow_set_filaments, wfmm_flow_set_bound_segments, wfmm_flow_set_dust, wfmm_camera, wfmm_flow_picture, &
    WFMM_PROJECTION_ORTHOGRAPHIC
  implicit none (type, external)
  private
  public :: draw_pictures

contains

  !> `side` and `above` are names of PNG files.
  subroutine draw_pictures(side, above, sim)
    character(*), intent(in) :: side, above
    type(simulation_t), intent(in) :: sim
    type(wfmm_flow) :: flow
    type(wfmm_camera) :: camera

    call fill(flow, sim)
    camera%grid = sim%rotor%radius
    camera%line_width = 1.6_c_double
    camera%background = [0.055_c_double, 0.075_c_double, 0.115_c_double, 1.0_c_double]
    camera%field_of_view = 30
    camera%eye = [1.0_c_double, -3.0_c_double, 0.8_c_double]
    call wfmm_flow_picture(flow, 1600, 800, camera, png_path=side)
    camera%projection = WFMM_PROJECTION_ORTHOGRAPHIC
    camera%eye = [0.0_c_double, 0.0_c_double, 1.0_c_double]
    camera%up = [0.0_c_double, 1.0_c_double, 0.0_c_double]
    call wfmm_flow_picture(flow, 1200, 1200, camera, png_path=above)
    call wfmm_flow_destroy(flow)
  end subroutine draw_pictures

  subroutine fill(flow, sim)
    type(wfmm_flow), intent(inout) :: flow
    type(simulation_t), intent(in) :: sim
    type(wfmm_plan_options) :: sums
    type(wfmm_flow_options) :: motion
    type(segment_set) :: set
    integer, allocatable :: up(:)
    integer :: i

    sums%plane_axis = 3
    motion%fluid_viscosity = air_viscosity
    call wfmm_flow_create(flow, plan_options=sums, options=motion)
    call set%reserve(sim%wake%blades*(sim%wake%nodes + 1))
    call sim%wake%put_blades(set)
    call wfmm_flow_set_bound_segments(flow, set%points, set%connectivity, set%circulation, set%core_radius, &
                                      n_points=set%n_points, n=set%n)
    call set%clear()
    call sim%wake%put_free(set)
    call wfmm_flow_set_filaments(flow, set%points, set%connectivity, set%circulation, set%core_radius, &
                                 n_points=set%n_points, n=set%n)
    up = pack([(i, i=1, sim%dust%n)], sim%dust%airborne)
    if (size(up) > 0) call wfmm_flow_set_dust(flow, sim%dust%position(:, up), sim%dust%diameter(up), &
                                              spread(grain_density, 1, size(up)))
  end subroutine fill
end module picture
