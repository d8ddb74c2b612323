!> Brownout over many processes: the tip vortices of a rotor sink on dusty ground and pick the dust up. Each process has a part
!> of the wake and a part of the dust, and keeps them; what the others have acts on them through the library.
!>
!>   mpirun -n 4 brownout_mpi [segments of a blade] [parcels of dust] [steps]
!>
!> At the end process 0 computes the whole case alone and compares where every parcel is. Exit 0 where both agree within what
!> the tolerance allows.
program brownout_mpi
  use, intrinsic :: iso_fortran_env, only: real64, int64
  use mpi_f08
  use wakefmm
  use wakefmm_mpi
  implicit none

  integer, parameter :: blades = 4, segments_a_turn = 36
  real(real64), parameter :: radius = 5.5_real64, height = 6.0_real64, circulation = 25.0_real64, dt = 0.01_real64
  real(real64), parameter :: pi = acos(-1.0_real64), tolerance = 1e-4_real64

  type :: results
    real(real64), allocatable :: position(:, :)
    integer(int64), allocatable :: identity(:)
    type(wfmm_diagnostics) :: diagnostics
  end type

  integer :: level, rank, ranks, segments, parcels, steps
  type(results) :: together, alone
  logical :: good

  call MPI_Init_thread(MPI_THREAD_FUNNELED, level)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  segments = argument(1, 400)
  parcels = argument(2, 4000)
  steps = argument(3, 5)

  call run(MPI_COMM_WORLD, rank, ranks, together)
  call gather(together)
  good = .true.
  if (rank == 0) then
    call run(MPI_COMM_SELF, 0, 1, alone)
    good = same()
  end if
  call MPI_Finalize()
  if (.not. good) error stop 1

