!> The picture at the end: the cloud from the side and from above, over wake, rotor and ground.
!> Dust is light where the line of sight meets much grain area; wake filaments fade with their age.
module picture
  use kinds, only: wp
  use canvas, only: canvas_t
  use simulation, only: simulation_t
  implicit none (type, external)
  private
  public :: draw_picture

  integer, parameter :: width = 1600, side_height = 420, top_height = 1000, band = 64
  real(wp), parameter :: pixels_per_radius = 133.0_wp   !< at most: a wider cloud is drawn smaller
  real(wp), parameter :: night(3) = [0.055_wp, 0.075_wp, 0.115_wp]
  real(wp), parameter :: soil(3) = [0.20_wp, 0.155_wp, 0.115_wp]
  real(wp), parameter :: paper(3) = [0.93_wp, 0.92_wp, 0.88_wp]
  real(wp), parameter :: quiet(3) = [0.60_wp, 0.62_wp, 0.64_wp]
  real(wp), parameter :: steel(3) = [0.86_wp, 0.90_wp, 0.95_wp]

  !> A parallel view of space: which axes go right and up, and where the origin lies.
  type :: view_t
    integer :: right, up
    real(wp) :: origin(2)                              !< pixels
    real(wp) :: scale                                  !< pixels a metre
    integer :: window(4)                               !< left, top, right, bottom, pixels
  contains
    procedure :: place
  end type view_t

