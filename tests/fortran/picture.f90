!> Pictures of flows: bytes and a file, a point and a line at known pixels, and bad input. Twin: tests/c/picture.c.
program pictures
  use, intrinsic :: iso_c_binding
  use wakefmm
  use checks
  implicit none

  integer, parameter :: dp = c_double, WIDTH = 200, HEIGHT = 100
  type(wfmm_flow) :: flow
  integer(c_int8_t) :: rgba(4, WIDTH, HEIGHT)

  call wfmm_flow_create(flow)
  call points_and_lines_are_where_they_should()
  call a_file_is_written()
  call bad_input()
  call wfmm_flow_destroy(flow)
  call finish('picture')

contains

  !> 25 pixels a unit at the target.
  function ahead() result(camera)
    type(wfmm_camera) :: camera

    call wfmm_camera_init(camera)
    camera%eye = [0._dp, -2._dp, 0._dp]
    camera%fit = 0
    camera%field_of_view = 90
    camera%opacity = 50
  end function

  !> Whether the pixel at column i and row j, from 0, has this color.
  logical function is(i, j, r, g, b)
    integer, intent(in) :: i, j, r, g, b

    is = all(abs(iand(int(rgba(1:3, i + 1, j + 1)), 255) - [r, g, b]) <= 1)
  end function

  subroutine points_and_lines_are_where_they_should()
    type(wfmm_camera) :: camera

    camera = ahead()
    call check(camera%kinds == 31 .and. camera%line_width == 2, 'defaults')
    call wfmm_flow_set_tracers(flow, reshape([0.5_dp, 0._dp, 0.26_dp, 0.5_dp, -4._dp, 0.26_dp], [3, 2]))
    call wfmm_flow_set_filaments(flow, reshape([-1._dp, 0._dp, 0._dp, 1._dp, 0._dp, 0._dp], [3, 2]), &
      reshape([1, 2], [2, 1]), [1._dp], [1._dp])
    call wfmm_flow_picture(flow, WIDTH, HEIGHT, camera, rgba)
    call check(is(112, 43, 110, 230, 170) .and. is(116, 43, 10, 15, 26), 'a tracer')
    camera%kinds = ishft(1, WFMM_KIND_FILAMENTS)
    call wfmm_flow_picture(flow, WIDTH, HEIGHT, camera, rgba)
    call check(is(80, 49, 120, 190, 255) .and. is(120, 50, 120, 190, 255) .and. is(60, 50, 10, 15, 26), 'a line')
    camera%kinds = ishft(1, WFMM_KIND_DUST)
    call wfmm_flow_picture(flow, WIDTH, HEIGHT, camera, rgba)
    call check(is(112, 43, 10, 15, 26) .and. is(80, 49, 10, 15, 26), 'nothing')
  end subroutine

  subroutine a_file_is_written()
    character(len=*), parameter :: PATH = 'wakefmm_picture_test.png'
    character(len=8) :: head
    integer :: unit

    call wfmm_flow_picture(flow, WIDTH, HEIGHT, png_path=PATH//'  ')
    open (newunit=unit, file=PATH, access='stream', form='unformatted', status='old')
    read (unit) head
    close (unit, status='delete')
    call check(head(2:4) == 'PNG', 'a file')
  end subroutine

  subroutine bad_input()
    type(wfmm_camera) :: camera
    integer :: ierr

    camera = ahead()
    call wfmm_flow_picture(flow, WIDTH, HEIGHT, camera, ierr=ierr)
    call expect(ierr, WFMM_ERR_NULL, 'rgba and png_path')
    call wfmm_flow_picture(flow, WIDTH, HEIGHT + 1, camera, rgba, ierr=ierr)
    call expect(ierr, WFMM_ERR_SHAPE, 'rgba')
    call wfmm_flow_picture(flow, 0, HEIGHT, camera, png_path='a.png', ierr=ierr)
    call expect(ierr, WFMM_ERR_VALUE, 'width = 0')
    camera%color = 9
    call wfmm_flow_picture(flow, WIDTH, HEIGHT, camera, rgba, ierr=ierr)
    call expect(ierr, WFMM_ERR_CONSTANT, 'color = 9')
  end subroutine

end program pictures
