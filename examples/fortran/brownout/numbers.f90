!> Numbers of the command line. In: a text. Out: the number, or that it is none.
module numbers
  use kinds, only: wp
  implicit none (type, external)
  private
  public :: read_number

  interface read_number
    module procedure read_integer, read_real
  end interface read_number

contains

  subroutine read_integer(text, value, good)
    character(*), intent(in) :: text
    integer, intent(inout) :: value                    !< as it was where `text` is no number
    logical, intent(out) :: good
    integer :: found, ios

    good = is_plain(text, point=.false.)
    if (.not. good) return
    read (text, *, iostat=ios) found
    good = ios == 0
    if (good) value = found
  end subroutine read_integer

  !> Finite.
  subroutine read_real(text, value, good)
    character(*), intent(in) :: text
    real(wp), intent(inout) :: value
    logical, intent(out) :: good
    real(wp) :: found
    integer :: mark, ios

    mark = scan(text, 'eEdD')
    if (mark == 0) then
      good = is_plain(text, point=.true.)
    else
      good = is_plain(text(:mark - 1), point=.true.) .and. is_plain(text(mark + 1:), point=.false.)
    end if
    if (.not. good) return
    read (text, *, iostat=ios) found
    good = ios == 0
    if (good) good = abs(found) <= huge(found)
    if (good) value = found
  end subroutine read_real

  !> A sign or none, then digits, with a point or without. List-directed input alone takes more: `/` and `,` as no value,
  !> `1,5` as 1, and `nan`.
  pure logical function is_plain(text, point)
    character(*), intent(in) :: text
    logical, intent(in) :: point                       !< whether one may be among the digits
    character(:), allocatable :: digits
    integer :: at

    digits = text(merge(2, 1, scan(text, '+-') == 1):)
    at = index(digits, '.')
    if (point .and. at > 0) digits = digits(:at - 1)//digits(at + 1:)
    is_plain = len(digits) > 0 .and. verify(digits, '0123456789') == 0
  end function is_plain
end module numbers
