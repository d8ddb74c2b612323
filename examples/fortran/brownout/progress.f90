!> One line that keeps telling how far a run is, how fast it goes and how long it will take. Where nobody watches, in a
!> file or a pipe, a new line every ten seconds.
module progress
  use, intrinsic :: iso_c_binding, only: c_int
  use, intrinsic :: iso_fortran_env, only: int64, output_unit
  use kinds, only: wp
  implicit none (type, external)
  private
  public :: progress_t, wall_clock

  type :: progress_t
    integer  :: steps = 0, told = 0                    !< of the run; since `start`
    real(wp) :: started = 0, shown = 0, seconds_per_step = 0, last_step = 0
    logical  :: watched = .true.
  contains
    procedure :: start
    procedure :: tell
  end type progress_t

  interface
    !> POSIX: 1 where the file descriptor is a terminal.
    integer(c_int) function isatty(descriptor) bind(c, name='isatty')
      import :: c_int
      integer(c_int), value :: descriptor
    end function isatty
  end interface

contains

  real(wp) function wall_clock()
    integer(int64) :: ticks, rate

    call system_clock(ticks, rate)
    wall_clock = real(ticks, wp)/real(rate, wp)
  end function wall_clock

  subroutine start(self, steps)
    class(progress_t), intent(out) :: self
    integer, intent(in) :: steps

    self%steps = steps
    self%started = wall_clock()
    self%last_step = self%started
    self%watched = isatty(1_c_int) == 1
  end subroutine start

  !> Call after every step. The time left follows the latest steps: a growing wake makes them slower.
  subroutine tell(self, step, note)
    class(progress_t), intent(inout) :: self
    integer, intent(in) :: step
    character(*), intent(in) :: note
    real(wp) :: now, share
    character(160) :: line

    now = wall_clock()
    self%told = self%told + 1
    share = max(1.0_wp/self%told, 0.1_wp)
    self%seconds_per_step = (1 - share)*self%seconds_per_step + share*(now - self%last_step)
    self%last_step = now
    if (now - self%shown < merge(0.25_wp, 10.0_wp, self%watched) .and. step < self%steps) return
    self%shown = now
    write (line, '(a,i0,a,i0,a,a,a,a,a,a,a,a)') 'step ', step, '/', self%steps, '  ', &
      tenths(1/max(self%seconds_per_step, 1.0e-6_wp)), ' steps/s  ', minutes(now - self%started), ' gone, ', &
      minutes((self%steps - step)*self%seconds_per_step), ' left  ', note
    if (self%watched) then
      write (output_unit, '(a)', advance='no') achar(13)//line(:112)
      if (step == self%steps) write (output_unit, '()')
    else
      write (output_unit, '(a)') trim(line)
    end if
    flush (output_unit)
  end subroutine tell

  !> One digit after the point and one before it.
  function tenths(x) result(text)
    real(wp), intent(in) :: x
    character(:), allocatable :: text
    character(16) :: buffer
    integer :: n

    n = nint(10*x)
    write (buffer, '(i0,a,i1)') n/10, '.', mod(n, 10)
    text = trim(buffer)
  end function tenths

  function minutes(seconds) result(text)
    real(wp), intent(in) :: seconds
    character(:), allocatable :: text
    character(16) :: buffer
    integer :: s

    s = nint(seconds)
    write (buffer, '(i0,a,i2.2)') s/60, ':', mod(s, 60)
    text = trim(buffer)
  end function minutes
end module progress
