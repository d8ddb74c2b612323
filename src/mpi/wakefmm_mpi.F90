!> Sessions of libwakefmm over the processes of an MPI communicator, for Fortran; link libwakefmm_mpi beside libwakefmm.
!> Compile with -DWAKEFMM_NO_MPI_F08 where MPI has no module mpi_f08: integer communicators are then the only ones.
!>
!>   use wakefmm
!>   use wakefmm_mpi
!>   call MPI_Init_thread(MPI_THREAD_FUNNELED, level)
!>   call wfmm_mpi_session_create(MPI_COMM_WORLD, session)      ! all processes together
!>   call wfmm_plan_create(plan, session=session)               ! from here on as with one process: each has its own
!>   call wfmm_plan_set_particles(plan, x, alpha)               ! sources and targets, all calls are collective
module wakefmm_mpi
  use, intrinsic :: iso_c_binding
#ifndef WAKEFMM_NO_MPI_F08
  use mpi_f08, only: MPI_Comm
#endif
  use wakefmm
  implicit none
  private

  public :: wfmm_mpi_session_create

  !> Makes a session that spans the processes of a communicator, which is duplicated; all of them make it together.
  interface wfmm_mpi_session_create
    module procedure session_of_integer
#ifndef WAKEFMM_NO_MPI_F08
    module procedure session_of_type
#endif
  end interface

  interface
    function c_communicator(communicator, table) bind(c, name="wfmm_mpi_communicator_f") result(status)
      import
      integer(c_int), value :: communicator
      type(wfmm_communicator), intent(inout) :: table
      integer(c_int32_t) :: status
    end function
  end interface

contains

  subroutine session_of_integer(communicator, session, options, ierr)
    integer, intent(in) :: communicator
    type(wfmm_session), intent(inout) :: session
    type(wfmm_session_options), intent(in), optional :: options
    integer, intent(out), optional :: ierr
    type(wfmm_communicator) :: table
    integer(c_int32_t) :: status

    status = c_communicator(int(communicator, c_int), table)
    if (status == WFMM_OK) then
      call wfmm_session_create_distributed(table, session, options, ierr)
    else
      call wfmm_finish(status, ierr)
    end if
  end subroutine

#ifndef WAKEFMM_NO_MPI_F08
  subroutine session_of_type(communicator, session, options, ierr)
    type(MPI_Comm), intent(in) :: communicator
    type(wfmm_session), intent(inout) :: session
    type(wfmm_session_options), intent(in), optional :: options
    integer, intent(out), optional :: ierr

    call session_of_integer(int(communicator%MPI_VAL), session, options, ierr)
  end subroutine
#endif
end module wakefmm_mpi
