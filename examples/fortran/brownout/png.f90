!> Writes a picture as PNG (ISO/IEC 15948) with nothing but Fortran. The deflate stream (RFC 1951) holds
!> stored blocks: larger than a packed file, and thirty lines instead of three hundred.
module png
  use, intrinsic :: iso_fortran_env, only: int8, int32, int64
  implicit none (type, external)
  private
  public :: write_png

  integer, parameter :: block_size = 65535

contains

  !> `rgb(3, width, height)`, 0 … 255, top row first.
  subroutine write_png(path, rgb)
    character(*), intent(in) :: path
    integer, intent(in) :: rgb(:, :, :)
    integer(int8), allocatable :: rows(:)
    integer(int32) :: crc_table(0:255)
    integer :: unit, width, height, y, start

    width = size(rgb, 2)
    height = size(rgb, 3)
    allocate (rows(height*(3*width + 1)))
    do y = 1, height
      start = (y - 1)*(3*width + 1)
      rows(start + 1) = 0_int8                         ! filter of the row: none
      rows(start + 2:start + 3*width + 1) = low_byte(reshape(rgb(:, :, y), [3*width]))
    end do
    crc_table = new_crc_table()
    open (newunit=unit, file=path, access='stream', form='unformatted', status='replace', action='write')
    write (unit) low_byte([137, 80, 78, 71, 13, 10, 26, 10])
    call write_chunk('IHDR', [big_endian(width), big_endian(height), low_byte([8, 2, 0, 0, 0])])
    call write_chunk('IDAT', stored_deflate(rows))
    call write_chunk('IEND', [integer(int8) ::])
    close (unit)

  contains

    subroutine write_chunk(name, data)
      character(4), intent(in) :: name
      integer(int8), intent(in) :: data(:)
      integer(int8) :: letters(4)
      integer :: k

      letters = low_byte([(iachar(name(k:k)), k=1, 4)])
      write (unit) big_endian(size(data)), letters, data, big_endian(crc([letters, data], crc_table))
    end subroutine write_chunk
  end subroutine write_png

  !> zlib header, stored blocks of at most 65,535 bytes, checksum.
  function stored_deflate(data) result(stream)
    integer(int8), intent(in) :: data(:)
    integer(int8), allocatable :: stream(:)
    integer :: blocks, b, first, last, length, at, final

    blocks = (size(data) + block_size - 1)/block_size
    allocate (stream(2 + 5*blocks + size(data) + 4))
    stream(1:2) = low_byte([120, 1])
    at = 2
    do b = 1, blocks
      first = (b - 1)*block_size + 1
      last = min(b*block_size, size(data))
      length = last - first + 1
      final = merge(1, 0, b == blocks)
      stream(at + 1:at + 5) = low_byte([final, iand(length, 255), length/256, &
                                        255 - iand(length, 255), 255 - length/256])
      stream(at + 6:at + 5 + length) = data(first:last)
      at = at + 5 + length
    end do
    stream(at + 1:at + 4) = big_endian(adler32(data))
  end function stored_deflate

  pure function adler32(data) result(sum32)
    integer(int8), intent(in) :: data(:)
    integer(int32) :: sum32
    integer :: a, b, k

    a = 1
    b = 0
    do k = 1, size(data)
      a = mod(a + iand(int(data(k)), 255), 65521)
      b = mod(b + a, 65521)
    end do
    sum32 = ior(ishft(int(b, int32), 16), int(a, int32))
  end function adler32

  pure function new_crc_table() result(table)
    integer(int32) :: table(0:255)
    integer(int32), parameter :: polynomial = -306674912_int32   ! EDB88320 in hexadecimal
    integer(int32) :: c
    integer :: n, k

    do n = 0, 255
      c = n
      do k = 1, 8
        c = merge(ieor(polynomial, ishft(c, -1)), ishft(c, -1), btest(c, 0))
      end do
      table(n) = c
    end do
  end function new_crc_table

  pure function crc(data, table) result(c)
    integer(int8), intent(in) :: data(:)
    integer(int32), intent(in) :: table(0:255)
    integer(int32) :: c
    integer :: k

    c = not(0_int32)
    do k = 1, size(data)
      c = ieor(table(iand(ieor(c, int(data(k), int32)), 255_int32)), ishft(c, -8))
    end do
    c = not(c)
  end function crc

  !> The byte of a number in 0 … 255, as the signed kind that Fortran has.
  elemental integer(int8) function low_byte(value)
    integer, intent(in) :: value

    low_byte = int(merge(value - 256, value, value > 127), int8)
  end function low_byte

  pure function big_endian(value) result(bytes)
    integer(int32), intent(in) :: value
    integer(int8) :: bytes(4)
    integer :: k

    do k = 1, 4
      bytes(k) = low_byte(int(ibits(value, 32 - 8*k, 8)))
    end do
  end function big_endian
end module png
