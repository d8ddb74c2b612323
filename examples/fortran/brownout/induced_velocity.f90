!> The air's velocity that the vortices induce, by one of three methods that give the same answer:
!> libwakefmm's fast multipole method, its direct sum, or the program's own loop.
module induced_velocity
  use kinds, only: wp
  use segments, only: segment_set
  use biot_savart_loop, only: sum_segments
  use progress, only: wall_clock
  implicit none (type, external)
  private
  public :: induction_t

  type :: induction_t
    character(:), allocatable :: method                !< fmm, direct or loop
    real(wp) :: seconds = 0                            !< spent in `evaluate` so far
    integer  :: evaluations = 0
  contains
    procedure :: create
    procedure :: evaluate
    procedure :: finish
  end type induction_t

contains

  subroutine create(self, method, precision, tolerance, threads)
    class(induction_t), intent(inout) :: self
    character(*), intent(in) :: method, precision
    real(wp), intent(in) :: tolerance
    integer, intent(in) :: threads

    if (method /= 'loop') error stop 'brownout: built without libwakefmm, only --method loop works'
    self%method = method
  end subroutine create

  subroutine evaluate(self, set, target, velocity)
    class(induction_t), intent(inout) :: self
    type(segment_set), intent(in) :: set
    real(wp), intent(in) :: target(:, :)
    real(wp), intent(out) :: velocity(:, :)
    real(wp) :: started

    started = wall_clock()
    call sum_segments(set, target, velocity)
    self%seconds = self%seconds + wall_clock() - started
    self%evaluations = self%evaluations + 1
  end subroutine evaluate

  subroutine finish(self)
    class(induction_t), intent(inout) :: self

    self%method = 'none'
  end subroutine finish
end module induced_velocity
