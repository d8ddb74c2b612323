!> The cloud on a grid: kg of dust in a cubic metre, and how much of its light a beam loses there on a metre.
!> In: airborne parcels. Out: both fields, and the optical depth along a line.
module cloud
  use kinds, only: wp
  use dust, only: dust_t, grain_density
  use files, only: fail
  implicit none (type, external)
  private
  public :: cloud_t, extinction_per_mass

  !> Cross-section of a grain for light over that of its disk: 2, the limit for grains far larger than the wave length.
  real(wp), parameter :: efficiency = 2.0_wp

  type :: cloud_t
    integer  :: n(3) = 0                               !< cells
    real(wp) :: lower(3) = 0, cell = 1                 !< m, corner and edge of a cell
    real(wp), allocatable :: concentration(:, :, :)    !< kg/m³, mean of a cell
    real(wp), allocatable :: extinction(:, :, :)       !< 1/m
  contains
    procedure :: create
    procedure :: fill
    procedure :: clear
    procedure :: deposit
    procedure :: mass
    procedure :: optical_depth
    procedure, private :: weigh
  end type cloud_t

contains

  !> A box from `lower`, to rounding at least as large as `extent`.
  subroutine create(self, lower, extent, cell)
    class(cloud_t), intent(inout) :: self
    real(wp), intent(in) :: lower(3), extent(3), cell
    real(wp), parameter :: rounding = 1.0e-12_wp       !< 66 m are 120 cells of 0.55 m, although 66/0.55 is more
    integer :: status

    if (product(extent/cell) > huge(1)) call fail('--cell is too small: more than two thousand million cells')
    self%lower = lower
    self%cell = cell
    self%n = max(1, ceiling((1 - rounding)*extent/cell))
    allocate (self%concentration(self%n(1), self%n(2), self%n(3)), self%extinction(self%n(1), self%n(2), self%n(3)), stat=status)
    if (status /= 0) call fail('--cell is too small: no memory for the grid')
    call self%clear()
  end subroutine create

  !> m²/kg of grains of a diameter: Q (π d²/4)/(ρp π d³/6).
  elemental real(wp) function extinction_per_mass(diameter)
    real(wp), intent(in) :: diameter

    extinction_per_mass = 1.5_wp*efficiency/(grain_density*diameter)
  end function extinction_per_mass

  !> From the parcels that fly now.
  subroutine fill(self, dust)
    class(cloud_t), intent(inout) :: self
    type(dust_t), intent(in) :: dust
    integer :: i

    call self%clear()
    do i = 1, dust%n
      if (dust%airborne(i)) call self%deposit(dust%position(:, i), dust%parcel_mass, dust%diameter(i))
    end do
  end subroutine fill

  subroutine clear(self)
    class(cloud_t), intent(inout) :: self

    self%concentration = 0
    self%extinction = 0
  end subroutine clear

  !> Shares a parcel among the eight cells around it (cloud in cell); at a border the cell inside has it all, so that nothing
  !> is lost. Parcels outside of the box are not in it.
  subroutine deposit(self, position, mass, diameter)
    class(cloud_t), intent(inout) :: self
    real(wp), intent(in) :: position(3), mass, diameter   !< m, kg, m
    real(wp) :: weight(2, 3), w, density
    integer :: at(2, 3), i, j, k

    if (any(position < self%lower .or. position > self%lower + self%n*self%cell)) return
    call self%weigh(position, at, weight)
    density = mass/self%cell**3
    do k = 1, 2
      do j = 1, 2
        do i = 1, 2
          w = weight(i, 1)*weight(j, 2)*weight(k, 3)*density
          associate (c => self%concentration(at(i, 1), at(j, 2), at(k, 3)), e => self%extinction(at(i, 1), at(j, 2), at(k, 3)))
            c = c + w
            e = e + w*extinction_per_mass(diameter)
          end associate
        end do
      end do
    end do
  end subroutine deposit

  !> Cells before and behind a position along each axis, and their weights there.
  pure subroutine weigh(self, position, at, weight)
    class(cloud_t), intent(in) :: self
    real(wp), intent(in) :: position(3)
    integer, intent(out) :: at(2, 3)
    real(wp), intent(out) :: weight(2, 3)
    real(wp) :: s(3)

    s = (position - self%lower)/self%cell + 0.5_wp
    at(1, :) = floor(s)
    weight(2, :) = s - at(1, :)
    weight(1, :) = 1 - weight(2, :)
    at(2, :) = min(max(at(1, :) + 1, 1), self%n)
    at(1, :) = min(max(at(1, :), 1), self%n)
  end subroutine weigh

  !> kg in the box.
  pure real(wp) function mass(self)
    class(cloud_t), intent(in) :: self

    mass = sum(self%concentration)*self%cell**3
  end function mass

  !> ∫ extinction ds from a point to another; linear between the middles of cells, zero outside of the box.
  pure real(wp) function optical_depth(self, from, to)
    class(cloud_t), intent(in) :: self
    real(wp), intent(in) :: from(3), to(3)             !< m
    real(wp) :: x(3), weight(2, 3), here
    integer :: at(2, 3), steps, k, i, j, l

    steps = max(1, ceiling(4*norm2(to - from)/self%cell))
    optical_depth = 0
    do k = 1, steps
      x = from + (k - 0.5_wp)/steps*(to - from)
      if (any(x < self%lower .or. x > self%lower + self%n*self%cell)) cycle
      call self%weigh(x, at, weight)
      here = 0
      do l = 1, 2
        do j = 1, 2
          do i = 1, 2
            here = here + weight(i, 1)*weight(j, 2)*weight(l, 3)*self%extinction(at(i, 1), at(j, 2), at(l, 3))
          end do
        end do
      end do
      optical_depth = optical_depth + here*norm2(to - from)/steps
    end do
  end function optical_depth
end module cloud
