!> What follows where a call of the library fails: its message, and the end of the program, without a list of addresses.
module library_errors
  use files, only: fail
  use wakefmm, only: wfmm_error_handler_set, wfmm_status_name
  implicit none (type, external)
  private
  public :: catch_library_errors

contains

  subroutine catch_library_errors()
    call wfmm_error_handler_set(end_program)
  end subroutine catch_library_errors

  subroutine end_program(status, message)
    integer, intent(in) :: status
    character(*), intent(in) :: message

    call fail(message//' ['//wfmm_status_name(status)//']')
  end subroutine end_program
end module library_errors
