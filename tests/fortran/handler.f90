!> An error handler is called where a call without ierr fails, in place of the stop; with ierr it is not.
module handlers
  use wakefmm
  implicit none
  integer :: calls = 0, last_status = 0
  character(len=200) :: last_message = ''

contains

  subroutine remember(status, message)
    integer, intent(in) :: status
    character(len=*), intent(in) :: message

    calls = calls + 1
    last_status = status
    last_message = message
  end subroutine

  !> As a code with MPI would end all its processes.
  subroutine leave(status, message)
    integer, intent(in) :: status
    character(len=*), intent(in) :: message

    if (status == WFMM_ERR_VALUE .and. index(message, 'index_base = 7') > 0) stop 'the handler ends the program'
  end subroutine

end module handlers

program handler
  use wakefmm
  use checks
  use handlers
  implicit none
  type(wfmm_plan) :: plan
  integer :: ierr

  call wfmm_error_handler_set(remember)
  call wfmm_plan_create(plan, options=wfmm_plan_options(index_base=7))
  call check(calls == 1 .and. last_status == WFMM_ERR_VALUE, 'the handler has the status')
  call check(index(last_message, 'index_base = 7') > 0, 'the handler has the message: '//trim(last_message))
  call wfmm_plan_create(plan, options=wfmm_plan_options(index_base=8), ierr=ierr)
  call expect(ierr, WFMM_ERR_VALUE, 'index_base = 8')
  call wfmm_plan_create(plan)
  call check(calls == 1, 'neither a call with ierr nor one that succeeds comes to the handler')
  call wfmm_plan_destroy(plan)
  call finish('handler')
  call wfmm_error_handler_set(leave)
  call wfmm_plan_create(plan, options=wfmm_plan_options(index_base=7))
  call wfmm_error_handler_set()
  error stop 'the second handler did not end the program'
end program handler
