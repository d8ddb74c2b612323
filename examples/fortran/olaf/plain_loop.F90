!> The rival: the same sums as a plain double loop over points and elements, threaded over the points.
#ifndef REAL_KIND
#define REAL_KIND 8
#endif
module plain_loop
  implicit none
  private
  public :: loop_seg, loop_part
  integer, parameter :: rk = REAL_KIND
  real(rk), parameter :: FACTOR = 1 / (16 * atan(1.0_rk))

contains

  subroutine loop_seg(cp_first, cp_last, x, first, last, points, ends, gamma, regularization, core, u)
    integer, intent(in) :: cp_first, cp_last, first, last, ends(:,:), regularization
    real(rk), intent(in) :: x(:,:), points(:,:), gamma(:), core(:)
    real(rk), intent(inout) :: u(:,:)
    real(rk) :: at(3), p1(3), p2(3), r1(3), r2(3), c(3), sum(3), a, b, d, l2, rho2, f
    integer :: k, i
    !$omp parallel do private(at, p1, p2, r1, r2, c, sum, a, b, d, l2, rho2, f, i) schedule(static)
    do k = cp_first, cp_last
      at = x(:, k)
      sum = 0
      do i = first, last
        p1 = points(:, ends(1, i))
        p2 = points(:, ends(2, i))
        r1 = at - p1
        r2 = at - p2
        c = [r1(2) * r2(3) - r1(3) * r2(2), r1(3) * r2(1) - r1(1) * r2(3), r1(1) * r2(2) - r1(2) * r2(1)]
        a = sqrt(dot_product(r1, r1))
        b = sqrt(dot_product(r2, r2))
        l2 = dot_product(p2 - p1, p2 - p1)
        d = a * b * (a * b + dot_product(r1, r2))
        if (.not. (l2 > 0 .and. d > 0)) cycle
        rho2 = dot_product(c, c) / l2
        f = 1
        select case (regularization)
        case (1)
          f = min(1.0_rk, rho2 / core(i)**2)
        case (2)
          f = 1 - exp(-1.25643_rk * rho2 / core(i)**2)
        case (3)
          f = rho2 / sqrt(core(i)**4 + rho2**2)
        case (4)
          d = d + core(i)**2 * l2
        end select
        sum = sum + gamma(i) * f * (a + b) / d * c
      end do
      u(:, k) = u(:, k) + FACTOR * sum
    end do
  end subroutine

  subroutine loop_part(n_cp, x, n, position, strength, regularization, core, u)
    integer, intent(in) :: n_cp, n, regularization
    real(rk), intent(in) :: x(:,:), position(:,:), strength(:,:), core(:)
    real(rk), intent(inout) :: u(:,:)
    real(rk) :: d(3), a(3), sum(3), r2, r3, s
    integer :: k, i
    !$omp parallel do private(d, a, sum, r2, r3, s, i) schedule(static)
    do k = 1, n_cp
      sum = 0
      do i = 1, n
        d = x(:, k) - position(:, i)
        a = strength(:, i)
        r2 = dot_product(d, d)
        if (.not. r2 > 0) cycle
        r3 = r2 * sqrt(r2)
        s = 1 / r3
        if (regularization == 1) s = (1 - exp(-r3 / core(i)**3)) / r3
        if (regularization == 2) s = 1 / sqrt(r2**3 + core(i)**6)
        sum = sum + s * [a(2) * d(3) - a(3) * d(2), a(3) * d(1) - a(1) * d(3), a(1) * d(2) - a(2) * d(1)]
      end do
      u(:, k) = u(:, k) + FACTOR * sum
    end do
  end subroutine
end module
