!> Checks of the command line: which numbers are numbers, what cannot be, and which options a restart compares.
module selftest_options
  use kinds, only: wp
  use checks, only: expect
  use options, only: run_options, default_names, set_option, check_options
  use checkpoint, only: same_run
  use vtk, only: snapshot_name
  implicit none (type, external)
  private
  public :: check_command_line

  character(*), parameter :: reals(*) = [character(18) :: '--tolerance', '--height', '--squire', '--split', '--supply', &
                                         '--pressure', '--restitution', '--friction', '--cell']
  character(*), parameter :: integers(*) = [character(19) :: '--blades', '--segments-per-turn', '--wake-turns', '--revolutions', &
    '--steps', '--particles', '--segments', '--repeats', '--checkpoint-every', '--frames', '--seed', '--threads']

contains

  subroutine check_command_line(failures)
    integer, intent(inout) :: failures

    call check_numbers(failures)
    call check_limits(failures)
    call check_compared(failures)
    call expect(failures, 'names of snapshots', merge(0.0_wp, 1.0_wp, snapshot_name('wake', 7, '.vtp') == 'wake_0007.vtp' &
                .and. snapshot_name('cloud', 12345, '.vti') == 'cloud_12345.vti'), 0.0_wp)
  end subroutine check_command_line

  subroutine check_numbers(failures)
    integer, intent(inout) :: failures
    character(*), parameter :: no_numbers(*) = [character(11) :: '/', ',', '1,5', '1 2', '2*3', '3*', '12x', '''1''', '-', '.', &
      'nan', 'inf', '-Infinity', '1e', 'e5', '1e1.5', '1+5', '1e999', '0x10', '99999999999']
    character(*), parameter :: twelve(*) = [character(7) :: '12', '+12', '12.', '12.0', '1.2e1', '1.2E+1', '120d-1', '.12e2']
    type(run_options) :: run
    integer :: i, k, taken

    taken = 0
    do k = 1, size(no_numbers)
      do i = 1, size(integers)
        if (accepts(run, trim(integers(i)), trim(no_numbers(k)))) taken = taken + 1
      end do
      if (no_numbers(k) == '99999999999') cycle
      do i = 1, size(reals)
        if (accepts(run, trim(reals(i)), trim(no_numbers(k)))) taken = taken + 1
      end do
    end do
    if (accepts(run, '--steps', '1.5')) taken = taken + 1
    call expect(failures, 'texts that are taken for numbers', real(taken, wp), 0.0_wp)
    do k = 1, size(twelve)
      run%height = 0
      if (.not. accepts(run, '--height', trim(twelve(k)))) run%height = 0
      call expect(failures, '--height '//twelve(k), run%height - 12, 1.0e-14_wp)
    end do
    if (.not. accepts(run, '--seed', '-12')) run%seed = 0
    call expect(failures, '--seed -12', real(run%seed + 12, wp), 0.0_wp)
  end subroutine check_numbers

  !> Values that are numbers and cannot be.
  subroutine check_limits(failures)
    integer, intent(inout) :: failures
    character(*), parameter :: wrong(*) = [character(40) :: '--height -3', '--height 0.1', '--segments 0', &
      '--revolutions 2000000000', '--wake-turns 100000000', '--checkpoint somewhere.npz', '--cell 0', '--steps -1']
    type(run_options) :: run
    integer :: k

    do k = 1, size(wrong)
      associate (blank => index(wrong(k), ' '))
        call expect(failures, trim(wrong(k))//' is refused', merge(1.0_wp, 0.0_wp, &
                    accepts(run, wrong(k)(:blank - 1), trim(wrong(k)(blank + 1:)))), 0.0_wp)
      end associate
    end do
  end subroutine check_limits

  !> A restart refuses other physics, and no more than that.
  subroutine check_compared(failures)
    integer, intent(inout) :: failures
    character(*), parameter :: compared(*) = [character(28) :: '--case landing', '--precision single', '--reproducible yes', &
      '--blades 3', '--segments-per-turn 40', '--wake-turns 3', '--particles 7', '--seed 2', '--integrator rk4', &
      '--integrator ab2', '--integrator euler', '--height 1.5', '--tolerance 1e-4', '--squire 2e-4', '--split 3', &
      '--restitution 0.4', '--friction 0.3', '--pressure 0', '--supply 0.02']
    character(*), parameter :: free(*) = [character(28) :: '--steps 50', '--revolutions 20', '--frames 3', '--threads 1', &
      '--cell 1', '--output elsewhere', '--checkpoint-every 5', '--restart somewhere']
    integer :: k, missed

    missed = 0
    do k = 1, size(compared)
      if (same(compared(k))) missed = missed + 1
    end do
    call expect(failures, 'options that a restart forgets', real(missed, wp), 0.0_wp)
    missed = 0
    do k = 1, size(free)
      if (.not. same(free(k))) missed = missed + 1
    end do
    call expect(failures, 'options that a restart need not compare', real(missed, wp), 0.0_wp)
  end subroutine check_compared

  logical function same(option)
    character(*), intent(in) :: option
    type(run_options) :: run, other
    character(:), allocatable :: problem

    call default_names(run)
    problem = ''
    call check_options(run, problem)
    associate (blank => index(option, ' '))
      same = accepts(other, option(:blank - 1), trim(option(blank + 1:)))
    end associate
    if (.not. same) error stop 'brownout: an option of a self-test'
    same = all(abs(same_run(run) - same_run(other)) <= 0)
  end function same

  !> Of a command line with this option alone.
  logical function accepts(run, name, text)
    type(run_options), intent(out) :: run
    character(*), intent(in) :: name, text
    character(:), allocatable :: problem

    call default_names(run)
    problem = ''
    call set_option(run, name, text, problem)
    if (problem == '') call check_options(run, problem)
    accepts = problem == ''
  end function accepts
end module selftest_options
