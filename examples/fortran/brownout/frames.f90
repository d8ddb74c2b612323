!> VTK snapshots: when one is due, which were written, and the .pvd files that string them together. A run that goes on from a
!> checkpoint keeps interval and numbers of the run before it.
!> In: the run's options, then the state. Out: files.
module frames
  use kinds, only: wp
  use options, only: run_options
  use simulation, only: simulation_t
  use vtk, only: write_wake, write_dust, write_cloud, write_collection, snapshot_name
  implicit none (type, external)
  private
  public :: frames_t

  type :: frames_t
    integer :: interval = 0                            !< steps between two; 0: none were asked for so far
    real(wp), allocatable :: time(:)                   !< s, of the first, the second, … that was written
  contains
    procedure :: plan
    procedure :: due
    procedure :: add
    procedure :: collect
  end type frames_t

contains

  subroutine plan(self, run)
    class(frames_t), intent(inout) :: self
    type(run_options), intent(in) :: run

    if (.not. allocated(self%time)) allocate (self%time(0))
    if (self%interval == 0 .and. run%frames > 0) self%interval = max(1, run%steps/run%frames)
  end subroutine plan

  pure logical function due(self, step)
    class(frames_t), intent(in) :: self
    integer, intent(in) :: step

    due = mod(step, max(1, self%interval)) == 0
  end function due

  subroutine add(self, folder, sim)
    class(frames_t), intent(inout) :: self
    character(*), intent(in) :: folder
    type(simulation_t), intent(in) :: sim

    self%time = [self%time, sim%time]
    associate (number => size(self%time))
      call write_wake(folder//'/'//snapshot_name('wake', number, '.vtp'), sim%wake)
      call write_dust(folder//'/'//snapshot_name('dust', number, '.vtp'), sim%dust)
      call write_cloud(folder//'/'//snapshot_name('cloud', number, '.vti'), sim%cloud)
    end associate
    call self%collect(folder)                          ! a run that is ended from outside leaves what it has written
  end subroutine add

  subroutine collect(self, folder)
    class(frames_t), intent(in) :: self
    character(*), intent(in) :: folder

    call write_collection(folder, 'wake', '.vtp', self%time)
    call write_collection(folder, 'dust', '.vtp', self%time)
    call write_collection(folder, 'cloud', '.vti', self%time)
  end subroutine collect
end module frames
