!> The induced-velocity routines of a free-wake code in the shape that OpenFAST's OLAF has them, on libwakefmm: same arguments,
!> same 1-based connectivity, arrays longer than their live count, the result added to what is there.
!> -DREAL_KIND=4 or 8 is the host's ReKi.
#ifndef REAL_KIND
#define REAL_KIND 8
#endif
module drop_in
  use wakefmm
  implicit none
  private
  public :: ReKi, ui_seg, ui_part_nograd, wake_begin, wake_velocity, wake_end
  integer, parameter :: ReKi = REAL_KIND
  !> The host's numbers of regularizations, 0 to 4 for segments and 0 to 2 for particles, in the library's.
  integer, parameter :: SEGMENTS(0:4) = &
    [WFMM_REG_NONE, WFMM_REG_RANKINE, WFMM_REG_LAMB_OSEEN, WFMM_REG_VATISTAS, WFMM_REG_OFFSET]
  integer, parameter :: PARTICLES(0:2) = [WFMM_REG_NONE, WFMM_REG_EXPONENTIAL, WFMM_REG_COMPACT]
  double precision, parameter :: TOLERANCE = 1d-4

contains

  !> Velocity of segments iSegStart..iSegEnd at control points iCPStart..iCPEnd, added to Uind_out.
  subroutine ui_seg(iCPStart, iCPEnd, CPs, iSegStart, iSegEnd, SegPoints, SegConnct, SegGamma, RegFunction, RegParam, &
    Uind_out)
    integer, intent(in) :: iCPStart, iCPEnd, iSegStart, iSegEnd, SegConnct(:,:), RegFunction
    real(ReKi), intent(in) :: CPs(:,:), SegPoints(:,:), SegGamma(:), RegParam(:)
    real(ReKi), intent(inout) :: Uind_out(:,:)
    type(wfmm_plan_options) :: options
    options%tolerance = TOLERANCE
    options%segment_regularization = SEGMENTS(RegFunction)
    options%flags = WFMM_FLAG_ACCUMULATE
    ! Points behind the last one in use may hold anything.
    call wfmm_induce_segments(SegPoints, SegConnct(:, iSegStart:iSegEnd), SegGamma(iSegStart:iSegEnd), &
      CPs(:, iCPStart:iCPEnd), Uind_out(:, iCPStart:iCPEnd), core_radius=RegParam(iSegStart:iSegEnd), &
      options=options, n_points=max(0, maxval(SegConnct(1:2, iSegStart:iSegEnd))))
  end subroutine

  !> Velocity of the first nPart particles at the first nCPs control points, added to UIout.
  subroutine ui_part_nograd(nCPs, CPs, nPart, Part, Alpha, RegFunction, RegParam, UIout)
    integer, intent(in) :: nCPs, nPart, RegFunction
    real(ReKi), intent(in) :: CPs(:,:), Part(:,:), Alpha(:,:), RegParam(:)
    real(ReKi), intent(inout) :: UIout(:,:)
    type(wfmm_plan_options) :: options
    options%tolerance = TOLERANCE
    options%particle_regularization = PARTICLES(RegFunction)
    options%flags = WFMM_FLAG_ACCUMULATE
    call wfmm_induce_particles(Part, Alpha, CPs, UIout, core_radius=RegParam, options=options, n=nPart, n_targets=nCPs)
  end subroutine

  !> The seam for one wake at several sets of points: begin once, velocity many times, end once. The tree of the sources
  !> and their expansions are made in the first call and kept.
  subroutine wake_begin(wake, SegPoints, SegConnct, SegGamma, RegFunction, RegParam, nPoints, nSeg)
    type(wfmm_plan), intent(inout) :: wake
    integer, intent(in) :: SegConnct(:,:), RegFunction, nPoints, nSeg
    real(ReKi), intent(in) :: SegPoints(:,:), SegGamma(:), RegParam(:)
    type(wfmm_plan_options) :: options
    options%tolerance = TOLERANCE
    options%segment_regularization = SEGMENTS(RegFunction)
    options%flags = WFMM_FLAG_ACCUMULATE
    call wfmm_plan_create(wake, options=options)
    call wfmm_plan_set_segments(wake, SegPoints, SegConnct, SegGamma, core_radius=RegParam, n_points=nPoints, n=nSeg)
  end subroutine

  subroutine wake_velocity(wake, CPs, nCPs, Uind_out)
    type(wfmm_plan), intent(inout) :: wake
    integer, intent(in) :: nCPs
    real(ReKi), intent(in) :: CPs(:,:)
    real(ReKi), intent(inout) :: Uind_out(:,:)
    call wfmm_plan_set_targets(wake, CPs, n=nCPs)
    call wfmm_plan_evaluate(wake, Uind_out)
  end subroutine

  subroutine wake_end(wake)
    type(wfmm_plan), intent(inout) :: wake
    call wfmm_plan_destroy(wake)
  end subroutine
end module
