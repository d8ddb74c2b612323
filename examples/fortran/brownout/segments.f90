!> Straight vortex segments in the shape that libwakefmm takes: points, pairs of point numbers, circulation, core.
module segments
  use, intrinsic :: iso_fortran_env, only: int32
  use kinds, only: wp
  implicit none (type, external)
  private
  public :: segment_set

  type :: segment_set
    integer :: n_points = 0                            !< live points; the arrays may be longer
    integer :: n = 0                                   !< live segments
    real(wp), allocatable :: points(:, :)              !< (3, capacity), m
    integer(int32), allocatable :: connectivity(:, :)  !< (2, capacity), numbers of first and last point, from 1
    real(wp), allocatable :: circulation(:)            !< m²/s, positive from first to last point by the right-hand rule
    real(wp), allocatable :: core_radius(:)            !< m
  contains
    procedure :: reserve
    procedure :: clear
    procedure :: append_filament
  end type segment_set

contains

  subroutine reserve(self, n_points)
    class(segment_set), intent(inout) :: self
    integer, intent(in) :: n_points

    allocate (self%points(3, n_points), self%connectivity(2, n_points))
    allocate (self%circulation(n_points), self%core_radius(n_points))
  end subroutine reserve

  subroutine clear(self)
    class(segment_set), intent(inout) :: self

    self%n_points = 0
    self%n = 0
  end subroutine clear

  !> A chain of segments through `node(:, 1), node(:, 2), …`; `core_radius` has one entry a segment.
  subroutine append_filament(self, node, circulation, core_radius)
    class(segment_set), intent(inout) :: self
    real(wp), intent(in) :: node(:, :), circulation, core_radius(:)
    integer :: m, first, k

    m = size(node, 2)
    first = self%n_points
    self%points(:, first + 1:first + m) = node
    do k = 1, m - 1
      self%connectivity(:, self%n + k) = [first + k, first + k + 1]
    end do
    self%circulation(self%n + 1:self%n + m - 1) = circulation
    self%core_radius(self%n + 1:self%n + m - 1) = core_radius(:m - 1)
    self%n_points = first + m
    self%n = self%n + m - 1
  end subroutine append_filament
end module segments
