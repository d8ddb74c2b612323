!> Files that the program writes, and the folder that they are in. Where one cannot be written the program ends with a line.
!> In: names, text, numbers. Out: files.
module files
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_null_char
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, error_unit
  implicit none (type, external)
  private
  public :: output_file, make_folder, fail

  type :: output_file
    character(:), allocatable :: path
    integer :: unit
  contains
    procedure :: create
    procedure :: append
    procedure :: put
    procedure :: check
    procedure :: close => close_file
    procedure, private :: put_reals, put_integers
    generic :: put_block => put_reals, put_integers
  end type output_file

  interface
    integer(c_int) function c_mkdir(path, mode) bind(c, name='mkdir')
      import :: c_int, c_char
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int), value :: mode
    end function c_mkdir

    integer(c_int) function c_access(path, mode) bind(c, name='access')
      import :: c_int, c_char
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int), value :: mode
    end function c_access
  end interface

contains

  !> Empty; what had the name before is lost.
  subroutine create(self, path)
    class(output_file), intent(out) :: self
    character(*), intent(in) :: path
    integer :: ios
    character(200) :: message

    self%path = path
    open (newunit=self%unit, file=path, access='stream', form='unformatted', status='replace', action='write', iostat=ios, &
          iomsg=message)
    call self%check(ios, message)
  end subroutine create

  !> What follows goes behind what is there.
  subroutine append(self, path)
    class(output_file), intent(out) :: self
    character(*), intent(in) :: path
    integer :: ios
    character(200) :: message

    self%path = path
    open (newunit=self%unit, file=path, access='stream', form='unformatted', status='unknown', position='append', &
          action='write', iostat=ios, iomsg=message)
    call self%check(ios, message)
  end subroutine append

  subroutine put(self, text)
    class(output_file), intent(in) :: self
    character(*), intent(in) :: text
    integer :: ios
    character(200) :: message

    write (self%unit, iostat=ios, iomsg=message) text
    call self%check(ios, message)
  end subroutine put

  !> The number of bytes, then the values.
  subroutine put_reals(self, values)
    class(output_file), intent(in) :: self
    real(real32), intent(in) :: values(:)
    integer :: ios
    character(200) :: message

    write (self%unit, iostat=ios, iomsg=message) 4*size(values, kind=int64), values
    call self%check(ios, message)
  end subroutine put_reals

  subroutine put_integers(self, values)
    class(output_file), intent(in) :: self
    integer(int32), intent(in) :: values(:)
    integer :: ios
    character(200) :: message

    write (self%unit, iostat=ios, iomsg=message) 4*size(values, kind=int64), values
    call self%check(ios, message)
  end subroutine put_integers

  !> On a full disk gfortran's `write`, `flush` and `close` all report success: the size of the file tells.
  subroutine close_file(self)
    class(output_file), intent(in) :: self
    integer(int64) :: next, bytes
    integer :: ios
    character(200) :: message

    inquire (self%unit, pos=next)
    close (self%unit, iostat=ios, iomsg=message)
    call self%check(ios, message)
    inquire (file=self%path, size=bytes)
    if (bytes < next - 1) call fail(self%path//' cannot be written to its end; is the disk full?')
  end subroutine close_file

  subroutine check(self, ios, message)
    class(output_file), intent(in) :: self
    integer, intent(in) :: ios
    character(*), intent(in) :: message                !< of the runtime library, where `ios` is not 0

    if (ios /= 0) call fail(self%path//' cannot be written: '//trim(message))
  end subroutine check

  !> With the folders that it is in. No shell: a name may have any character.
  subroutine make_folder(path)
    character(*), intent(in) :: path
    integer(c_int), parameter :: all_may = 511, exists = 0
    integer(c_int) :: unused
    integer :: k

    do k = 2, len(path)
      if (path(k:k) == '/') unused = c_mkdir(path(:k - 1)//c_null_char, all_may)
    end do
    unused = c_mkdir(path//c_null_char, all_may)
    if (c_access(path//'/.'//c_null_char, exists) /= 0) call fail('the folder '//path//' cannot be made')
  end subroutine make_folder

  subroutine fail(message)
    character(*), intent(in) :: message

    write (error_unit, '(a)') 'brownout: '//message
    stop 1, quiet=.true.
  end subroutine fail
end module files
