!> The text of --help.
module help
  implicit none (type, external)
  private
  public :: print_help

contains

  subroutine print_help()
    character(*), parameter :: lines(*) = [character(112) :: &
      'brownout: a rotor over dusty ground, its free vortex wake, and the dust it raises', &
      '', &
      '  --case hover|landing        hover in ground effect, or an approach that ends on the ground', &
      '  --height H                  of the rotor over the ground in the end, in radii (hover 1.0, landing 0.55)', &
      '  --revolutions N             length of the run (hover 14, landing 28, touchdown after 23), or --steps N', &
      '  --blades 4', &
      '  --segments-per-turn 36      wake segments that a blade sheds, and time steps, in a revolution', &
      '  --wake-turns N              turns of wake that are kept (hover 20, landing 10)', &
      '  --split 2.0                 segments that grow longer than this many shed ones are split (0: never)', &
      '  --squire 1e-3               a1 of the growth of vortex cores', &
      '  --integrator rk3            rk4, ab2 or euler, of wake and dust', &
      '', &
      '  --particles N               dust parcels (hover 100000, landing 20000)', &
      '  --supply 0.01               kg/m2 of dust that the bed can give: the parcels'' mass', &
      '  --restitution 0.5           of a parcel that strikes the ground', &
      '  --friction 0.4              share of its tangential velocity that it loses there', &
      '  --pressure 1e4              plastic pressure of the bed in Pa, for bombardment (0: none)', &
      '  --cell 0.5                  cells of the concentration in m', &
      '', &
      '  --output brownout-out       folder of pictures, VTK files and run.csv', &
      '  --frames 10                 VTK snapshots, more where steps are no multiple of it (0: none)', &
      '  --checkpoint-every N        steps; --checkpoint FILE: its name (checkpoint.npz in the folder)', &
      '  --restart FILE              goes on from a checkpoint, with the same options, to --revolutions or --steps;', &
      '                              snapshots keep the interval and the numbers of the run before', &
      '  --reproducible yes          the same bits in every run, and after a restart', &
      '  --seed 1  --threads 0       random dust; threads of library and loop (0: all)', &
      '', &
      '  --method flow               wake and dust move in a flow of libwakefmm; or the program moves', &
      '           fmm|direct|loop    them by libwakefmm''s FMM, its direct sum, or a plain Fortran loop', &
      '  --precision double|single   computing precision of the library', &
      '  --tolerance 1e-3            relative error that the FMM may make', &
      '  --bench                     time one evaluation by each method (--segments, --particles);', &
      '                              --repeats 20: the median of so many; --loop no: the library alone', &
      '  --compare                   the same run by each method, at --squire 2e-4; states how far the clouds differ', &
      '  --selftest                  physics and library checks']
    integer :: k

    do k = 1, size(lines)
      print '(a)', trim(lines(k))
    end do
  end subroutine print_help
end module help
