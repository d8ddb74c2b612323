!> VTK XML files (.vtp, raw appended data) of wake and dust, and a .pvd that strings the snapshots together for ParaView.
module vtk
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32
  use kinds, only: wp
  use wake, only: wake_t, core_radius_at
  use dust, only: dust_t
  implicit none (type, external)
  private
  public :: write_wake, write_dust, write_collection

  character, parameter :: newline = achar(10)

contains

  !> Filaments as polylines; age and core radius at the nodes.
  subroutine write_wake(path, wake)
    character(*), intent(in) :: path
    type(wake_t), intent(in) :: wake
    real(wp) :: age(wake%nodes, wake%blades)
    integer :: unit, n, m, k, offset

    m = wake%nodes
    n = m*wake%blades
    age = spread(wake%node_age([(k, k=1, m)]), 2, wake%blades)
    offset = 0
    open (newunit=unit, file=path, access='stream', form='unformatted', status='replace', action='write')
    write (unit) opening(n, 0, wake%blades)
    write (unit) '<Points>'
    call declare(unit, 'position', 'Float32', 3, 12*n, offset)
    write (unit) '</Points><PointData>'
    call declare(unit, 'age', 'Float32', 1, 4*n, offset)
    call declare(unit, 'core_radius', 'Float32', 1, 4*n, offset)
    write (unit) '</PointData><Lines>'
    call declare(unit, 'connectivity', 'Int32', 1, 4*n, offset)
    call declare(unit, 'offsets', 'Int32', 1, 4*wake%blades, offset)
    write (unit) '</Lines>', data_opening()
    write (unit) int(12*n, int64), real(wake%node(:, :m, :), real32)
    write (unit) int(4*n, int64), real(age, real32)
    write (unit) int(4*n, int64), real(core_radius_at(age, wake%circulation), real32)
    write (unit) int(4*n, int64), [(int(k - 1, int32), k=1, n)]
    write (unit) int(4*wake%blades, int64), [(int(k*m, int32), k=1, wake%blades)]
    write (unit) closing()
    close (unit)
  end subroutine write_wake

  !> Airborne parcels as points with velocity and diameter.
  subroutine write_dust(path, dust)
    character(*), intent(in) :: path
    type(dust_t), intent(in) :: dust
    integer, allocatable :: up(:)
    integer :: unit, n, k, offset

    up = pack([(k, k=1, dust%n)], dust%airborne)
    n = size(up)
    offset = 0
    open (newunit=unit, file=path, access='stream', form='unformatted', status='replace', action='write')
    write (unit) opening(n, n, 0)
    write (unit) '<Points>'
    call declare(unit, 'position', 'Float32', 3, 12*n, offset)
    write (unit) '</Points><PointData>'
    call declare(unit, 'velocity', 'Float32', 3, 12*n, offset)
    call declare(unit, 'diameter', 'Float32', 1, 4*n, offset)
    write (unit) '</PointData><Verts>'
    call declare(unit, 'connectivity', 'Int32', 1, 4*n, offset)
    call declare(unit, 'offsets', 'Int32', 1, 4*n, offset)
    write (unit) '</Verts>', data_opening()
    write (unit) int(12*n, int64), real(dust%position(:, up), real32)
    write (unit) int(12*n, int64), real(dust%velocity(:, up), real32)
    write (unit) int(4*n, int64), real(dust%diameter(up), real32)
    write (unit) int(4*n, int64), [(int(k - 1, int32), k=1, n)]
    write (unit) int(4*n, int64), [(int(k, int32), k=1, n)]
    write (unit) closing()
    close (unit)
  end subroutine write_dust

  !> `name_0001.vtp, …` with their times.
  subroutine write_collection(folder, name, times)
    character(*), intent(in) :: folder, name
    real(wp), intent(in) :: times(:)
    integer :: unit, k

    open (newunit=unit, file=folder//'/'//name//'.pvd', status='replace', action='write')
    write (unit, '(a)') '<?xml version="1.0"?>', '<VTKFile type="Collection" version="0.1"><Collection>'
    do k = 1, size(times)
      write (unit, '(a,f0.4,a,i4.4,a)') '<DataSet timestep="', times(k), '" file="'//name//'_', k, '.vtp"/>'
    end do
    write (unit, '(a)') '</Collection></VTKFile>'
    close (unit)
  end subroutine write_collection

  function opening(points, vertices, lines) result(text)
    integer, intent(in) :: points, vertices, lines
    character(:), allocatable :: text

    text = '<?xml version="1.0"?>'//newline// &
           '<VTKFile type="PolyData" version="1.0" byte_order="'//byte_order()//'" header_type="UInt64">'//newline// &
           '<PolyData><Piece NumberOfPoints="'//decimal(points)//'" NumberOfVerts="'//decimal(vertices)// &
           '" NumberOfLines="'//decimal(lines)//'" NumberOfStrips="0" NumberOfPolys="0">'//newline
  end function opening

  !> Describes an array of `bytes` in the appended data and moves `offset` past it.
  subroutine declare(unit, name, kind, components, bytes, offset)
    integer, intent(in) :: unit, components, bytes
    character(*), intent(in) :: name, kind
    integer, intent(inout) :: offset

    write (unit) '<DataArray type="'//kind//'" Name="'//name//'" NumberOfComponents="'//decimal(components)// &
      '" format="appended" offset="'//decimal(offset)//'"/>'//newline
    offset = offset + 8 + bytes
  end subroutine declare

  pure function data_opening() result(text)
    character(:), allocatable :: text

    text = '</Piece></PolyData>'//newline//'<AppendedData encoding="raw">'//newline//'_'
  end function data_opening

  pure function closing() result(text)
    character(:), allocatable :: text

    text = newline//'</AppendedData></VTKFile>'//newline
  end function closing

  pure function byte_order() result(name)
    character(:), allocatable :: name
    character(4) :: bytes

    bytes = transfer(1_int32, bytes)
    name = merge('LittleEndian', 'BigEndian   ', iachar(bytes(1:1)) == 1)
    name = trim(name)
  end function byte_order

  pure function decimal(value) result(text)
    integer, intent(in) :: value
    character(:), allocatable :: text
    character(12) :: buffer

    write (buffer, '(i0)') value
    text = trim(buffer)
  end function decimal
end module vtk
