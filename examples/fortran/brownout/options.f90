!> What the user may choose. In: the command line. Out: one `run_options`.
module options
  use kinds, only: wp
  use numbers, only: read_number
  implicit none (type, external)
  private
  public :: run_options, default_names, read_command_line, set_option, check_options

  type :: run_options
    character(:), allocatable :: mode             !< run, bench, compare, selftest, help
    character(:), allocatable :: flight           !< hover or landing
    character(:), allocatable :: method           !< flow; to compare sums: fmm, direct or loop
    character(:), allocatable :: precision        !< double or single: the library's computing precision
    character(:), allocatable :: output           !< folder of picture and VTK files
    real(wp) :: tolerance = 1.0e-3_wp             !< relative error of the velocity that the FMM may make
    integer  :: blades = 4
    integer  :: segments_per_turn = 36            !< also the time steps in a revolution
    integer  :: wake_turns = 0                    !< older wake is dropped; 0: by the case
    integer  :: steps = 0                         !< 0: as many as `revolutions` needs
    integer  :: revolutions = 0                   !< 0: by the case
    integer  :: particles = 0                     !< 0: by the case
    integer  :: segments = 8000                   !< bench only: segments with images
    integer  :: repeats = 1                       !< bench only: evaluations that are timed
    logical  :: loop = .true.                     !< bench only: whether the plain loop is timed too
    integer  :: frames = 10                       !< VTK snapshots over the run; 0: none
    integer  :: seed = 1
    integer  :: threads = 0                       !< 0: all
    real(wp) :: height = 0                        !< of the rotor over the ground in the end, in radii; 0: by the case
    character(:), allocatable :: integrator       !< of wake and dust in a flow: rk3, rk4, ab2 or euler
    real(wp) :: squire = 1.0e-3_wp                !< a1 of the growth of cores
    real(wp) :: split = 2.0_wp                    !< longest segment, in lengths of a shed one; 0: any
    logical  :: reproducible = .false.            !< the same bits in every run
    real(wp) :: supply = 0.01_wp                  !< kg/m² of dust that the bed can give
    real(wp) :: pressure = 1.0e4_wp               !< Pa, plastic pressure of the bed; 0: no bombardment
    real(wp) :: restitution = 0.5_wp              !< of a parcel's normal velocity at the ground
    real(wp) :: friction = 0.4_wp                 !< share of its tangential velocity that is lost there
    real(wp) :: cell = 0.5_wp                     !< m, of the grid of the concentration
    character(:), allocatable :: restart          !< checkpoint to go on from; empty: none
    character(:), allocatable :: checkpoint       !< file of the checkpoints; empty: in the output folder
    integer  :: checkpoint_every = 0              !< steps; 0: no checkpoint
  end type run_options

  !> Final height in radii, revolutions, turns of wake, parcels: a hover in ground effect; a rotor on its wheels, five turns after touchdown.
  real(wp), parameter :: hover_height = 1.0_wp, wheels_height = 0.55_wp
  integer, parameter :: hover_revolutions = 14, landing_revolutions = 28, hover_turns = 20, landing_turns = 10
  integer, parameter :: hover_particles = 100000, landing_particles = 20000

