!> VTK XML files (raw appended data) of wake and dust (.vtp) and of the cloud on its grid (.vti), and a .pvd that strings the snapshots together for ParaView.
module vtk
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32
  use kinds, only: wp
  use wake, only: wake_t
  use dust, only: dust_t
  use cloud, only: cloud_t
  implicit none (type, external)
  private
  public :: write_wake, write_dust, write_cloud, write_collection

  character, parameter :: newline = achar(10)

contains

  !> Filaments as polylines; age and core radius at the nodes.
  subroutine write_wake(path, wake)
    character(*), intent(in) :: path
    type(wake_t), intent(in) :: wake
    real(wp), allocatable :: x(:, :), age(:), core(:)
    integer :: last(wake%blades), unit, n, k, b, offset

    n = sum(wake%nodes)
    last = [(sum(wake%nodes(:b)), b=1, wake%blades)]
    allocate (x(3, n), age(n), core(n))
    do b = 1, wake%blades
      associate (m => wake%nodes(b))
        x(:, last(b) - m + 1:last(b)) = wake%node(:, :m, b)
        age(last(b) - m + 1:last(b)) = wake%node_age(:m, b)
        core(last(b) - m + 1:last(b)) = [wake%core(:m - 1, b), wake%core(m - 1, b)]
      end associate
    end do
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
    write (unit) '</Lines>', data_opening('PolyData')
    write (unit) int(12*n, int64), real(x, real32)
    write (unit) int(4*n, int64), real(age, real32)
    write (unit) int(4*n, int64), real(core, real32)
    write (unit) int(4*n, int64), [(int(k - 1, int32), k=1, n)]
    write (unit) int(4*wake%blades, int64), int(last, int32)
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
    write (unit) '</Verts>', data_opening('PolyData')
    write (unit) int(12*n, int64), real(dust%position(:, up), real32)
    write (unit) int(12*n, int64), real(dust%velocity(:, up), real32)
    write (unit) int(4*n, int64), real(dust%diameter(up), real32)
    write (unit) int(4*n, int64), [(int(k - 1, int32), k=1, n)]
    write (unit) int(4*n, int64), [(int(k, int32), k=1, n)]
    write (unit) closing()
    close (unit)
  end subroutine write_dust

  !> Concentration in kg/m³ and extinction in 1/m of all cells.
  subroutine write_cloud(path, cloud)
    character(*), intent(in) :: path
    type(cloud_t), intent(in) :: cloud
    character(200) :: extent, geometry
    integer :: unit, bytes, offset

    bytes = 4*product(cloud%n)
    write (extent, '(3(" 0 ",i0))') cloud%n
    write (geometry, '(a,3es14.6,a,3es14.6,a)') 'Origin="', cloud%lower, '" Spacing="', spread(cloud%cell, 1, 3), '"'
    offset = 0
    open (newunit=unit, file=path, access='stream', form='unformatted', status='replace', action='write')
    write (unit) header('ImageData'), '<ImageData WholeExtent="', trim(extent), '" ', trim(geometry), '><Piece Extent="', &
      trim(extent), '"><CellData>'
    call declare(unit, 'concentration', 'Float32', 1, bytes, offset)
    call declare(unit, 'extinction', 'Float32', 1, bytes, offset)
    write (unit) '</CellData>', data_opening('ImageData')
    write (unit) int(bytes, int64), real(cloud%concentration, real32)
    write (unit) int(bytes, int64), real(cloud%extinction, real32)
    write (unit) closing()
    close (unit)
  end subroutine write_cloud

  !> `name_0001.vtp, …` (or .vti) with their times.
  subroutine write_collection(folder, name, ending, times)
    character(*), intent(in) :: folder, name, ending
    real(wp), intent(in) :: times(:)
    integer :: unit, k

    open (newunit=unit, file=folder//'/'//name//'.pvd', status='replace', action='write')
    write (unit, '(a)') '<?xml version="1.0"?>', '<VTKFile type="Collection" version="0.1"><Collection>'
    do k = 1, size(times)
      write (unit, '(a,f0.4,a,i4.4,a)') '<DataSet timestep="', times(k), '" file="'//name//'_', k, ending//'"/>'
    end do
    write (unit, '(a)') '</Collection></VTKFile>'
    close (unit)
  end subroutine write_collection

  function header(kind) result(text)
    character(*), intent(in) :: kind
    character(:), allocatable :: text

    text = '<?xml version="1.0"?>'//newline// &
           '<VTKFile type="'//kind//'" version="1.0" byte_order="'//byte_order()//'" header_type="UInt64">'//newline
  end function header

  function opening(points, vertices, lines) result(text)
    integer, intent(in) :: points, vertices, lines
    character(:), allocatable :: text

    text = header('PolyData')//'<PolyData><Piece NumberOfPoints="'//decimal(points)//'" NumberOfVerts="'//decimal(vertices)// &
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

  pure function data_opening(kind) result(text)
    character(*), intent(in) :: kind
    character(:), allocatable :: text

    text = '</Piece></'//kind//'>'//newline//'<AppendedData encoding="raw">'//newline//'_'
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
