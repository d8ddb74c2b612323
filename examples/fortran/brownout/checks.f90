!> What a self-test says.
module checks
  use kinds, only: wp
  implicit none (type, external)
  private
  public :: expect

contains

  subroutine expect(failures, what, error, limit)
    integer, intent(inout) :: failures
    character(*), intent(in) :: what
    real(wp), intent(in) :: error, limit
    logical :: good

    good = abs(error) <= limit                         ! a NaN is not good
    if (.not. good) failures = failures + 1
    print '(a6,1x,a,es9.2,a,es9.2)', merge('ok    ', 'FAILED', good), what//': error', abs(error), ', limit', limit
  end subroutine expect
end module checks
