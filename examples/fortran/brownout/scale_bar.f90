!> A bar of five meters with its length written over it, as segments that a picture draws like blades.
module scale_bar
  use kinds, only: wp
  use segments, only: segment_set
  implicit none (type, external)
  private
  public :: add_scale_bar

  real(wp), parameter :: length = 5.0_wp               ! m, as the letters say
  real(wp), parameter :: letter = 0.8_wp               ! m, their height

contains

  !> Around `middle`, from left to right along `right`; letters stand up along `up`.
  subroutine add_scale_bar(set, middle, right, up)
    type(segment_set), intent(inout) :: set
    real(wp), intent(in) :: middle(3), right(3), up(3)

    call stroke([0.0_wp, length], [0.0_wp, 0.0_wp])
    call stroke([0.0_wp, 0.0_wp], [-0.3_wp, 0.3_wp]*letter)
    call stroke([length, length], [-0.3_wp, 0.3_wp]*letter)
    ! 5
    call stroke([2.2_wp, 1.7_wp, 1.7_wp, 2.2_wp, 2.2_wp, 1.7_wp], 0.5_wp + [1.0_wp, 1.0_wp, 0.5_wp, 0.5_wp, 0.0_wp, 0.0_wp])
    ! m
    call stroke([2.8_wp, 2.8_wp, 3.1_wp, 3.1_wp], 0.5_wp + [0.0_wp, 0.6_wp, 0.6_wp, 0.0_wp])
    call stroke([3.1_wp, 3.4_wp, 3.4_wp], 0.5_wp + [0.6_wp, 0.6_wp, 0.0_wp])

  contains

    !> A line through points, in meters along the bar and in letters above it.
    subroutine stroke(along, above)
      real(wp), intent(in) :: along(:), above(:)
      real(wp) :: node(3, size(along))
      integer :: k

      do k = 1, size(along)
        node(:, k) = middle + (along(k) - 0.5_wp*length)*right + letter*above(k)*up
      end do
      call set%append_filament(node, 0.0_wp, spread(0.1_wp, 1, size(along) - 1))
    end subroutine stroke
  end subroutine add_scale_bar
end module scale_bar
