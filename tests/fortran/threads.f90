!> Eight threads with a plan each get right answers and messages of their own. Twin: tests/c/threads.c.
program threads
  use, intrinsic :: iso_c_binding
  use wakefmm
  use checks
  implicit none

  integer, parameter :: dp = c_double, N = 400
  logical :: good(8)
  integer :: k

  good = .false.
  !$omp parallel do num_threads(8) schedule(static, 1)
  do k = 1, 8
    good(k) = works(k)
  end do
  !$omp end parallel do
  do k = 1, 8
    call check(good(k), 'a thread')
  end do
  call finish('threads')

contains

  !> A plan of its own, five evaluations, each compared with a sum of its own.
  function works(k) result(good)
    integer, intent(in) :: k
    logical :: good
    type(wfmm_plan) :: plan
    real(dp) :: x(3, N), a(3, N), u(3, N), w(3, N)
    character(len=20) :: want
    character(len=:), allocatable :: message
    integer :: round, i, ierr

    call wfmm_plan_create(plan)
    good = .true.
    do round = 1, 5
      do i = 1, N
        x(:, i) = [modulo(i*0.6180339887_dp*k, 1._dp), modulo(i*0.7548776662_dp + round, 1._dp), modulo(i*0.5698402910_dp, 1._dp)]
        a(:, i) = [sin(1._dp*i*k), cos(2._dp*i), sin(3._dp*i + round)]
      end do
      call wfmm_plan_set_particles(plan, x, a)
      call wfmm_plan_set_targets(plan, x)
      call wfmm_plan_evaluate(plan, u)
      w = plain(x, a)
      good = good .and. norm2(u - w) <= 1e-4_dp*norm2(w)
    end do
    write (want, '(a, i0, a)') 'n = -', k, ';'
    call wfmm_plan_set_targets(plan, x, n=-k, ierr=ierr)
    message = wfmm_last_error()
    good = good .and. ierr == WFMM_ERR_COUNT .and. index(message, trim(want)) > 0
    call wfmm_plan_destroy(plan)
  end function

  function plain(x, a) result(u)
    real(dp), intent(in) :: x(:, :), a(:, :)
    real(dp) :: u(3, size(x, 2)), d(3), r
    integer :: i, j

    u = 0
    do i = 1, size(x, 2)
      do j = 1, size(x, 2)
        d = x(:, i) - x(:, j)
        r = norm2(d)
        if (r <= 0) cycle
        u(:, i) = u(:, i) + [a(2, j)*d(3) - a(3, j)*d(2), a(3, j)*d(1) - a(1, j)*d(3), a(1, j)*d(2) - a(2, j)*d(1)]/r**3
      end do
    end do
    u = u*(0.25_dp/3.14159265358979323846_dp)
  end function

end program threads
