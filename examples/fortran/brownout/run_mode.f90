!> The ordinary mode: runs a case to its end with a progress line, a table, VTK snapshots, checkpoints and the pictures.
module run_mode
  use kinds, only: wp
  use options, only: run_options
  use simulation, only: simulation_t
  use progress, only: progress_t, wall_clock
  use picture, only: draw_pictures
  use checkpoint, only: save_checkpoint, load_checkpoint
  use frames, only: frames_t
  use files, only: output_file, make_folder
  implicit none (type, external)
  private
  public :: run_case

contains

  subroutine run_case(run)
    type(run_options), intent(in) :: run
    type(simulation_t) :: sim
    type(frames_t) :: frames
    type(progress_t) :: progress
    real(wp) :: started
    integer :: k

    call make_folder(run%output)
    call sim%create(run)
    if (run%restart /= '') call load_checkpoint(run%restart, run, sim, frames)
    call frames%plan(run)
    call start_table(run, sim%steps)
    started = wall_clock()
    call progress%start(run%steps)
    do k = sim%steps + 1, run%steps
      call sim%step()
      call add_to_table(run, sim)
      if (run%frames > 0 .and. frames%due(k)) call frames%add(run%output, sim)
      if (run%checkpoint_every > 0) then
        if (mod(k, run%checkpoint_every) == 0) call save_checkpoint(run%checkpoint, run, sim, frames)
      end if
      call progress%tell(k, state(sim))
    end do
    call frames%collect(run%output)
    call draw_pictures(run%output//'/brownout.png', run%output//'/above.png', sim)
    call report(run, sim, wall_clock() - started)
    call sim%finish()
  end subroutine run_case

  !> A run that goes on keeps the lines up to the step that it goes on from.
  subroutine start_table(run, done)
    type(run_options), intent(in) :: run
    integer, intent(in) :: done                        !< steps
    type(output_file) :: table
    character(*), parameter :: columns = &
      'step,time_s,optical_depth,visual_range_m,dust_in_the_air_kg,parcels_up,segments'//new_line('a')
    character(:), allocatable :: before
    integer :: unit, ios, bytes, number, kept, length

    before = ''
    kept = 0
    if (run%restart /= '') then
      open (newunit=unit, file=run%output//'/run.csv', access='stream', form='unformatted', status='old', action='read', iostat=ios)
      if (ios == 0) then
        inquire (unit, size=bytes)
        before = repeat(' ', bytes)
        read (unit, iostat=ios) before
        close (unit)
        if (index(before, columns) /= 1) before = ''
        kept = min(len(before), len(columns))
      end if
    end if
    do
      length = index(before(kept + 1:), new_line('a'))
      if (length == 0) exit
      read (before(kept + 1:kept + length - 1), *, iostat=ios) number
      if (ios /= 0 .or. number > done) exit
      kept = kept + length
    end do
    call table%create(run%output//'/run.csv')
    call table%put(columns//before(len(columns) + 1:kept))
    call table%close()
  end subroutine start_table

  !> A line a step, on disk before the next one: a checkpoint is of no use without the lines before it.
  subroutine add_to_table(run, sim)
    type(run_options), intent(in) :: run
    type(simulation_t), intent(in) :: sim
    type(output_file) :: table
    character(200) :: line

    write (line, '(i0,4(",",g0.6),2(",",i0))') sim%steps, sim%time, sim%sight%optical_depth, sim%sight%visual_range, &
      sim%sight%mass, count(sim%dust%airborne), sim%wake%free_count()
    call table%append(run%output//'/run.csv')
    call table%put(trim(line)//new_line('a'))
    call table%close()
  end subroutine add_to_table

  function state(sim) result(text)
    type(simulation_t), intent(in) :: sim
    character(:), allocatable :: text
    character(80) :: line

    write (line, '(i0,a,i0,a,f0.2)') sim%wake%free_count(), ' segments, ', count(sim%dust%airborne), &
      ' parcels up, optical depth ', sim%sight%optical_depth
    text = trim(line)
  end function state

  subroutine report(run, sim, seconds)
    type(run_options), intent(in) :: run
    type(simulation_t), intent(in) :: sim
    real(wp), intent(in) :: seconds
    real(wp) :: hub(3)

    hub = sim%rotor%hub(sim%time)
    print '(3a,f0.2,a,f0.2,a,f0.2,a,i0,a)', 'end:      ', sim%rotor%flight_path(sim%time), ' at t = ', sim%time, &
      ' s, rotor at ', hub(3), ' m = ', hub(3)/sim%rotor%radius, ' R, ', sim%wake%free_count(), ' free segments'
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
