!> The plain loop that a wake code has without a library: every segment on every target, exact but quadratic.
!> The loop over targets is shared by OpenMP threads, so that a comparison with the library is on all cores on both sides.
module biot_savart_loop
  use kinds, only: wp, pi
  use segments, only: segment_set
  !$ use omp_lib, only: omp_set_num_threads, omp_get_num_procs
  implicit none (type, external)
  private
  public :: sum_segments, set_loop_threads

contains

  subroutine sum_segments(set, target, velocity)
    type(segment_set), intent(in) :: set
    real(wp), intent(in) :: target(:, :)               !< (3, n), m
    real(wp), intent(out) :: velocity(:, :)            !< (3, n), m/s
    real(wp) :: u(3)
    integer :: i, k

    !$omp parallel do private(u, k) schedule(static)
    do i = 1, size(target, 2)
      u = 0
      do k = 1, set%n
        u = u + set%circulation(k)*segment_velocity(set%points(:, set%connectivity(1, k)), &
                                                    set%points(:, set%connectivity(2, k)), &
                                                    set%core_radius(k), target(:, i))
      end do
      velocity(:, i) = u
    end do
    !$omp end parallel do
  end subroutine sum_segments

  subroutine set_loop_threads(threads)
    integer, intent(in) :: threads                     !< 0: all

    !$ call omp_set_num_threads(merge(threads, omp_get_num_procs(), threads > 0))
  end subroutine set_loop_threads

  !> Velocity at x of a segment of unit circulation from p1 to p2 with Vatistas' core (n = 2).
  pure function segment_velocity(p1, p2, core_radius, x) result(u)
    real(wp), intent(in) :: p1(3), p2(3), core_radius, x(3)
    real(wp) :: u(3), r1(3), r2(3), c(3), s1, s2, dot, c2, d, rho2

    r1 = x - p1
    r2 = x - p2
    c = [r1(2)*r2(3) - r1(3)*r2(2), r1(3)*r2(1) - r1(1)*r2(3), r1(1)*r2(2) - r1(2)*r2(1)]
    c2 = c(1)**2 + c(2)**2 + c(3)**2
    u = 0
    if (c2 <= 0) return                                ! on the line: no velocity
    s1 = sqrt(r1(1)**2 + r1(2)**2 + r1(3)**2)
    s2 = sqrt(r2(1)**2 + r2(2)**2 + r2(3)**2)
    dot = r1(1)*r2(1) + r1(2)*r2(2) + r1(3)*r2(3)
    if (dot > 0) then
      d = s1*s2 + dot
    else
      d = c2/(s1*s2 - dot)                             ! the same; does not cancel between the end points
    end if
    rho2 = c2/((p2(1) - p1(1))**2 + (p2(2) - p1(2))**2 + (p2(3) - p1(3))**2)
    u = c*((s1 + s2)/(4*pi*s1*s2*d)*rho2/sqrt(core_radius**4 + rho2**2))
  end function segment_velocity
end module biot_savart_loop
