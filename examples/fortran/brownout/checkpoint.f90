!> A checkpoint is two files: FILE, which the library writes of the flow, and FILE.host with what only the program knows. A run
!> goes on from it as if it had not stopped: bit for bit under --reproducible yes.
!> In: a file name, and the state. Out: the state.
module checkpoint
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_null_char
  use, intrinsic :: iso_fortran_env, only: int64, error_unit
  use kinds, only: wp
  use options, only: run_options
  use simulation, only: simulation_t
  implicit none (type, external)
  private
  public :: save_checkpoint, load_checkpoint

  character(16), parameter :: mark = 'brownout state 1'

  interface
    integer(c_int) function c_rename(from, to) bind(c, name='rename')
      import :: c_int, c_char
      character(kind=c_char), intent(in) :: from(*), to(*)
    end function c_rename
  end interface

contains

  subroutine save_checkpoint(path, run, sim)
    character(*), intent(in) :: path
    type(run_options), intent(in) :: run
    type(simulation_t), intent(in) :: sim
    integer :: unit

    open (newunit=unit, file=path//'.host.new', access='stream', form='unformatted', status='replace', action='write')
    write (unit) mark, sim%steps, same_run(run), size(sim%stepper%row)
    associate (w => sim%wake)
      write (unit) w%nodes, w%node, w%node_age, w%core
    end associate
    associate (d => sim%dust)
      write (unit) d%position, d%velocity, d%diameter, d%exposure, d%resistance, d%release_height, d%airborne
    end associate
    associate (b => sim%stepper%bombardment)
      write (unit) b%impacts, b%ejected, b%owed, b%wind, sim%stepper%row, mark
    end associate
    close (unit)
    call sim%stepper%save(path)
    if (c_rename(path//'.host.new'//c_null_char, path//'.host'//c_null_char) /= 0) call stop_with(path//'.host cannot be written')
  end subroutine save_checkpoint

  !> `sim` was made with the same options.
  subroutine load_checkpoint(path, run, sim)
    character(*), intent(in) :: path
    type(run_options), intent(in) :: run
    type(simulation_t), intent(inout) :: sim
    character(16) :: first, last
    real(wp) :: of_run(size(same_run(run)))
    integer :: unit, ios, rows
    integer(int64) :: steps

    open (newunit=unit, file=path//'.host', access='stream', form='unformatted', status='old', action='read', iostat=ios)
    if (ios /= 0) call stop_with(path//'.host cannot be read')
    read (unit, iostat=ios) first, sim%steps, of_run, rows
    if (ios /= 0 .or. first /= mark) call stop_with(path//'.host is no checkpoint of this program')
    if (any(abs(of_run - same_run(run)) > 0)) call stop_with(path//' is of a run with other options')
    allocate (sim%stepper%row(rows))
    associate (w => sim%wake, d => sim%dust, b => sim%stepper%bombardment)
      read (unit, iostat=ios) w%nodes, w%node, w%node_age, w%core, d%position, d%velocity, d%diameter, d%exposure, &
        d%resistance, d%release_height, d%airborne, b%impacts, b%ejected, b%owed, b%wind, sim%stepper%row, last
      if (ios /= 0 .or. last /= mark) call stop_with(path//'.host is cut short')
    end associate
    close (unit)
    call sim%resume()
    call sim%stepper%restore(run, path, steps)
    if (steps /= sim%steps) call stop_with(path//' and '//path//'.host are of different steps')
  end subroutine load_checkpoint

  !> Numbers that two runs share of which one goes on where the other ended.
  pure function same_run(run) result(numbers)
    type(run_options), intent(in) :: run
    real(wp) :: numbers(17)

    numbers = [real(wp) :: merge(1, 0, run%flight == 'landing'), merge(1, 0, run%precision == 'single'), &
               merge(1, 0, run%reproducible), run%blades, run%segments_per_turn, run%wake_turns, run%particles, run%seed, &
               ichar(run%integrator(1:1)), ichar(run%integrator(3:3)), run%height, run%tolerance, run%squire, run%split, &
               run%restitution, run%friction, run%pressure]
  end function same_run

  subroutine stop_with(message)
    character(*), intent(in) :: message

    write (error_unit, '(a)') 'brownout: '//message
    stop 2, quiet=.true.
  end subroutine stop_with
end module checkpoint