contains

  subroutine draw_picture(path, sim, title)
    character(*), intent(in) :: path, title
    type(simulation_t), intent(in) :: sim
    type(canvas_t) :: page
    type(view_t) :: side, top
    real(wp) :: scale, middle(2), extent(2)

    call frame(sim, middle, extent)
    scale = min(pixels_per_radius/sim%rotor%radius, minval(0.92_wp*[width, top_height]/extent))
    middle = scale*middle
    side = view_t(1, 3, [0.5_wp*width - middle(1), real(band + side_height - 60, wp)], scale, &
                  [1, band, width, band + side_height])
    top = view_t(1, 2, [0.5_wp*width - middle(1), band + side_height + 10 + 0.5_wp*top_height + middle(2)], scale, &
                 [1, band + side_height + 10, width, band + side_height + 10 + top_height])
    call page%create(width, top%window(4), night)
    call paint_sky(page, side)
    call paint_soil(page, top)
    call shade_dust(page, side, sim)
    call shade_dust(page, top, sim)
    call draw_wake(page, side, sim)
    call draw_wake(page, top, sim)
    call draw_rotor(page, side, sim)
    call draw_rotor(page, top, sim)
    call draw_ground(page, side, sim%rotor%radius)
    call draw_labels(page, side, top, title)
    call page%save(path)
  end subroutine draw_picture

  !> Middle and extent, seen from above, of rotor, wake and cloud; the few strays of both may lie outside.
  subroutine frame(sim, middle, extent)
    type(simulation_t), intent(in) :: sim
    real(wp), intent(out) :: middle(2), extent(2)
    real(wp) :: ends(2), hub(3)
    integer :: axis

    hub = sim%rotor%hub(sim%time)
    do axis = 1, 2
      ends = hub(axis) + [-1, 1]*sim%rotor%radius
      associate (x => sim%wake%node(axis, :sim%wake%nodes, :))
        if (sim%wake%nodes > 1) call widen(ends, pack(x, .true.))
      end associate
      associate (x => sim%dust%position(axis, :sim%dust%n), up => sim%dust%airborne(:sim%dust%n))
        if (any(up)) call widen(ends, pack(x, up))
      end associate
      middle(axis) = 0.5_wp*sum(ends)
      extent(axis) = ends(2) - ends(1)
    end do
  end subroutine frame

  !> Lets `ends` hold all of `x` but the outermost hundredth on either side.
  pure subroutine widen(ends, x)
    real(wp), intent(inout) :: ends(2)
    real(wp), intent(in) :: x(:)
    real(wp), parameter :: strays = 0.01_wp
    real(wp) :: inside, outside, at
    integer :: side, step

    do side = 1, 2
      inside = sum(x)/size(x)
      outside = merge(minval(x), maxval(x), side == 1)
      do step = 1, 30
        at = 0.5_wp*(inside + outside)
        if (merge(count(x < at), count(x > at), side == 1) > strays*size(x)) then
          inside = at
        else
          outside = at
        end if
      end do
      ends(side) = merge(min(ends(1), outside), max(ends(2), outside), side == 1)
    end do
  end subroutine widen

  pure function place(self, x) result(at)
    class(view_t), intent(in) :: self
    real(wp), intent(in) :: x(3)
    real(wp) :: at(2)

    at = self%origin + self%scale*[x(self%right), -x(self%up)]
  end function place

  subroutine paint_sky(page, view)
    type(canvas_t), intent(inout) :: page
    type(view_t), intent(in) :: view
    integer :: ix, iy

    do iy = view%window(2), view%window(4)
      do ix = view%window(1), view%window(3)
        call page%blend(ix, iy, [0.16_wp, 0.20_wp, 0.27_wp], 0.9_wp*real(iy - view%window(2), wp)/side_height)
      end do
    end do
  end subroutine paint_sky

  !> Ground seen from above: darker than the dust over it.
  subroutine paint_soil(page, view)
    type(canvas_t), intent(inout) :: page
    type(view_t), intent(in) :: view
    integer :: ix, iy

    do iy = view%window(2), view%window(4)
      do ix = view%window(1), view%window(3)
        call page%blend(ix, iy, soil, 0.55_wp)
      end do
    end do
  end subroutine paint_soil

  !> Optical depth of the cloud along each line of sight. Parcels are of equal mass, so fine grains hide more: area
  !> goes as 1/d. Two bells spread a parcel: a sharp one keeps the structure, a wide one hides that there are parcels.
  subroutine shade_dust(page, view, sim)
    type(canvas_t), intent(inout) :: page
    type(view_t), intent(in) :: view
    type(simulation_t), intent(in) :: sim
    real(wp), allocatable :: sharp(:, :), depth(:, :)
    real(wp) :: opacity
    integer :: ix, iy

    allocate (sharp, source=grain_area(view, sim))
    allocate (depth, source=sharp)
    call spread_bell(sharp, 1.3_wp)
    call spread_bell(depth, 4.0_wp)
    depth = 0.4_wp*sharp + 0.6_wp*depth
    depth = depth*count(depth > 0.02_wp*maxval(depth))/max(sum(depth), tiny(1.0_wp))   ! exposure: mean depth of the cloud is 1
    do iy = 1, size(depth, 2)
      do ix = 1, size(depth, 1)
        opacity = 1 - exp(-0.8_wp*depth(ix, iy))
        call page%blend(view%window(1) + ix - 1, view%window(2) + iy - 1, dust_colour(opacity), opacity**0.8_wp)
      end do
    end do
  end subroutine shade_dust

  !> Sum of 1/d over the airborne parcels in each pixel of the view.
  function grain_area(view, sim) result(area)
    type(view_t), intent(in) :: view
    type(simulation_t), intent(in) :: sim
    real(wp), allocatable :: area(:, :)
    integer :: i, at(2)

    allocate (area(view%window(3) - view%window(1) + 1, view%window(4) - view%window(2) + 1), source=0.0_wp)
    do i = 1, sim%dust%n
      if (.not. sim%dust%airborne(i)) cycle
      at = nint(view%place(sim%dust%position(:, i))) - view%window(1:2) + 1
      if (any(at < 1) .or. any(at > shape(area))) cycle
      area(at(1), at(2)) = area(at(1), at(2)) + 1/sim%dust%diameter(i)
    end do
  end function grain_area

  !> From umber over sand to a pale glow.
  pure function dust_colour(density) result(rgb)
    real(wp), intent(in) :: density
    real(wp) :: rgb(3), x, f
    real(wp), parameter :: ramp(3, 4) = reshape([0.36_wp, 0.22_wp, 0.13_wp, 0.72_wp, 0.48_wp, 0.25_wp, &
                                                 0.95_wp, 0.77_wp, 0.48_wp, 1.00_wp, 0.96_wp, 0.84_wp], [3, 4])
    integer :: k

    x = 3*min(max(density, 0.0_wp), 1.0_wp)
    k = min(int(x), 2) + 1
    f = x - (k - 1)
    rgb = (1 - f)*ramp(:, k) + f*ramp(:, k + 1)
  end function dust_colour

  !> Convolves with a Gaussian of standard deviation `sigma` pixels, one axis after the other.
  subroutine spread_bell(field, sigma)
    real(wp), intent(inout) :: field(:, :)
    real(wp), intent(in) :: sigma
    real(wp), allocatable :: weight(:), copy(:, :)
    integer :: reach, k, n(2), lo, hi

    reach = ceiling(3*sigma)
    allocate (weight(2*reach + 1))
    weight = exp(-0.5_wp*([(k, k=-reach, reach)]/sigma)**2)
    weight = weight/sum(weight)
    n = shape(field)
    copy = field
    field = 0
    do k = -reach, reach
      lo = max(1, 1 - k)
      hi = min(n(1), n(1) - k)
      field(lo:hi, :) = field(lo:hi, :) + weight(k + reach + 1)*copy(lo + k:hi + k, :)
    end do
    copy = field
    field = 0
    do k = -reach, reach
      lo = max(1, 1 - k)
      hi = min(n(2), n(2) - k)
      field(:, lo:hi) = field(:, lo:hi) + weight(k + reach + 1)*copy(:, lo + k:hi + k)
    end do
  end subroutine spread_bell

  subroutine draw_wake(page, view, sim)
    type(canvas_t), intent(inout) :: page
    type(view_t), intent(in) :: view
    type(simulation_t), intent(in) :: sim
    real(wp), parameter :: young(3) = [0.55_wp, 0.95_wp, 1.0_wp], old(3) = [0.20_wp, 0.45_wp, 0.75_wp]
    real(wp) :: share
    integer :: b, k

    do b = 1, sim%wake%blades
      do k = sim%wake%nodes - 1, 2, -1
        share = real(k, wp)/sim%wake%nodes
        call page%line(view%place(sim%wake%node(:, k, b)), view%place(sim%wake%node(:, k + 1, b)), 1.2_wp, &
                       (1 - share)*young + share*old, 0.75_wp*(1 - share)**1.5_wp + 0.10_wp, view%window)
      end do
    end do
  end subroutine draw_wake

  subroutine draw_rotor(page, view, sim)
    type(canvas_t), intent(inout) :: page
    type(view_t), intent(in) :: view
    type(simulation_t), intent(in) :: sim
    integer, parameter :: sides = 180
    integer :: b, k

    do k = 1, sides
      call page%line(view%place(rim(k - 1)), view%place(rim(k)), 1.5_wp, steel, 0.55_wp, view%window)
    end do
    do b = 1, sim%rotor%blades
      call page%line(view%place(sim%rotor%blade_point(b, 0.06_wp, sim%time)), &
                     view%place(sim%rotor%blade_point(b, 1.0_wp, sim%time)), 4.5_wp, steel, 0.95_wp, view%window)
    end do

  contains

    pure function rim(k) result(x)
      integer, intent(in) :: k
      real(wp) :: x(3), angle

      angle = 2*acos(-1.0_wp)*k/sides
      x = sim%rotor%hub(sim%time) + sim%rotor%radius*[cos(angle), sin(angle), 0.0_wp]
    end function rim
  end subroutine draw_rotor

  !> Soil under the side view, with a tick and a number at every rotor radius.
  subroutine draw_ground(page, view, radius)
    type(canvas_t), intent(inout) :: page
    type(view_t), intent(in) :: view
    real(wp), intent(in) :: radius
    real(wp) :: at(2)
    integer :: ix, iy, k, far
    character(3) :: number

    do iy = nint(view%origin(2)) + 1, view%window(4)
      do ix = view%window(1), view%window(3)
        call page%blend(ix, iy, soil, 1.0_wp)
      end do
    end do
    call page%line([1.0_wp, view%origin(2)], [real(width, wp), view%origin(2)], 2.0_wp, dust_colour(0.45_wp), 1.0_wp)
    far = ceiling(width/(view%scale*radius)) + ceiling(abs(view%origin(1) - 0.5_wp*width)/(view%scale*radius))
    do k = -far, far
      at = view%place([k*radius, 0.0_wp, 0.0_wp])
      if (at(1) < 30 .or. at(1) > width - 130) cycle
      call page%line(at, at + [0.0_wp, 9.0_wp], 1.5_wp, quiet, 1.0_wp)
      write (number, '(i3)') k
      call page%text(at(1) - 26, at(2) + 30, 13.0_wp, quiet, number)
    end do
    call page%text(width - 90.0_wp, view%origin(2) + 30, 13.0_wp, quiet, 'x / R')
  end subroutine draw_ground

  subroutine draw_labels(page, side, top, title)
    type(canvas_t), intent(inout) :: page
    type(view_t), intent(in) :: side, top
    character(*), intent(in) :: title

    call page%text(24.0_wp, 42.0_wp, 17.0_wp, paper, title)
    call page%text(24.0_wp, side%window(2) + 34.0_wp, 15.0_wp, quiet, 'from the side')
    call page%text(24.0_wp, top%window(2) + 34.0_wp, 15.0_wp, quiet, 'from above')
  end subroutine draw_labels
end module picture
