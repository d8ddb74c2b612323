! Twin of plan.c: particles over the processes of MPI, by an integer communicator and by type(MPI_Comm).
program plan_over_ranks
  use, intrinsic :: iso_fortran_env, only: real64, int64
  use mpi_f08
  use wakefmm
  use wakefmm_mpi
  implicit none
  type(wfmm_session) :: none
  integer :: level, rank, ranks, failed, all_failed, ierr, told = 0

  failed = 0
  rank = -1
  call wfmm_mpi_session_create(MPI_COMM_WORLD%MPI_VAL, none, ierr=ierr)
  call check(ierr == WFMM_ERR_STATE, 'a session before MPI_Init is refused')
  call MPI_Init_thread(MPI_THREAD_FUNNELED, level)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call wfmm_error_handler_set(note)
  call wfmm_mpi_session_create(MPI_COMM_NULL, none)
  call check(told == WFMM_ERR_NULL, 'the error handler hears of a missing communicator')
  call wfmm_error_handler_set()
  call one(.true.)
  call one(.false.)
  call MPI_Allreduce(failed, all_failed, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0) print '(a,i0,a)', 'MPI plan in Fortran: ', all_failed, ' failed'
  call MPI_Finalize()
  if (failed > 0) error stop 1

contains

  subroutine note(status, message)
    integer, intent(in) :: status
    character(len=*), intent(in) :: message

    told = status
    if (index(message, 'MPI_COMM_NULL') == 0) told = WFMM_OK
  end subroutine

  subroutine check(good, what)
    logical, intent(in) :: good
    character(len=*), intent(in) :: what

    if (good) return
    failed = failed + 1
    print '(a,i0,2a)', 'rank ', rank, ': failed: ', what
  end subroutine

  subroutine one(typed)
    logical, intent(in) :: typed
    type(wfmm_session) :: session
    type(wfmm_session_options) :: cpu
    type(wfmm_plan_options) :: options
    type(wfmm_plan) :: plan
    integer, parameter :: n = 1500
    real(real64) :: x(3, n), a(3, n), u(3, n), want(3, n), all_x(3, n), all_a(3, n), d(3), error, sums(2)
    integer :: ierr, k, t, r
    integer, allocatable :: seed(:)

    call random_seed(size=k)
    allocate (seed(k))
    seed = 7 + rank
    call random_seed(put=seed)
    call random_number(x)
    call random_number(a)
    a = 2 * a - 1
    want = 0
    do r = 0, ranks - 1
      all_x = x
      all_a = a
      call MPI_Bcast(all_x, 3 * n, MPI_DOUBLE_PRECISION, r, MPI_COMM_WORLD)
      call MPI_Bcast(all_a, 3 * n, MPI_DOUBLE_PRECISION, r, MPI_COMM_WORLD)
      do t = 1, n
        do k = 1, n
          d = x(:, t) - all_x(:, k)
          if (all(abs(d) <= 0)) cycle
          want(:, t) = want(:, t) + [all_a(2, k) * d(3) - all_a(3, k) * d(2), all_a(3, k) * d(1) - all_a(1, k) * d(3), &
              all_a(1, k) * d(2) - all_a(2, k) * d(1)] / norm2(d)**3
        end do
      end do
    end do

    cpu%threads = 1
    if (typed) then
      call wfmm_mpi_session_create(MPI_COMM_WORLD, session, cpu)
    else
      call wfmm_mpi_session_create(MPI_COMM_WORLD%MPI_VAL, session, cpu)
    end if
    options%method = WFMM_METHOD_FMM
    options%tolerance = 1e-5_real64
    options%normalization = 1
    options%particle_regularization = WFMM_REG_NONE
    call wfmm_plan_create(plan, session=session, options=options)
    call wfmm_plan_set_particles(plan, x, a)
    call wfmm_plan_set_targets(plan, x)
    call wfmm_plan_evaluate(plan, u)
    sums = [sum((u - want)**2), sum(want**2)]
    call MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    call check(sqrt(sums(1) / sums(2)) <= 1e-5_real64, 'the field')
    call wfmm_plan_check(plan, 200, 1, error)
    call check(error <= 1e-5_real64, 'the check')
    ! One rank's mistake is everybody's status.
    if (rank == ranks - 1) x(2, 3) = ieee_nan()
    call wfmm_plan_set_targets(plan, x, ierr=ierr)
    call check(ierr == WFMM_ERR_NOT_FINITE, 'an error on one rank')
    call check(index(wfmm_last_error(), 'position[2][1]') > 0, 'its message')
    call wfmm_plan_destroy(plan)
    call wfmm_session_destroy(session)
  end subroutine

  function ieee_nan() result(x)
    real(real64) :: x

    x = transfer(9221120237041090560_int64, x)
  end function
end program