contains

  !> What an option is that is a name or a path.
  subroutine default_names(run)
    type(run_options), intent(inout) :: run

    run%mode = 'run'
    run%flight = 'hover'
    run%method = 'flow'
    run%precision = 'double'
    run%output = 'brownout-out'
    run%integrator = 'rk3'
    run%restart = ''
    run%checkpoint = ''
  end subroutine default_names

  !> Reads `--name value` pairs; a wrong one is explained in `problem`, which is empty when all is well.
  subroutine read_command_line(run, problem)
    type(run_options), intent(out) :: run
    character(:), allocatable, intent(out) :: problem
    character(:), allocatable :: name, text
    integer :: k

    call default_names(run)
    problem = ''
    k = 1
    do while (k <= command_argument_count() .and. problem == '')
      name = argument(k)
      select case (name)
      case ('--help', '--bench', '--compare', '--selftest')
        run%mode = name(3:)
        k = k + 1
      case default
        text = ''
        if (k < command_argument_count()) text = argument(k + 1)
        call set_option(run, name, text, problem)
        k = k + 2
      end select
    end do
    if (problem == '') call check_options(run, problem)
  end subroutine read_command_line

  subroutine set_option(run, name, text, problem)
    type(run_options), intent(inout) :: run
    character(*), intent(in) :: name, text
    character(:), allocatable, intent(inout) :: problem
    logical :: good

    good = .true.
    select case (name)
    case ('--case');              run%flight = text
    case ('--method');            run%method = text
    case ('--precision');         run%precision = text
    case ('--output');            run%output = text
    case ('--tolerance');         call read_number(text, run%tolerance, good)
    case ('--height');            call read_number(text, run%height, good)
    case ('--blades');            call read_number(text, run%blades, good)
    case ('--segments-per-turn'); call read_number(text, run%segments_per_turn, good)
    case ('--wake-turns');        call read_number(text, run%wake_turns, good)
    case ('--revolutions');       call read_number(text, run%revolutions, good)
    case ('--steps');             call read_number(text, run%steps, good)
    case ('--particles');         call read_number(text, run%particles, good)
    case ('--segments');          call read_number(text, run%segments, good)
    case ('--repeats');           call read_number(text, run%repeats, good)
    case ('--loop');              call set_yes_or_no(run%loop, name, text, problem)
    case ('--reproducible');      call set_yes_or_no(run%reproducible, name, text, problem)
    case ('--integrator');        run%integrator = text
    case ('--squire');            call read_number(text, run%squire, good)
    case ('--split');             call read_number(text, run%split, good)
    case ('--supply');            call read_number(text, run%supply, good)
    case ('--pressure');          call read_number(text, run%pressure, good)
    case ('--restitution');       call read_number(text, run%restitution, good)
    case ('--friction');          call read_number(text, run%friction, good)
    case ('--cell');              call read_number(text, run%cell, good)
    case ('--restart');           run%restart = text
    case ('--checkpoint');        run%checkpoint = text
    case ('--checkpoint-every');  call read_number(text, run%checkpoint_every, good)
    case ('--frames');            call read_number(text, run%frames, good)
    case ('--seed');              call read_number(text, run%seed, good)
    case ('--threads');           call read_number(text, run%threads, good)
    case default
      problem = 'unknown option '//name
    end select
    if (.not. good .or. (problem == '' .and. text == '')) problem = name//" cannot be '"//text//"'"
  end subroutine set_option

  subroutine set_yes_or_no(flag, name, text, problem)
    logical, intent(inout) :: flag
    character(*), intent(in) :: name, text
    character(:), allocatable, intent(inout) :: problem

    flag = text == 'yes'
    if (.not. any(text == [character(3) :: 'yes', 'no'])) problem = name//' is yes or no'
  end subroutine set_yes_or_no

  !> Fills in what follows from the case, and finds what cannot be.
  subroutine check_options(run, problem)
    type(run_options), intent(inout) :: run
    character(:), allocatable, intent(inout) :: problem

    if (.not. any(run%flight == [character(7) :: 'hover', 'landing'])) problem = '--case is hover or landing'
    if (.not. any(run%method == [character(6) :: 'flow', 'fmm', 'direct', 'loop'])) problem = &
      '--method is flow, fmm, direct or loop'
    if (.not. any(run%precision == [character(6) :: 'double', 'single'])) problem = '--precision is double or single'
    if (min(run%blades, run%repeats) < 1) problem = 'counts must be positive'
    if (run%segments < 8) problem = '--segments must be 8 or more'
    if (run%segments_per_turn < 8) problem = '--segments-per-turn must be 8 or more'
    if (min(run%steps, run%frames, run%threads) < 0) problem = 'counts must not be negative'
    if (min(run%checkpoint_every, run%revolutions, run%wake_turns, run%particles) < 0) problem = 'counts must not be negative'
    if (run%height >= 0 .and. run%height <= 0) run%height = merge(wheels_height, hover_height, run%flight == 'landing')
    if (run%revolutions == 0) run%revolutions = merge(landing_revolutions, hover_revolutions, run%flight == 'landing')
    if (run%particles == 0) run%particles = merge(landing_particles, hover_particles, run%flight == 'landing')
    if (run%wake_turns == 0) run%wake_turns = merge(landing_turns, hover_turns, run%flight == 'landing')
    if (real(run%revolutions, wp)*run%segments_per_turn > huge(run%steps)) problem = '--revolutions: too many steps'
    if (run%steps == 0 .and. problem == '') run%steps = run%revolutions*run%segments_per_turn
    if (real(run%blades, wp)*run%segments_per_turn*run%wake_turns > 1.0e8_wp) problem = &
      '--blades, --segments-per-turn and --wake-turns: too many segments'
    if (run%height <= 0.2_wp) problem = '--height is in rotor radii and more than 0.2'
    if (.not. any(run%integrator == [character(5) :: 'rk3', 'rk4', 'ab2', 'euler'])) problem = &
      '--integrator is rk3, rk4, ab2 or euler'
    if (.not. (run%split >= 1 .or. run%split >= 0 .and. run%split <= 0)) problem = '--split is 0, or 1 and more'
    if (.not. min(run%supply, run%cell) > 0) problem = '--supply and --cell must be positive'
    if (.not. (min(run%restitution, run%friction) >= 0 .and. max(run%restitution, run%friction) <= 1)) problem = &
      '--restitution and --friction are between 0 and 1'
    if (.not. min(run%pressure, run%squire) >= 0) problem = '--pressure and --squire must not be negative'
    if ((run%method /= 'flow' .or. run%mode /= 'run') .and. (run%restart /= '' .or. run%checkpoint_every > 0)) problem = &
      'checkpoints are of a run by --method flow'
    if (run%checkpoint /= '' .and. run%checkpoint_every == 0) problem = '--checkpoint needs --checkpoint-every'
    if (run%checkpoint == '') run%checkpoint = run%output//'/checkpoint.npz'
    if (.not. run%tolerance > 0) problem = '--tolerance must be positive'
  end subroutine check_options

  function argument(k) result(text)
    integer, intent(in) :: k
    character(:), allocatable :: text
    integer :: length

    call get_command_argument(k, length=length)
    allocate (character(length) :: text)
    call get_command_argument(k, text)
  end function argument
end module options
