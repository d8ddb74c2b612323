!> Brownout: a four-blade rotor over dusty ground. Its free vortex wake strikes the ground, spreads as a jet,
!> and lifts the dust. See README.md for the model; `brownout --help` for the options.
program brownout
  use, intrinsic :: iso_fortran_env, only: error_unit
  use options, only: run_options, read_command_line
  use help, only: print_help
  use run_mode, only: run_case
  use bench, only: run_bench, run_compare
  use selftest, only: run_selftest
  use library_errors, only: catch_library_errors
  implicit none (type, external)
  type(run_options) :: run
  character(:), allocatable :: problem

  call read_command_line(run, problem)
  if (problem /= '') then
    write (error_unit, '(a)') 'brownout: '//problem//'; see brownout --help'
    stop 2, quiet=.true.
  end if
  call catch_library_errors()
  select case (run%mode)
  case ('help');     call print_help()
  case ('bench');    call run_bench(run)
  case ('compare');  call run_compare(run)
  case ('selftest'); call run_selftest()
  case default;      call run_case(run)
  end select
end program brownout
