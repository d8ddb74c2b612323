!> What the Fortran tests share: checks that count, and go on after a failure. The C twins are in tests/c.
module checks
  use, intrinsic :: iso_c_binding, only: c_double
  use wakefmm
  implicit none
  private
  public :: check, expect, close_to, finish

  integer :: done = 0, failed = 0

contains

  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: what

    done = done + 1
    if (condition) return
    failed = failed + 1
    print '(a)', 'failed: '//what
  end subroutine

  !> The status of a call; where an error was wanted, its message holds `word`.
  subroutine expect(ierr, wanted, word)
    integer, intent(in) :: ierr, wanted
    character(len=*), intent(in) :: word
    logical :: good

    good = ierr == wanted
    if (good .and. wanted /= WFMM_OK) good = index(wfmm_last_error(), word) > 0
    call check(good, wfmm_status_name(ierr)//' instead of '//wfmm_status_name(wanted)//', "'//word//'" in: '//wfmm_last_error())
  end subroutine

  function close_to(got, want, relative) result(yes)
    real(c_double), intent(in) :: got, want, relative
    logical :: yes

    yes = abs(got - want) <= relative*abs(want)
    if (.not. yes) print *, ' got', got, ' wanted', want
  end function

  subroutine finish(name)
    character(len=*), intent(in) :: name

    print '(a, i0, a, i0, a)', name//' (Fortran): ', done, ' checks, ', failed, ' failed'
    if (failed > 0) error stop 1
  end subroutine

end module checks
