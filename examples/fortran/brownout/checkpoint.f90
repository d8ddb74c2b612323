!> A checkpoint is two files: FILE, which the library writes of the flow, and FILE.host with what only the program knows. A run
!> goes on from it as if it had not stopped: bit for bit under --reproducible yes.
!> In: a file name, and the state. Out: the state.
module checkpoint
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_null_char
  use, intrinsic :: iso_fortran_env, only: int64, error_unit
  use kinds, only: wp
  use options, only: run_options
  use simulation, only: simulation_t
  use frames, only: frames_t
  use files, only: output_file, fail
  implicit none (type, external)
  private
  public :: save_checkpoint, load_checkpoint, same_run

  character(16), parameter :: mark = 'brownout state 2'

  interface
    integer(c_int) function c_rename(from, to) bind(c, name='rename')
      import :: c_int, c_char
      character(kind=c_char), intent(in) :: from(*), to(*)
    end function c_rename
  end interface

contains

  subroutine save_checkpoint(path, run, sim, frames)
    character(*), intent(in) :: path
    type(run_options), intent(in) :: run
    type(simulation_t), intent(in) :: sim
    type(frames_t), intent(in) :: frames
    type(output_file) :: file
    integer :: ios
    character(200) :: message

    call file%create(path//'.host.new')
    associate (w => sim%wake, d => sim%dust, b => sim%stepper%bombardment)
      write (file%unit, iostat=ios, iomsg=message) mark, sim%steps, same_run(run), size(sim%stepper%row), frames%interval, &
        size(frames%time), w%nodes, w%node, w%node_age, w%core, d%position, d%velocity, d%diameter, d%exposure, d%resistance, &
        d%release_height, d%airborne, b%impacts, b%ejected, b%owed, b%wind, sim%stepper%row, frames%time, mark
    end associate
    call file%check(ios, message)
    call file%close()
    call sim%stepper%save(path)
    if (c_rename(path//'.host.new'//c_null_char, path//'.host'//c_null_char) /= 0) call fail(path//'.host cannot be written')
  end subroutine save_checkpoint

  !> `sim` was made with the same options.
  subroutine load_checkpoint(path, run, sim, frames)
    character(*), intent(in) :: path
    type(run_options), intent(in) :: run
    type(simulation_t), intent(inout) :: sim
    type(frames_t), intent(inout) :: frames
    character(16) :: first, last
    real(wp) :: of_run(size(same_run(run)))
    integer :: unit, ios, rows, interval, written
    integer :: k
    integer(int64) :: steps

    open (newunit=unit, file=path//'.host', access='stream', form='unformatted', status='old', action='read', iostat=ios)
    if (ios /= 0) call stop_with(path//'.host cannot be read')
    read (unit, iostat=ios) first, sim%steps, of_run, rows, interval, written
    if (ios /= 0 .or. first /= mark) call stop_with(path//'.host is no checkpoint of this version of the program')
    if (any(abs(of_run - same_run(run)) > 0)) call stop_with(path//' is of a run with other options')
    if (sim%steps > run%steps) call stop_with(path//' is of a later step than the last of this run')
    allocate (sim%stepper%row(rows))
    frames%interval = interval
    frames%time = [(0.0_wp, k=1, written)]
    associate (w => sim%wake, d => sim%dust, b => sim%stepper%bombardment)
      read (unit, iostat=ios) w%nodes, w%node, w%node_age, w%core, d%position, d%velocity, d%diameter, d%exposure, &
        d%resistance, d%release_height, d%airborne, b%impacts, b%ejected, b%owed, b%wind, sim%stepper%row, frames%time, last
      if (ios /= 0 .or. last /= mark) call stop_with(path//'.host is cut short')
    end associate
    close (unit)
    call sim%resume()
    call sim%stepper%restore(run, path, steps)
    if (steps /= sim%steps) call stop_with(path//' and '//path//'.host are of different steps')
  end subroutine load_checkpoint

  !> Numbers that two runs share of which one goes on where the other ended: all options on which wake and dust depend. The
  !> length of the run, what it writes and where, threads and cells may differ: the concentration is made anew in each step.
  pure function same_run(run) result(numbers)
    type(run_options), intent(in) :: run
    real(wp) :: numbers(18)

    numbers = [real(wp) :: merge(1, 0, run%flight == 'landing'), merge(1, 0, run%precision == 'single'), &
               merge(1, 0, run%reproducible), run%blades, run%segments_per_turn, run%wake_turns, run%particles, run%seed, &
               ichar(run%integrator(1:1)), ichar(run%integrator(3:3)), run%height, run%tolerance, run%squire, run%split, &
               run%restitution, run%friction, run%pressure, run%supply]
  end function same_run

  subroutine stop_with(message)
    character(*), intent(in) :: message

    write (error_unit, '(a)') 'brownout: '//message
    stop 2, quiet=.true.
  end subroutine stop_with
end module checkpoint
