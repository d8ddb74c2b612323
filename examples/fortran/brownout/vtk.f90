!> VTK XML files (raw appended data) of wake and dust (.vtp) and of the cloud on its grid (.vti), and a .pvd that strings the snapshots together for ParaView.
module vtk
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32
  use kinds, only: wp
  use wake, only: wake_t
  use dust, only: dust_t
  use cloud, only: cloud_t
  use files, only: output_file
  implicit none (type, external)
  private
  public :: write_wake, write_dust, write_cloud, write_collection, snapshot_name

  character, parameter :: newline = achar(10)

contains

  !> Filaments as polylines; age and core radius at the nodes.
  subroutine write_wake(path, wake)
    character(*), intent(in) :: path
    type(wake_t), intent(in) :: wake
    real(wp), allocatable :: x(:, :), age(:), core(:)
    type(output_file) :: file
    integer(int64) :: n, blades, offset
    integer :: last(wake%blades), k, b

    n = sum(wake%nodes)
    blades = wake%blades
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
    call file%create(path)
    call file%put(opening(n, 0_int64, blades)//'<Points>')
    call declare(file, 'position', 'Float32', 3, n, offset)
    call file%put('</Points><PointData>')
    call declare(file, 'age', 'Float32', 1, n, offset)
    call declare(file, 'core_radius', 'Float32', 1, n, offset)
    call file%put('</PointData><Lines>')
    call declare(file, 'connectivity', 'Int32', 1, n, offset)
    call declare(file, 'offsets', 'Int32', 1, blades, offset)
    call file%put('</Lines>'//data_opening('PolyData'))
    call file%put_block([real(x, real32)])
    call file%put_block(real(age, real32))
    call file%put_block(real(core, real32))
    call file%put_block([(int(k - 1, int32), k=1, int(n))])
    call file%put_block(int(last, int32))
    call file%put(closing())
    call file%close()
  end subroutine write_wake

  !> Airborne parcels as points with velocity and diameter.
  subroutine write_dust(path, dust)
    character(*), intent(in) :: path
    type(dust_t), intent(in) :: dust
    integer, allocatable :: up(:)
    type(output_file) :: file
    integer(int64) :: n, offset
    integer :: k

    up = pack([(k, k=1, dust%n)], dust%airborne)
    n = size(up)
    offset = 0
    call file%create(path)
    call file%put(opening(n, n, 0_int64)//'<Points>')
    call declare(file, 'position', 'Float32', 3, n, offset)
    call file%put('</Points><PointData>')
    call declare(file, 'velocity', 'Float32', 3, n, offset)
    call declare(file, 'diameter', 'Float32', 1, n, offset)
    call file%put('</PointData><Verts>')
    call declare(file, 'connectivity', 'Int32', 1, n, offset)
    call declare(file, 'offsets', 'Int32', 1, n, offset)
    call file%put('</Verts>'//data_opening('PolyData'))
    call file%put_block([real(dust%position(:, up), real32)])
    call file%put_block([real(dust%velocity(:, up), real32)])
    call file%put_block(real(dust%diameter(up), real32))
    call file%put_block([(int(k - 1, int32), k=1, int(n))])
    call file%put_block([(int(k, int32), k=1, int(n))])
    call file%put(closing())
    call file%close()
  end subroutine write_dust

  !> Concentration in kg/m³ and extinction in 1/m of all cells.
  subroutine write_cloud(path, cloud)
    character(*), intent(in) :: path
    type(cloud_t), intent(in) :: cloud
    character(200) :: extent, geometry
    type(output_file) :: file
    integer(int64) :: offset, cells

    cells = product(int(cloud%n, int64))
    write (extent, '(3(" 0 ",i0))') cloud%n
    write (geometry, '(a,3es14.6,a,3es14.6,a)') 'Origin="', cloud%lower, '" Spacing="', spread(cloud%cell, 1, 3), '"'
    offset = 0
    call file%create(path)
    call file%put(header('ImageData')//'<ImageData WholeExtent="'//trim(extent)//'" '//trim(geometry)//'><Piece Extent="'// &
                  trim(extent)//'"><CellData>')
    call declare(file, 'concentration', 'Float32', 1, cells, offset)
    call declare(file, 'extinction', 'Float32', 1, cells, offset)
    call file%put('</CellData>'//data_opening('ImageData'))
    call file%put_block([real(cloud%concentration, real32)])
    call file%put_block([real(cloud%extinction, real32)])
    call file%put(closing())
    call file%close()
  end subroutine write_cloud

  !> The snapshots that are in the folder, with their times; no file where none is.
  subroutine write_collection(folder, name, ending, times)
    character(*), intent(in) :: folder, name, ending
    real(wp), intent(in) :: times(:)                   !< s, of the first snapshot, the second, …
    type(output_file) :: file
    character(40) :: time
    logical, allocatable :: there(:)
    integer :: k

    allocate (there(size(times)))
    do k = 1, size(times)
      inquire (file=folder//'/'//snapshot_name(name, k, ending), exist=there(k))
    end do
    if (.not. any(there)) return
    call file%create(folder//'/'//name//'.pvd')
    call file%put('<?xml version="1.0"?>'//newline//'<VTKFile type="Collection" version="0.1"><Collection>'//newline)
    do k = 1, size(times)
      if (.not. there(k)) cycle
      write (time, '(f0.6)') times(k)
      call file%put('<DataSet timestep="'//trim(time)//'" file="'//snapshot_name(name, k, ending)//'"/>'//newline)
    end do
    call file%put('</Collection></VTKFile>'//newline)
    call file%close()
  end subroutine write_collection

  !> name_0001.vtp; from 10,000 on with more digits.
  pure function snapshot_name(name, number, ending) result(text)
    character(*), intent(in) :: name, ending
    integer, intent(in) :: number
    character(:), allocatable :: text
    character(12) :: digits

    write (digits, '(i0.4)') number
    text = name//'_'//trim(digits)//ending
  end function snapshot_name

  function header(kind) result(text)
    character(*), intent(in) :: kind
    character(:), allocatable :: text

    text = '<?xml version="1.0"?>'//newline// &
           '<VTKFile type="'//kind//'" version="1.0" byte_order="'//byte_order()//'" header_type="UInt64">'//newline
  end function header

  function opening(points, vertices, lines) result(text)
    integer(int64), intent(in) :: points, vertices, lines
    character(:), allocatable :: text

    text = header('PolyData')//'<PolyData><Piece NumberOfPoints="'//decimal(points)//'" NumberOfVerts="'//decimal(vertices)// &
           '" NumberOfLines="'//decimal(lines)//'" NumberOfStrips="0" NumberOfPolys="0">'//newline
  end function opening

  !> Describes an array of numbers of four bytes in the appended data and moves `offset` past it.
  subroutine declare(file, name, kind, components, tuples, offset)
    type(output_file), intent(in) :: file
    character(*), intent(in) :: name, kind
    integer, intent(in) :: components
    integer(int64), intent(in) :: tuples
    integer(int64), intent(inout) :: offset

    call file%put('<DataArray type="'//kind//'" Name="'//name//'" NumberOfComponents="'//decimal(int(components, int64))// &
                  '" format="appended" offset="'//decimal(offset)//'"/>'//newline)
    offset = offset + 8 + 4*components*tuples
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
    integer(int64), intent(in) :: value
    character(:), allocatable :: text
    character(20) :: buffer

    write (buffer, '(i0)') value
    text = trim(buffer)
  end function decimal
end module vtk
