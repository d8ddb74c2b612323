!> The ordinary mode: runs a case to its end with a progress line, VTK snapshots and the picture.
module run_mode
  use kinds, only: wp
  use options, only: run_options
  use simulation, only: simulation_t
  use progress, only: progress_t, wall_clock
  use picture, only: draw_pictures
  use vtk, only: write_wake, write_dust, write_collection
  implicit none (type, external)
  private
  public :: run_case

contains

  subroutine run_case(run)
    type(run_options), intent(in) :: run
    type(simulation_t) :: sim
    type(progress_t) :: progress
    real(wp), allocatable :: times(:)
    real(wp) :: started
    integer :: k, every

    call make_folder(run%output)
    call sim%create(run)
    started = wall_clock()
    call progress%start(run%steps)
    allocate (times(0))
    every = max(1, run%steps/max(run%frames, 1))
    do k = 1, run%steps
      call sim%step()
      if (run%frames > 0 .and. mod(k, every) == 0) then
        times = [times, sim%time]
        call write_snapshot(run%output, size(times), sim)
      end if
      call progress%tell(k, state(sim))
    end do
    if (size(times) > 0) call write_collection(run%output, 'wake', times)
    if (size(times) > 0) call write_collection(run%output, 'dust', times)
    call draw_pictures(run%output//'/brownout.png', run%output//'/above.png', sim)
    print '(2a)', 'end:      ', caption(run, sim)
    call report(run, sim, wall_clock() - started, size(times) > 0)
    call sim%finish()
  end subroutine run_case

  subroutine make_folder(folder)
    character(*), intent(in) :: folder
    integer :: status

    call execute_command_line("mkdir -p '"//folder//"'", exitstat=status)
    if (status /= 0) error stop 'brownout: cannot make the output folder'
  end subroutine make_folder

  subroutine write_snapshot(folder, number, sim)
    character(*), intent(in) :: folder
    integer, intent(in) :: number
    type(simulation_t), intent(in) :: sim
    character(4) :: digits

    write (digits, '(i4.4)') number
    call write_wake(folder//'/wake_'//digits//'.vtp', sim%wake)
    call write_dust(folder//'/dust_'//digits//'.vtp', sim%dust)
  end subroutine write_snapshot

  function state(sim) result(text)
    type(simulation_t), intent(in) :: sim
    character(:), allocatable :: text
    character(80) :: line

    write (line, '(i0,a,i0,a)') sim%segments%n, ' segments, ', count(sim%dust%airborne), ' parcels up'
    text = trim(line)
  end function state

  function caption(run, sim) result(text)
    type(run_options), intent(in) :: run
    type(simulation_t), intent(in) :: sim
    character(:), allocatable :: text
    character(160) :: line

    write (line, '(2a,f0.2,a,i0,a,i0,a,i0,a)') run%flight, '   t = ', sim%time, ' s   ', sim%wake%blades, &
      ' blades   ', sim%segments%n, ' segments   ', count(sim%dust%airborne), ' dust parcels up'
    text = trim(line)
  end function caption

  subroutine report(run, sim, seconds, wrote_vtk)
    type(run_options), intent(in) :: run
    type(simulation_t), intent(in) :: sim
    real(wp), intent(in) :: seconds
    logical, intent(in) :: wrote_vtk

    print '(a,f0.1,a,f0.1,3a)', 'done in ', seconds, ' s, of which ', sim%seconds(), &
      ' s in the library (method ', run%method, ')'
    print '(2a)', 'pictures: ', run%output//'/brownout.png and above.png'
    if (wrote_vtk) print '(2a)', 'ParaView: ', run%output//'/wake.pvd and dust.pvd'
  end subroutine report
end module run_mode
