!> The air's velocity that the vortices induce, by one of three methods that give the same answer:
!> libwakefmm's fast multipole method, its direct sum, or the program's own loop.
!> One plan serves the whole run. Of --method flow the calls are in flow_state, flow_wake and flow_step.
module induced_velocity
  use kinds, only: wp
  use segments, only: segment_set
  use biot_savart_loop, only: sum_segments, set_loop_threads
  use progress, only: wall_clock
  use wakefmm, only: wfmm_session, wfmm_session_options, wfmm_session_create, wfmm_session_destroy, &
    wfmm_plan, wfmm_plan_options, wfmm_plan_create, wfmm_plan_destroy, &
    wfmm_plan_set_segments, wfmm_plan_set_targets, wfmm_plan_evaluate, &
    WFMM_METHOD_FMM, WFMM_METHOD_DIRECT, WFMM_PRECISION_F32, WFMM_PRECISION_F64, WFMM_FLAG_REPRODUCIBLE
  implicit none (type, external)
  private
  public :: induction_t

  type :: induction_t
    character(:), allocatable :: method                !< fmm, direct or loop
    real(wp) :: seconds = 0                            !< spent in `evaluate` so far
    type(wfmm_session), private :: session
    type(wfmm_plan), private :: plan
  contains
    procedure :: create
    procedure :: evaluate
    procedure :: finish
  end type induction_t

contains

  !> Tolerance and method are chosen once; every step reuses the plan with new arrays.
  !> Without an `ierr` argument the library stops the program with its message when something is wrong.
  subroutine create(self, method, precision, tolerance, threads, reproducible)
    class(induction_t), intent(inout) :: self
    character(*), intent(in) :: method, precision
    real(wp), intent(in) :: tolerance
    integer, intent(in) :: threads                     !< 0: all
    logical, intent(in) :: reproducible
    type(wfmm_session_options) :: where_to
    type(wfmm_plan_options) :: how

    self%method = method
    self%seconds = 0
    if (method == 'loop') then
      call set_loop_threads(threads)
      return
    end if
    where_to%threads = threads
    call wfmm_session_create(self%session, where_to)
    how%tolerance = tolerance
    how%method = merge(WFMM_METHOD_FMM, WFMM_METHOD_DIRECT, method == 'fmm')
    how%precision = merge(WFMM_PRECISION_F32, WFMM_PRECISION_F64, precision == 'single')
    if (reproducible) how%flags = WFMM_FLAG_REPRODUCIBLE
    call wfmm_plan_create(self%plan, self%session, how)
  end subroutine create

  !> `velocity(:, i)` of the air at `target(:, i)` from all segments of the set.
  subroutine evaluate(self, set, target, velocity)
    class(induction_t), intent(inout) :: self
    type(segment_set), intent(in) :: set
    real(wp), intent(in), contiguous :: target(:, :)   !< (3, n), m
    real(wp), intent(out), contiguous :: velocity(:, :)  !< (3, n), m/s
    real(wp) :: started

    started = wall_clock()
    if (self%method == 'loop') then
      call sum_segments(set, target, velocity)
    else
      call wfmm_plan_set_segments(self%plan, set%points, set%connectivity, set%circulation, set%core_radius, &
                                  n_points=set%n_points, n=set%n)
      call wfmm_plan_set_targets(self%plan, target)
      call wfmm_plan_evaluate(self%plan, velocity)
    end if
    self%seconds = self%seconds + wall_clock() - started
  end subroutine evaluate

  subroutine finish(self)
    class(induction_t), intent(inout) :: self

    if (self%method == 'loop') return
    call wfmm_plan_destroy(self%plan)
    call wfmm_session_destroy(self%session)
  end subroutine finish
end module induced_velocity
