!> The wake in a flow of libwakefmm: blades and chains go in before a step, and come out after it.
!> In: the wake. Out: the wake a step later, its chains split where the flow has split them.
module flow_wake
  use, intrinsic :: iso_c_binding, only: c_int32_t, c_int64_t
  use kinds, only: wp
  use rotor, only: rotor_t
  use segments, only: segment_set
  use wake, only: wake_t, tip
  use wakefmm, only: wfmm_flow, wfmm_flow_set_filaments, wfmm_flow_set_bound_segments, wfmm_flow_set_tracers, &
    wfmm_flow_get, wfmm_flow_get_connectivity, wfmm_flow_counts, WFMM_KIND_FILAMENTS, WFMM_KIND_TRACERS, &
    WFMM_QUANTITY_POSITION, WFMM_QUANTITY_CORE_RADIUS
  implicit none (type, external)
  private
  public :: set_vortices, take_wake

  integer, parameter :: most_pieces = 4                !< of what was shed in a step

contains

  !> Blades are bound. Filaments are set anew in every step, because their newest segments are the program's. Tips are tracers
  !> too, since a blade that has shed nothing yet has no filament.
  subroutine set_vortices(flow, wake, set)
    type(wfmm_flow), intent(in) :: flow
    type(wake_t), intent(in) :: wake
    type(segment_set), intent(inout) :: set

    call set%clear()
    call wake%put_blades(set)
    call wfmm_flow_set_bound_segments(flow, set%points, set%connectivity, set%circulation, set%core_radius, &
                                      n_points=set%n_points, n=set%n)
    call wfmm_flow_set_tracers(flow, set%points(:, 2:2*wake%blades:2))
    call set%clear()
    call wake%put_free(set)
    call wfmm_flow_set_filaments(flow, set%points, set%connectivity, set%circulation, set%core_radius, &
                                 n_points=set%n_points, n=set%n)
  end subroutine set_vortices

  !> Follows each chain from the point that was a blade's tip: the flow may have put points between.
  subroutine take_wake(flow, wake, rotor, time)
    type(wfmm_flow), intent(in) :: flow
    type(wake_t), intent(inout) :: wake
    type(rotor_t), intent(in) :: rotor
    real(wp), intent(in) :: time
    integer(c_int64_t) :: n, points
    real(wp), allocatable :: x(:, :), core(:), tips(:, :), age(:)
    integer(c_int32_t), allocatable :: ends(:, :)
    integer, allocatable :: next(:), segment(:), chain(:), kept(:)
    integer :: b, k, m, first

    call wfmm_flow_counts(flow, WFMM_KIND_FILAMENTS, n, points)
    allocate (x(3, points), core(n), ends(2, n), tips(3, wake%blades), chain(points), age(points))
    call wfmm_flow_get(flow, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_POSITION, x)
    call wfmm_flow_get(flow, WFMM_KIND_FILAMENTS, WFMM_QUANTITY_CORE_RADIUS, core)
    call wfmm_flow_get_connectivity(flow, WFMM_KIND_FILAMENTS, ends)
    call wfmm_flow_get(flow, WFMM_KIND_TRACERS, WFMM_QUANTITY_POSITION, tips)
    allocate (next(points), segment(points), source=0)
    next(ends(1, :)) = ends(2, :)
    segment(ends(1, :)) = [(k, k=1, int(n))]
    first = 1
    do b = 1, wake%blades
      if (wake%nodes(b) == tip) then
        call wake%renew(b, tips(:, b:b), [0.0_wp], [real(wp) ::])
        cycle
      end if
      m = 1
      chain(1) = first
      do while (next(chain(m)) > 0)
        chain(m + 1) = next(chain(m))
        m = m + 1
      end do
      age(:m) = ages(chain(:m) - first, wake%node_age(tip:wake%nodes(b), b))
      kept = pack([(k, k=1, m)], few_pieces(age(:m)/wake%dt, chain(:m) - first < wake%nodes(b) - tip + 1))
      chain(:size(kept)) = chain(kept)
      m = size(kept)
      first = first + wake%nodes(b) - tip + 1
      call wake%renew(b, x(:, chain(:m)), age(kept), core(segment(chain(:m - 1))))
    end do
    call wake%attach(rotor, time)
  end subroutine take_wake

  !> Ages of a chain: known of nodes that were there, whose indices `at` count from 0; even steps between them.
  pure function ages(at, known) result(age)
    integer, intent(in) :: at(:)
    real(wp), intent(in) :: known(0:)
    real(wp) :: age(size(at))
    integer :: k, j, last

    last = 1
    do k = 1, size(at)
      if (at(k) < 0 .or. at(k) > ubound(known, 1)) cycle
      age(k) = known(at(k))
      do j = last + 1, k - 1
        age(j) = age(last) + (age(k) - age(last))*(j - last)/(k - last)
      end do
      last = k
    end do
  end function ages

  !> Which nodes of a chain stay: all that were there, and those that the flow has put between where what was shed in a step has
  !> at most `most_pieces`. Tangled filaments grow exponentially; more segments would not resolve them.
  pure function few_pieces(steps, was_there) result(stays)
    real(wp), intent(in) :: steps(:)                   !< age in steps
    logical, intent(in) :: was_there(:)
    logical :: stays(size(steps))
    integer :: shed(size(steps)), k
    integer, allocatable :: pieces(:)

    shed = floor(steps + 1.0e-6_wp)
    allocate (pieces(0:maxval(shed)), source=0)
    do k = 1, size(shed)
      pieces(shed(k)) = pieces(shed(k)) + 1
    end do
    stays = was_there .or. pieces(shed) <= most_pieces
  end function few_pieces
end module flow_wake
