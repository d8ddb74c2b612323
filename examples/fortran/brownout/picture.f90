!> The pictures at the end, from the side and from above: blades, wake, airborne dust, a scale bar, and ground with a line at
!> every rotor radius. libwakefmm draws them; a flow that takes no step is all it needs.
!> Colors follow the order in which elements of a kind came, from dark to light. The wake goes in from old to new, dust from far
!> to near: colors then tell age and depth.
module picture
  use, intrinsic :: iso_c_binding, only: c_double
  use kinds, only: wp, air_viscosity
  use simulation, only: simulation_t
  use segments, only: segment_set
  use wake, only: tip
  use dust, only: grain_density
  use scale_bar, only: add_scale_bar
  use wakefmm, only: wfmm_flow, wfmm_plan_options, wfmm_flow_options, wfmm_flow_create, wfmm_flow_destroy, &
    wfmm_flow_set_filaments, wfmm_flow_set_bound_segments, wfmm_flow_set_dust, wfmm_camera, wfmm_flow_picture, &
    WFMM_PROJECTION_ORTHOGRAPHIC, WFMM_COLOR_AGE
  implicit none (type, external)
  private
  public :: draw_pictures, order_by

contains

  !> `side` and `above` are names of PNG files. The camera stands where all that is drawn fits in.
  subroutine draw_pictures(side, above, sim)
    character(*), intent(in) :: side, above
    type(simulation_t), intent(in) :: sim
    type(wfmm_camera) :: camera

    camera%color = WFMM_COLOR_AGE
    camera%grid = sim%rotor%radius
    camera%line_width = 1.1_c_double
    camera%point_size = 2.2_c_double
    camera%background = [0.055_c_double, 0.075_c_double, 0.115_c_double, 1.0_c_double]
    camera%field_of_view = 30
    camera%eye = [1.0_c_double, -3.0_c_double, 0.8_c_double]
    call draw(side, sim, camera, 1600, 560, [1.0_wp, -3.0_wp, 0.0_wp]/sqrt(10.0_wp), [0.0_wp, 0.0_wp, 1.0_wp])
    camera%projection = WFMM_PROJECTION_ORTHOGRAPHIC
    camera%eye = [0.0_c_double, 0.0_c_double, 1.0_c_double]
    camera%up = [0.0_c_double, 1.0_c_double, 0.0_c_double]
    call draw(above, sim, camera, 1200, 1200, [0.0_wp, -1.0_wp, 0.0_wp], [0.0_wp, 1.0_wp, 0.0_wp])
  end subroutine draw_pictures

  subroutine draw(file, sim, camera, width, height, front, letters_up)
    character(*), intent(in) :: file
    type(simulation_t), intent(in) :: sim
    type(wfmm_camera), intent(in) :: camera
    integer, intent(in) :: width, height
    real(wp), intent(in) :: front(3), letters_up(3)    !< on the ground towards the lower edge; for the bar
    type(wfmm_flow) :: flow
    type(wfmm_plan_options) :: sums
    type(wfmm_flow_options) :: motion

    sums%plane_axis = 3
    motion%fluid_viscosity = air_viscosity
    call wfmm_flow_create(flow, plan_options=sums, options=motion)
    call put_dust(flow, sim, camera%eye)
    call put_wake(flow, sim)
    call put_blades_and_bar(flow, sim, front, letters_up)
    call wfmm_flow_picture(flow, width, height, camera, png_path=file)
    call wfmm_flow_destroy(flow)
  end subroutine draw

  subroutine put_dust(flow, sim, toward)
    type(wfmm_flow), intent(inout) :: flow
    type(simulation_t), intent(in) :: sim
    real(c_double), intent(in) :: toward(3)            !< where the eye is
    integer, allocatable :: up(:), sorted(:)
    integer :: i

    up = pack([(i, i=1, sim%dust%n)], sim%dust%airborne)
    if (size(up) == 0) return
    allocate (sorted(size(up)))
    sorted = up(order_by(matmul(real(toward, wp), sim%dust%position(:, up))))
    call wfmm_flow_set_dust(flow, sim%dust%position(:, sorted), sim%dust%diameter(sorted), &
                            spread(grain_density, 1, size(sorted)))
  end subroutine put_dust

  subroutine put_wake(flow, sim)
    type(wfmm_flow), intent(inout) :: flow
    type(simulation_t), intent(in) :: sim
    type(segment_set) :: set
    real(wp), allocatable :: age(:)
    integer, allocatable :: order(:)
    integer :: b, k, n, unseen

    unseen = sim%wake%target_count()/8
    call set%reserve(sim%wake%target_count() + unseen + 1)
    call sim%wake%put_free(set)
    if (set%n == 0) return
    allocate (age(set%n), order(set%n + unseen))
    n = 0
    do b = 1, sim%wake%blades
      associate (m => sim%wake%nodes(b) - tip)
        age(n + 1:n + m) = sim%wake%node_age(tip:tip + m - 1, b)
        n = n + m
      end associate
    end do
    order = [[(n + k, k=1, unseen)], order_by(-age)]
    call add_specks(set, sim%rotor%hub(sim%time), unseen)
    call wfmm_flow_set_filaments(flow, set%points, set%connectivity(:, order), set%circulation(order), &
                                 set%core_radius(order), n_points=set%n_points)
  end subroutine put_wake

  !> Segments that are too short to be seen: they take the dark end of the colors.
  subroutine add_specks(set, point, n)
    type(segment_set), intent(inout) :: set
    real(wp), intent(in) :: point(3)
    integer, intent(in) :: n
    real(wp) :: speck(3, 0:n)
    integer :: k

    do k = 0, n
      speck(:, k) = point + 1.0e-6_wp*k
    end do
    call set%append_filament(speck, 0.0_wp, spread(0.1_wp, 1, n))
  end subroutine add_specks

  !> The bar is in front of the cloud; seen from above it is as high as the rotor, since what is far is fainter.
  subroutine put_blades_and_bar(flow, sim, front, letters_up)
    type(wfmm_flow), intent(inout) :: flow
    type(simulation_t), intent(in) :: sim
    real(wp), intent(in) :: front(3), letters_up(3)
    integer, parameter :: unseen = 200
    type(segment_set) :: set
    real(wp) :: middle(3), reach

    call set%reserve(unseen + 40 + 2*sim%wake%blades)
    associate (hub => sim%rotor%hub(sim%time))
      call add_specks(set, hub, unseen)
      reach = dot_product(front, hub) + 1.2_wp*sim%rotor%radius
      if (any(sim%dust%airborne)) reach = max(reach, maxval(matmul(front, sim%dust%position), mask=sim%dust%airborne))
      middle = hub + (reach + 2.5_wp - dot_product(front, hub))*front
      middle(3) = (1 - letters_up(3))*hub(3)
    end associate
    call add_scale_bar(set, middle, [-front(2), front(1), 0.0_wp], letters_up)
    call sim%wake%put_blades(set)
    call wfmm_flow_set_bound_segments(flow, set%points, set%connectivity, set%circulation, set%core_radius, &
                                      n_points=set%n_points, n=set%n)
  end subroutine put_blades_and_bar

  !> Numbers of the elements from the smallest key to the largest, keys told apart to a part in 4,096 of their range.
  pure function order_by(key) result(order)
    real(wp), intent(in) :: key(:)
    integer :: order(size(key))
    integer, parameter :: bins = 4096
    integer :: first(0:bins), bin(size(key)), k
    real(wp) :: low, span

    low = minval(key)
    span = max(maxval(key) - low, tiny(1.0_wp))
    bin = min(bins, 1 + floor(bins*((key - low)/span)))
    first = 0
    do k = 1, size(key)
      first(bin(k)) = first(bin(k)) + 1
    end do
    do k = 1, bins
      first(k) = first(k) + first(k - 1)
    end do
    do k = 1, size(key)
      order(first(bin(k) - 1) + 1) = k
      first(bin(k) - 1) = first(bin(k) - 1) + 1
    end do
  end function order_by
end module picture
