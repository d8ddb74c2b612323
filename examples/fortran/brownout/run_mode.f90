!> The ordinary mode: runs a case to its end with a progress line, a table, VTK snapshots, checkpoints and the pictures.
module run_mode
  use kinds, only: wp
  use options, only: run_options
  use simulation, only: simulation_t
  use progress, only: progress_t, wall_clock
  use picture, only: draw_pictures
  use checkpoint, only: save_checkpoint, load_checkpoint
  use vtk, only: write_wake, write_dust, write_cloud, write_collection
  implicit none (type, external)
  private
  public :: run_case

contains

  subroutine run_case(run)
    type(run_options), intent(in) :: run
    type(simulation_t) :: sim
    type(progress_t) :: progress
    real(wp) :: started
    integer :: k, every, table

    call make_folder(run%output)
    call sim%create(run)
    if (run%restart /= '') call load_checkpoint(run%restart, run, sim)
    call open_table(run, sim%steps, table)
    started = wall_clock()
    call progress%start(run%steps)
    every = max(1, run%steps/max(run%frames, 1))
    do k = sim%steps + 1, run%steps
      call sim%step()
      write (table, '(i0,4(",",g0.6),2(",",i0))') k, sim%time, sim%sight%optical_depth, sim%sight%visual_range, &
        sim%sight%mass, count(sim%dust%airborne), sim%segments%n
      if (run%frames > 0 .and. mod(k, every) == 0) call write_snapshot(run%output, k/every, sim)
      if (run%checkpoint_every > 0) then
        if (mod(k, run%checkpoint_every) == 0) call save_checkpoint(run%checkpoint, run, sim)
      end if
      call progress%tell(k, state(sim))
    end do
    close (table)
    if (run%frames > 0) call write_collections(run, every*sim%dt, run%steps/every)
    call draw_pictures(run%output//'/brownout.png', run%output//'/above.png', sim)
    call report(run, sim, wall_clock() - started)
    call sim%finish()
  end subroutine run_case

  subroutine make_folder(folder)
    character(*), intent(in) :: folder
    integer :: status

    call execute_command_line("mkdir -p '"//folder//"'", exitstat=status)
    if (status /= 0) error stop 'brownout: cannot make the output folder'
  end subroutine make_folder

  !> A line a step. A run that goes on keeps the lines up to the step that it goes on from.
  subroutine open_table(run, done, table)
    type(run_options), intent(in) :: run
    integer, intent(in) :: done                        !< steps
    integer, intent(out) :: table
    integer :: ios, no_number, number
    logical :: exists
    character(200) :: line

    inquire (file=run%output//'/run.csv', exist=exists)
    if (run%restart == '' .or. .not. exists) then
      open (newunit=table, file=run%output//'/run.csv', status='replace', action='write')
      write (table, '(a)') 'step,time_s,optical_depth,visual_range_m,dust_in_the_air_kg,parcels_up,segments'
      return
    end if
    open (newunit=table, file=run%output//'/run.csv', status='old', position='rewind', action='readwrite')
    do
      read (table, '(a)', iostat=ios) line
      if (ios /= 0) exit
      read (line, *, iostat=no_number) number
      if (no_number == 0 .and. number > done) exit
    end do
    backspace (table)
  end subroutine open_table

  subroutine write_snapshot(folder, number, sim)
    character(*), intent(in) :: folder
    integer, intent(in) :: number
    type(simulation_t), intent(in) :: sim
    character(4) :: digits

    write (digits, '(i4.4)') number
    call write_wake(folder//'/wake_'//digits//'.vtp', sim%wake)
    call write_dust(folder//'/dust_'//digits//'.vtp', sim%dust)
    call write_cloud(folder//'/cloud_'//digits//'.vti', sim%cloud)
  end subroutine write_snapshot

  subroutine write_collections(run, interval, number)
    type(run_options), intent(in) :: run
    real(wp), intent(in) :: interval                   !< s, between snapshots
    integer, intent(in) :: number
    integer :: k

    associate (times => [(k*interval, k=1, number)])
      call write_collection(run%output, 'wake', '.vtp', times)
      call write_collection(run%output, 'dust', '.vtp', times)
      call write_collection(run%output, 'cloud', '.vti', times)
    end associate
  end subroutine write_collections

  function state(sim) result(text)
    type(simulation_t), intent(in) :: sim
    character(:), allocatable :: text
    character(80) :: line

    write (line, '(i0,a,i0,a,f0.2)') sim%segments%n, ' segments, ', count(sim%dust%airborne), ' parcels up, optical depth ', &
      sim%sight%optical_depth
    text = trim(line)
  end function state

  subroutine report(run, sim, seconds)
    type(run_options), intent(in) :: run
    type(simulation_t), intent(in) :: sim
    real(wp), intent(in) :: seconds
    real(wp) :: hub(3)

    hub = sim%rotor%hub(sim%time)
    print '(3a,f0.2,a,f0.2,a,f0.2,a,i0,a)', 'end:      ', sim%rotor%flight_path(sim%time), ' at t = ', sim%time, &
      ' s, rotor at ', hub(3), ' m = ', hub(3)/sim%rotor%radius, ' R, ', sim%segments%n, ' free segments'
    print '(a,i0,a,f0.1,a,f0.2,a)', 'dust:     ', count(sim%dust%airborne), ' parcels in the air; on the grid ', &
      sim%sight%mass, ' kg, at most ', 1000*sim%sight%concentration, ' g/m3'
    if (run%method == 'flow') print '(a,i0,a,i0,a)', '          ', sim%stepper%bombardment%impacts, &
      ' parcels have bounced, ', sim%stepper%bombardment%ejected, ' were ejected by others'
    print '(a,f0.2,a,f0.1,a,f0.0,a)', 'sight:    pilot to the ground 20 m ahead: optical depth ', sim%sight%optical_depth, &
      ', ', 100*exp(-sim%sight%optical_depth), ' % of the light; visual range ', sim%sight%visual_range, ' m'
    print '(a,f0.1,a,f0.1,3a)', 'done in ', seconds, ' s, of which ', sim%seconds(), ' s in the library (method ', &
      run%method, ')'
    print '(2a)', 'pictures: ', run%output//'/brownout.png and above.png; a line a step in run.csv'
    if (run%frames > 0) print '(2a)', 'ParaView: ', run%output//'/wake.pvd, dust.pvd and cloud.pvd'
  end subroutine report
end module run_mode
