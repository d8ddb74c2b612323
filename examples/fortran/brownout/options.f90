!> What the user may choose. In: the command line. Out: one `run_options`.
module options
  use kinds, only: wp
  implicit none (type, external)
  private
  public :: run_options, read_command_line, print_help

  type :: run_options
    character(:), allocatable :: mode             !< run, bench, compare, selftest, help
    character(:), allocatable :: flight           !< hover or landing
    character(:), allocatable :: method           !< flow; to compare sums: fmm, direct or loop
    character(:), allocatable :: precision        !< double or single: the library's computing precision
    character(:), allocatable :: output           !< folder of picture and VTK files
    real(wp) :: tolerance = 1.0e-3_wp             !< relative error of the velocity that the FMM may make
    integer  :: blades = 4
    integer  :: segments_per_turn = 36            !< also the time steps in a revolution
    integer  :: wake_turns = 20                   !< older wake is dropped
    integer  :: steps = 0                         !< 0: as many as `revolutions` needs
    integer  :: revolutions = 14
    integer  :: particles = 100000
    integer  :: segments = 8000                   !< bench only: segments with images
    integer  :: repeats = 1                       !< bench only: evaluations that are timed
    logical  :: loop = .true.                     !< bench only: whether the plain loop is timed too
    integer  :: frames = 10                       !< VTK snapshots over the run; 0: none
    integer  :: seed = 1
    integer  :: threads = 0                       !< 0: all
    real(wp) :: height = 1.0_wp                   !< of the hovering rotor over the ground, in radii
  end type run_options

contains

  !> Reads `--name value` pairs; a wrong one is explained in `problem`, which is empty when all is well.
  subroutine read_command_line(run, problem)
    type(run_options), intent(out) :: run
    character(:), allocatable, intent(out) :: problem
    character(:), allocatable :: name, text
    integer :: k

    run%mode = 'run'
    run%flight = 'hover'
    run%method = 'flow'
    run%precision = 'double'
    run%output = 'brownout-out'
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
    if (run%steps == 0) run%steps = run%revolutions * run%segments_per_turn
  end subroutine read_command_line

  subroutine set_option(run, name, text, problem)
    type(run_options), intent(inout) :: run
    character(*), intent(in) :: name, text
    character(:), allocatable, intent(inout) :: problem
    integer :: ios

    ios = 0
    select case (name)
    case ('--case');              run%flight = text
    case ('--method');            run%method = text
    case ('--precision');         run%precision = text
    case ('--output');            run%output = text
    case ('--tolerance');         read (text, *, iostat=ios) run%tolerance
    case ('--height');            read (text, *, iostat=ios) run%height
    case ('--blades');            read (text, *, iostat=ios) run%blades
    case ('--segments-per-turn'); read (text, *, iostat=ios) run%segments_per_turn
    case ('--wake-turns');        read (text, *, iostat=ios) run%wake_turns
    case ('--revolutions');       read (text, *, iostat=ios) run%revolutions
    case ('--steps');             read (text, *, iostat=ios) run%steps
    case ('--particles');         read (text, *, iostat=ios) run%particles
    case ('--segments');          read (text, *, iostat=ios) run%segments
    case ('--repeats');           read (text, *, iostat=ios) run%repeats
    case ('--loop')
      run%loop = text == 'yes'
      if (.not. any(text == [character(3) :: 'yes', 'no'])) problem = '--loop is yes or no'
    case ('--frames');            read (text, *, iostat=ios) run%frames
    case ('--seed');              read (text, *, iostat=ios) run%seed
    case ('--threads');           read (text, *, iostat=ios) run%threads
    case default
      problem = 'unknown option '//name
    end select
    if (ios /= 0 .or. (problem == '' .and. text == '')) problem = name//" cannot be '"//text//"'"
  end subroutine set_option

  subroutine check_options(run, problem)
    type(run_options), intent(in) :: run
    character(:), allocatable, intent(inout) :: problem

    if (.not. any(run%flight == [character(7) :: 'hover', 'landing'])) problem = '--case is hover or landing'
    if (.not. any(run%method == [character(6) :: 'flow', 'fmm', 'direct', 'loop'])) problem = &
      '--method is flow, fmm, direct or loop'
    if (.not. any(run%precision == [character(6) :: 'double', 'single'])) problem = '--precision is double or single'
    if (min(run%blades, run%wake_turns, run%particles, run%revolutions, run%repeats) < 1) problem = 'counts must be positive'
    if (run%segments_per_turn < 8) problem = '--segments-per-turn must be 8 or more'
    if (min(run%steps, run%frames, run%threads) < 0) problem = 'counts must not be negative'
    if (run%height <= 0.2_wp) problem = '--height is in rotor radii and more than 0.2'
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

  subroutine print_help()
    character(*), parameter :: lines(*) = [character(96) :: &
      'brownout: a rotor over dusty ground, its free vortex wake, and the dust it raises', &
      '', &
      '  --case hover|landing        hover in ground effect, or an approach that ends in it', &
      '  --method flow               wake and dust move in a flow of libwakefmm; or the program moves', &
      '           fmm|direct|loop    them by libwakefmm''s FMM, its direct sum, or a plain Fortran loop', &
      '  --precision double|single   computing precision of the library', &
      '  --tolerance 1e-3            relative error that the FMM may make', &
      '  --particles 100000          dust parcels', &
      '  --segments-per-turn 36      wake segments, and time steps, in a revolution', &
      '  --wake-turns 20             turns of wake that are kept', &
      '  --revolutions 14            length of the run (or --steps n)', &
      '  --blades 4  --height 1.0    rotor; height over ground in radii', &
      '  --frames 10                 VTK snapshots (0: none)', &
      '  --seed 1  --threads 0       random dust; threads of library and loop (0: all)', &
      '  --output brownout-out       folder of picture and VTK files', &
      '', &
      '  --bench                     time one evaluation by each method (--segments, --particles);', &
      '                              --repeats 20: the median of so many; --loop no: the library alone', &
      '  --compare                   the same run by each method; states how far the clouds differ', &
      '  --selftest                  physics and library checks']
    integer :: k

    do k = 1, size(lines)
      print '(a)', trim(lines(k))
    end do
  end subroutine print_help
end module options
