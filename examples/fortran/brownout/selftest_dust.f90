!> Checks of what dust does and of what is seen of it: bombardment, bounces, the concentration and the optical depth.
module selftest_dust
  use, intrinsic :: iso_c_binding, only: c_double
  use kinds, only: wp, pi, gravity
  use checks, only: expect
  use dust, only: dust_t, grain_density
  use bombardment, only: bombardment_t, crater_share, digs, struck, left_with
  use cloud, only: cloud_t, extinction_per_mass
  use sight, only: visual_range
  use wakefmm, only: wfmm_flow, wfmm_plan_options, wfmm_flow_options, wfmm_flow_create, wfmm_flow_destroy, &
    wfmm_flow_set_dust, wfmm_flow_advance, wfmm_flow_get, WFMM_KIND_DUST, WFMM_QUANTITY_POSITION, WFMM_QUANTITY_VELOCITY
  implicit none (type, external)
  private
  public :: check_dust

contains

  subroutine check_dust(failures)
    integer, intent(inout) :: failures

    call check_crater(failures)
    call check_bounce(failures)
    call check_ejection(failures)
    call check_uniform_cloud(failures)
    call check_puff(failures)
    call check_box(failures)
  end subroutine check_dust

  !> At 13°, the angle that Lu and Shao average to, their bracket is 0.24 + 1.37 (U/10) √(ρp/p), and the share
  !> ρb U²/(4 p) times it.
  subroutine check_crater(failures)
    integer, intent(inout) :: failures
    real(wp), parameter :: angle = 13*pi/180, pressure = 1.0e4_wp, speed = 5.0_wp
    real(wp) :: share

    share = crater_share(speed*cos(angle), speed*sin(angle), pressure)
    call expect(failures, 'crater of a grain at 5 m/s and 13 degrees', share/(1000*speed**2/(4*pressure) &
                *(0.24_wp + 1.37_wp*0.5_wp*sqrt(grain_density/pressure))) - 1, 0.01_wp)
    call expect(failures, 'no crater without a fall', crater_share(0.0_wp, 0.0_wp, pressure), 0.0_wp)
    call expect(failures, 'a crater smaller than a grain ejects nothing', &
                merge(0.0_wp, 1.0_wp, digs(1.0_wp, 30.0e-6_wp) .and. .not. digs(0.99_wp, 30.0e-6_wp) &
                      .and. digs(0.05_wp, 100.0e-6_wp)), 0.0_wp)
  end subroutine check_crater

  !> Grains without drag fall through one step of the library: bounces are found where the parabola meets the ground, and the
  !> velocity at the impact is told from that after it.
  subroutine check_bounce(failures)
    integer, intent(inout) :: failures
    integer, parameter :: n = 400
    real(wp), parameter :: dt = 0.005_wp, restitution = 0.5_wp, friction = 0.4_wp
    type(wfmm_flow) :: flow
    type(wfmm_plan_options) :: sums
    type(wfmm_flow_options) :: motion
    real(c_double) :: x(3, n), v(3, n), x0(3, n), v0(3, n), error
    integer :: i, wrong, found

    call random_number(x0)
    call random_number(v0)
    x0(3, :) = 0.02_wp*x0(3, :)
    v0(3, :) = -4*v0(3, :)
    v0(1:2, :) = 10*v0(1:2, :)
    sums%plane_axis = 3
    motion%gravity = [0.0_c_double, 0.0_c_double, -real(gravity, c_double)]
    motion%fluid_viscosity = 1.0e-12_c_double
    motion%restitution = restitution
    motion%friction = friction
    call wfmm_flow_create(flow, plan_options=sums, options=motion)
    call wfmm_flow_set_dust(flow, x0, spread(1.0e-4_c_double, 1, n), spread(real(grain_density, c_double), 1, n), v0)
    call wfmm_flow_advance(flow, real(dt, c_double), 1)
    call wfmm_flow_get(flow, WFMM_KIND_DUST, WFMM_QUANTITY_POSITION, x)
    call wfmm_flow_get(flow, WFMM_KIND_DUST, WFMM_QUANTITY_VELOCITY, v)
    call wfmm_flow_destroy(flow)
    wrong = 0
    found = 0
    error = 0
    do i = 1, n
      associate (falls => -v0(3, i) + gravity*dt, met => sqrt(v0(3, i)**2 + 2*gravity*x0(3, i)))
        if (restitution*met <= 1.01_wp*gravity*dt) cycle   ! too slow to bounce, or near it
        if (struck(-v0(3, i), x(3, i), v(3, i), dt) .neqv. x0(3, i) < (falls - 0.5_wp*gravity*dt)*dt) wrong = wrong + 1
        if (.not. struck(-v0(3, i), x(3, i), v(3, i), dt)) cycle
        found = found + 1
        error = max(error, abs(left_with(x(3, i), v(3, i))/restitution - met), norm2(v(1:2, i)/(1 - friction) - v0(1:2, i)))
      end associate
    end do
    call expect(failures, 'bounces that are missed or imagined', real(wrong, wp), 0.0_wp)
    call expect(failures, 'no bounce at all', merge(0.0_wp, 1.0_wp, found > n/10), 0.0_wp)
    call expect(failures, 'velocity at the impact, m/s', error, 1.0e-6_wp)
  end subroutine check_bounce

  !> Each grain of a shower owes its share of a parcel; the sum flies, and only from where it fell.
  subroutine check_ejection(failures)
    integer, intent(inout) :: failures
    type(dust_t) :: dust
    type(bombardment_t) :: bed
    integer, allocatable :: leaving(:)
    real(wp), parameter :: height = 0.001_wp   !< m, after an impact of 1 m/s with a restitution of 0.5
    real(wp) :: share
    integer :: k

    call dust%create(20000, 10.0_wp, 0.2_wp, 7)
    call bed%create(1.0e4_wp, 0.5_wp, 0.4_wp, 10.0_wp)
    share = crater_share(5.0_wp, 1.0_wp, 1.0e4_wp)
    do k = 1, 50
      call bed%strike([5.0_wp, 0.0_wp, -1.0_wp], [3.5_wp, -2.5_wp, height], &
                      [3.0_wp, 0.0_wp, sqrt(0.5_wp**2 - 2*gravity*height)], 1.0e-4_wp, 0.005_wp)
    end do
    allocate (leaving(0))
    call bed%eject(dust, leaving)
    call expect(failures, 'parcels ejected by 50 of 5 m/s', real(size(leaving) - floor(50*share), wp), 0.0_wp)
    call expect(failures, 'they leave from where the others fell, m', maxval(abs(dust%position(1, leaving) - 3.5_wp)) &
                + maxval(abs(dust%position(2, leaving) + 2.5_wp)), 1.0_wp)
  end subroutine check_ejection

  !> An even cloud of parcels fills all cells alike, borders too, and a slanting beam loses extinction times length.
  subroutine check_uniform_cloud(failures)
    integer, intent(inout) :: failures
    real(wp), parameter :: h = 0.5_wp, mass = 0.003_wp, diameter = 40.0e-6_wp
    real(wp), parameter :: from(3) = [0.3_wp, 0.4_wp, 2.9_wp], to(3) = [5.1_wp, 3.3_wp, 0.0_wp]
    type(cloud_t) :: cloud
    real(wp) :: density
    integer :: i, j, k

    call cloud%create([0.0_wp, 0.0_wp, 0.0_wp], [6.0_wp, 4.0_wp, 3.0_wp], h)
    do k = 0, 11
      do j = 0, 15
        do i = 0, 23
          call cloud%deposit([(i + 0.5_wp)*h/2, (j + 0.5_wp)*h/2, (k + 0.5_wp)*h/2], mass, diameter)
        end do
      end do
    end do
    density = mass/(h/2)**3
    call expect(failures, 'even cloud, kg/m3', maxval(abs(cloud%concentration/density - 1)), 1.0e-12_wp)
    call expect(failures, 'its mass', cloud%mass()/(24*16*12*mass) - 1, 1.0e-12_wp)
    call expect(failures, 'a beam through it', cloud%optical_depth(from, to) &
                /(density*3/(grain_density*diameter)*norm2(to - from)) - 1, 1.0e-12_wp)
    call expect(failures, 'visual range by Koschmieder, m', visual_range(2.0_wp, 10.0_wp) - 19.56_wp, 0.01_wp)
  end subroutine check_uniform_cloud

  !> A Gaussian puff of mass M and width s takes M k/(2 π s²) from a beam through its middle. Sharing parcels h/2 apart among
  !> cells widens it by 3h²/16 in s², reading at the edges of cells by h²/4.
  subroutine check_puff(failures)
    integer, intent(inout) :: failures
    real(wp), parameter :: h = 0.25_wp, s = 1.0_wp, step = h/2, mass = 2.0_wp, diameter = 20.0e-6_wp
    type(cloud_t) :: cloud
    real(wp) :: x(3), exact
    integer :: i, j, k

    call cloud%create([-6.0_wp, -6.0_wp, -6.0_wp], [12.0_wp, 12.0_wp, 12.0_wp], h)
    do k = -40, 39
      do j = -40, 39
        do i = -40, 39
          x = step*([i, j, k] + 0.5_wp)
          call cloud%deposit(x, mass*step**3*exp(-sum(x**2)/(2*s**2))/(2*pi*s**2)**1.5_wp, diameter)
        end do
      end do
    end do
    exact = mass*extinction_per_mass(diameter)/(2*pi*(s**2 + 7*h**2/16))
    call expect(failures, 'a beam through a Gaussian puff', &
                cloud%optical_depth([-5.9_wp, 0.0_wp, 0.0_wp], [5.9_wp, 0.0_wp, 0.0_wp])/exact - 1, 5.0e-4_wp)
  end subroutine check_puff

  !> Cells cover what was asked for, and where they divide it no more.
  subroutine check_box(failures)
    integer, intent(inout) :: failures
    real(wp), parameter :: extent(3) = [66.0_wp, 66.0_wp, 11.0_wp], cells(*) = [0.5_wp, 0.7_wp, 0.55_wp, 0.1_wp, 3.0_wp, 100.0_wp]
    type(cloud_t) :: cloud
    real(wp) :: missing, more
    integer :: k

    missing = 0
    more = 0
    do k = 1, size(cells)
      if (allocated(cloud%concentration)) deallocate (cloud%concentration, cloud%extinction)
      call cloud%create([0.0_wp, 0.0_wp, 0.0_wp], extent, cells(k))
      missing = max(missing, maxval(extent - cloud%n*cloud%cell))
      more = max(more, maxval((cloud%n - 1)*cloud%cell/extent))
    end do
    call expect(failures, 'the box is smaller than asked for, m', missing, 1.0e-10_wp)
    call expect(failures, 'it would do with fewer cells', max(0.0_wp, more - 1 + 1.0e-10_wp), 0.0_wp)
  end subroutine check_box
end module selftest_dust