contains

  integer function argument(k, default)
    integer, intent(in) :: k, default
    character(len=32) :: text

    argument = default
    if (command_argument_count() < k) return
    call get_command_argument(k, text)
    read (text, *) argument
  end function

  !> The case over a communicator: part `mine` of `parts` is here.
  subroutine run(communicator, mine, parts, found)
    type(MPI_Comm), intent(in) :: communicator
    integer, intent(in) :: mine, parts
    type(results), intent(inout) :: found
    type(wfmm_session_options) :: cpu
    type(wfmm_session) :: session
    type(wfmm_plan_options) :: sums
    type(wfmm_flow_options) :: motion
    type(wfmm_flow) :: flow
    integer(int64) :: n

    cpu%threads = 1
    call wfmm_mpi_session_create(communicator, session, cpu)
    sums%method = WFMM_METHOD_FMM
    sums%tolerance = tolerance
    sums%plane_axis = 3                       ! the ground, at z = 0
    motion%integrator = WFMM_INTEGRATOR_AB2
    motion%gravity = [0.0_real64, 0.0_real64, -9.81_real64]
    motion%fluid_density = 1.225_real64
    motion%fluid_viscosity = 1.8e-5_real64
    call wfmm_flow_create(flow, session=session, plan_options=sums, options=motion)
    call put_wake(flow, mine, parts)
    call put_dust(flow, mine, parts)
    call wfmm_flow_advance(flow, dt, steps)

    call wfmm_flow_counts(flow, WFMM_KIND_DUST, elements=n)
    allocate (found%position(3, n), found%identity(n))
    call wfmm_flow_get(flow, WFMM_KIND_DUST, WFMM_QUANTITY_POSITION, found%position, found%identity)
    call wfmm_diagnostics_init(found%diagnostics)
    call wfmm_flow_diagnostics(flow, found%diagnostics)     ! of all processes together
    call wfmm_flow_destroy(flow)
    call wfmm_session_destroy(session)
  end subroutine

  !> A filament a blade, cut into pieces: process k of n has the k-th. Pieces that meet both have the point between them.
  subroutine put_wake(flow, mine, parts)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in) :: mine, parts
    real(real64), allocatable :: points(:, :), gamma(:), core(:)
    integer, allocatable :: ends(:, :)
    real(real64) :: age, angle
    integer :: first, last, pieces, b, k, p, s

    first = int(int(mine, int64) * segments / parts)
    last = int((mine + 1_int64) * segments / parts)
    pieces = last - first
    allocate (points(3, blades * (pieces + 1)), ends(2, blades * pieces), gamma(blades * pieces), core(blades * pieces))
    p = 0
    s = 0
    do b = 1, blades
      do k = first, last
        p = p + 1
        age = 2 * pi * k / segments_a_turn
        angle = age + 2 * pi * b / blades
        points(:, p) = [radius * cos(angle), radius * sin(angle), max(0.5_real64, height * (1 - 0.9_real64 * k / segments))]
        if (k == last) cycle
        s = s + 1
        ends(:, s) = [p, p + 1]
        gamma(s) = circulation
        core(s) = 0.05_real64 * sqrt(1 + age)
      end do
    end do
    call wfmm_flow_set_filaments(flow, points, ends, gamma, core)
  end subroutine

  !> A disk of dust below the rotor, in rows of the sunflower's spiral; process k of n has a run of it.
  subroutine put_dust(flow, mine, parts)
    type(wfmm_flow), intent(in) :: flow
    integer, intent(in) :: mine, parts
    real(real64), allocatable :: position(:, :), diameter(:), density(:)
    real(real64) :: r, angle
    integer :: first, last, k

    first = int(int(mine, int64) * parcels / parts) + 1
    last = int((mine + 1_int64) * parcels / parts)
    allocate (position(3, last - first + 1), diameter(last - first + 1), density(last - first + 1))
    do k = first, last
      r = 2 * radius * sqrt((k - 0.5_real64) / parcels)
      angle = k * pi * (3 - sqrt(5.0_real64))
      position(:, k - first + 1) = [r * cos(angle), r * sin(angle), 0.05_real64 + 0.3_real64 * modulo(k, 7) / 7]
    end do
    diameter = 3e-5_real64
    density = 2650
    call wfmm_flow_set_dust(flow, position, diameter, density)
  end subroutine

  !> All parcels on process 0.
  subroutine gather(found)
    type(results), intent(inout) :: found
    real(real64), allocatable :: position(:, :)
    integer(int64), allocatable :: identity(:)
    integer :: counts(ranks), offsets(ranks), n, r

    n = size(found%identity)
    call MPI_Gather(n, 1, MPI_INTEGER, counts, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
    if (rank /= 0) counts = 0
    offsets = [(sum(counts(:r - 1)), r = 1, ranks)]
    allocate (position(3, sum(counts)), identity(sum(counts)))
    call MPI_Gatherv(found%identity, n, MPI_INTEGER8, identity, counts, offsets, MPI_INTEGER8, 0, MPI_COMM_WORLD)
    call MPI_Gatherv(found%position, 3 * n, MPI_DOUBLE_PRECISION, position, 3 * counts, 3 * offsets, MPI_DOUBLE_PRECISION, 0, &
        MPI_COMM_WORLD)
    call move_alloc(position, found%position)
    call move_alloc(identity, found%identity)
  end subroutine

  !> Whether the case of all processes and that of one agree, parcel by parcel.
  logical function same()
    real(real64), allocatable :: of(:, :)
    real(real64) :: farthest, allowed, impulse
    integer :: k

    allocate (of(3, size(alone%identity)))
    of = huge(of)
    do k = 1, size(together%identity)
      of(:, int(together%identity(k)) + 1) = together%position(:, k)     ! identities count from 0, rank by rank
    end do
    farthest = maxval(abs(of - alone%position))
    ! Velocities are within the tolerance of their root mean square; single ones may miss by some more.
    allowed = 3 * tolerance * alone%diagnostics%largest_velocity * dt * steps
    impulse = norm2(together%diagnostics%linear_impulse - alone%diagnostics%linear_impulse) &
        / norm2(alone%diagnostics%linear_impulse)
    print '(i0,a,i0,a,f0.3,a,es9.2)', blades * segments, ' segments and ', size(alone%identity), ' parcels, highest at ', &
        maxval(alone%position(3, :)), ' m, fastest at ', alone%diagnostics%largest_velocity
    print '(a,i0,a,es9.2,a,es9.2,a,es9.2)', 'over ', ranks, ' processes and on one: parcels differ by up to ', farthest, &
        ' m (allowed ', allowed, '), the impulse by ', impulse
    same = size(together%identity) == size(alone%identity) .and. farthest <= allowed .and. impulse <= 1e-3_real64
  end function
end program
