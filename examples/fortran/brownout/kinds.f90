!> Kinds and constants that every file shares.
module kinds
  use, intrinsic :: iso_fortran_env, only: real32, real64, int8, int32, int64
  implicit none (type, external)
  public

  !> Working precision of positions, velocities and circulations. `real32` works as well:
  !> the library's generic names follow the kind of the arrays.
  integer, parameter :: wp = real64

  real(wp), parameter :: pi = acos(-1.0_wp)
  real(wp), parameter :: gravity = 9.81_wp            !< m/s²
  real(wp), parameter :: air_density = 1.225_wp       !< kg/m³
  real(wp), parameter :: air_viscosity = 1.81e-5_wp   !< Pa s
end module kinds
