!> A picture in memory: shading, smooth lines, lettering. Positions are in pixels from the top left corner.
module canvas
  use kinds, only: wp
  use lettering, only: strokes_of
  use png, only: write_png
  implicit none (type, external)
  private
  public :: canvas_t

  type :: canvas_t
    integer :: width = 0, height = 0
    real(wp), allocatable :: rgb(:, :, :)              !< (3, width, height), 0 … 1
  contains
    procedure :: create
    procedure :: blend
    procedure :: line
    procedure :: text
    procedure :: save
  end type canvas_t

contains

  subroutine create(self, width, height, colour)
    class(canvas_t), intent(inout) :: self
    integer, intent(in) :: width, height
    real(wp), intent(in) :: colour(3)

    self%width = width
    self%height = height
    self%rgb = spread(spread(colour, 2, width), 3, height)
  end subroutine create

  pure subroutine blend(self, ix, iy, colour, opacity)
    class(canvas_t), intent(inout) :: self
    integer, intent(in) :: ix, iy
    real(wp), intent(in) :: colour(3), opacity

    if (ix < 1 .or. iy < 1 .or. ix > self%width .or. iy > self%height) return
    self%rgb(:, ix, iy) = (1 - opacity)*self%rgb(:, ix, iy) + opacity*colour
  end subroutine blend

  !> A straight stroke with round ends; a pixel's share follows its distance to the stroke.
  !> `window` (left, top, right, bottom), when present, is not left.
  pure subroutine line(self, a, b, thickness, colour, opacity, window)
    class(canvas_t), intent(inout) :: self
    real(wp), intent(in) :: a(2), b(2), thickness, colour(3), opacity
    integer, intent(in), optional :: window(4)
    real(wp) :: along(2), offset(2), share, reach
    integer :: ix, iy, box(4)

    reach = 0.5_wp*thickness + 1
    box = [1, 1, self%width, self%height]
    if (present(window)) box = window
    box(1:2) = max(box(1:2), floor(min(a, b) - reach))
    box(3:4) = min(box(3:4), ceiling(max(a, b) + reach))
    along = b - a
    do iy = box(2), box(4)
      do ix = box(1), box(3)
        offset = [real(ix, wp), real(iy, wp)] - a
        share = 0
        if (dot_product(along, along) > 0) share = min(max(dot_product(offset, along)/dot_product(along, along), 0.0_wp), 1.0_wp)
        share = 0.5_wp*thickness + 0.5_wp - norm2(offset - share*along)
        if (share > 0) call self%blend(ix, iy, colour, opacity*min(share, 1.0_wp))
      end do
    end do
  end subroutine line

  !> Lettering whose base line begins at (x, y); `size` is the height of a capital.
  subroutine text(self, x, y, size, colour, words)
    class(canvas_t), intent(inout) :: self
    real(wp), intent(in) :: x, y, size, colour(3)
    character(*), intent(in) :: words
    character(:), allocatable :: strokes
    real(wp) :: unit, from(2), to(2), left
    integer :: k, at
    logical :: down

    unit = size/6
    do k = 1, len(words)
      strokes = strokes_of(words(k:k))
      left = x + (k - 1)*6.2_wp*unit
      down = .false.
      at = 1
      do while (at < len(strokes))
        if (strokes(at:at) == ' ') then
          down = .false.
          at = at + 1
          cycle
        end if
        to = [left + digit(strokes(at:at))*unit, y - (digit(strokes(at + 1:at + 1)) - 2)*unit]
        if (down) call self%line(from, to, max(1.0_wp, 0.13_wp*size), colour, 0.9_wp)
        from = to
        down = .true.
        at = at + 2
      end do
    end do
  end subroutine text

  pure integer function digit(letter)
    character, intent(in) :: letter

    digit = iachar(letter) - iachar('0')
  end function digit

  subroutine save(self, path)
    class(canvas_t), intent(in) :: self
    character(*), intent(in) :: path

    integer, allocatable :: bytes(:, :, :)

    allocate (bytes(3, self%width, self%height))
    bytes = nint(255*min(max(self%rgb, 0.0_wp), 1.0_wp))
    call write_png(path, bytes)
  end subroutine save
end module canvas
