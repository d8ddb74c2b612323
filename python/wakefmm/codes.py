"""Constants of the C interface, most as enumerations; a test holds every number against the library's header."""

from enum import IntEnum, IntFlag

#: The highest order of expansions that may be requested.
ORDER_MAX = 40
#: The smallest tolerances that single and double precision are promised to hold.
TOLERANCE_MIN_F32 = 5e-6
TOLERANCE_MIN_F64 = 5e-12


class Regularization(IntEnum):
    """How a core regularizes its element; `RANKINE` to `OFFSET` for segments, the later ones for particles."""

    NONE = 0
    RANKINE = 1
    LAMB_OSEEN = 2
    VATISTAS = 3
    SCULLY = 4
    OFFSET = 5
    GAUSS_ERF = 6
    EXPONENTIAL = 7
    COMPACT = 8
    ROSENHEAD = 9
    WINCKELMANS = 10
    POLYNOMIAL = 11


class Method(IntEnum):
    """How sums are computed; `AUTO` takes the one that is expected to be faster."""

    AUTO = 0
    DIRECT = 1
    FMM = 2
    TREECODE = 3


class Precision(IntEnum):
    """Precision of the computation; `Report.precision` is what was used.

    `ARRAYS`: single where all arrays are float32, but double on a CPU below a tolerance of 1e-4, unless velocities of
    particles alone are computed by an FMM or treecode. Double where an array is float64; there an FMM, on a CPU also a
    treecode, may compute velocities in single where that keeps the tolerance and is faster, never with `Flag.REPRODUCIBLE`.
    `F32`: single, or double where the range or the digits of single precision do not suffice. `F64`: double. A tolerance
    below `TOLERANCE_MIN_F32` is refused for `F32`, and for `ARRAYS` where all arrays are float32.
    """

    ARRAYS = 0
    F32 = 1
    F64 = 2


class Expansion(IntEnum):
    """What far fields are expanded in; `PSEUDO_PARTICLES` is slower and there to be compared."""

    HARMONICS = 0
    PSEUDO_PARTICLES = 1


class Backend(IntEnum):
    """Where sums are computed; `AUTO` takes a CUDA device where there is one and the problem is worth the transfer."""

    AUTO = 0
    CPU = 1
    CUDA = 2


class Plane(IntEnum):
    """Axis normal to an impermeable ground plane."""

    NONE = 0
    X = 1
    Y = 2
    Z = 3


class Flag(IntFlag):
    """Flags of a plan; they may be combined."""

    NONE = 0
    ACCUMULATE = 1
    REPRODUCIBLE = 2
    HOST_PARTITION = 4


class LogLevel(IntEnum):
    """How much is logged."""

    OFF = 0
    ERROR = 1
    WARN = 2
    INFO = 3
    DEBUG = 4


class Pass(IntEnum):
    """The passes of an evaluation, in the order of the data."""

    TRANSFER = 0
    TREE = 1
    LISTS = 2
    P2M = 3
    M2M = 4
    M2L = 5
    L2L = 6
    L2P = 7
    P2P = 8
    TOTAL = 9
    M2P = 11


class Kind(IntEnum):
    """Elements of a flow."""

    PARTICLES = 0
    FILAMENTS = 1
    BOUND_SEGMENTS = 2
    TRACERS = 3
    DUST = 4


class Quantity(IntEnum):
    """What `Flow.get` returns."""

    POSITION = 0
    STRENGTH = 1
    CORE_RADIUS = 2
    VELOCITY = 3
    CIRCULATION = 4
    DIAMETER = 5
    DENSITY = 6


class Integrator(IntEnum):
    """How a flow steps in time."""

    EULER = 0
    AB2 = 1
    RK3 = 2
    RK4 = 3


class Stretching(IntEnum):
    """How strengths of particles follow the velocity gradient."""

    NONE = 0
    CLASSICAL = 1
    TRANSPOSE = 2
    MIXED = 3


class Spreading(IntEnum):
    """How viscosity acts on particles."""

    NONE = 0
    CORES = 1


class Reason(IntEnum):
    """Why energy, enstrophy and divergence of a flow are NaN."""

    KNOWN = 0
    KERNEL = 1
    SEGMENTS = 2
    TOO_MANY = 3
    SINGULAR = 4
    PERIODIC = 5


class Projection(IntEnum):
    """How a camera maps space to a picture."""

    PERSPECTIVE = 0
    ORTHOGRAPHIC = 1


class Color(IntEnum):
    """What the colors of a picture say."""

    KIND = 0
    SPEED = 1
    AGE = 2
    DENSITY = 3


class Blending(IntEnum):
    """How points of a picture act on what is behind them."""

    OPACITY = 0
    ADDITIVE = 1


class Status(IntEnum):
    """`Error.status`; a newer library may return others."""

    NULL = 1
    HANDLE = 2
    COUNT = 3
    CONSTANT = 4
    VALUE = 5
    NOT_FINITE = 6
    INDEX = 7
    STATE = 8
    BUSY = 9
    TOO_NEW = 10
    STRUCT_SIZE = 11
    TOLERANCE = 12
    OVERLAP = 13
    MEMORY = 14
    SHAPE = 15
    CALLBACK = 16
    FILE = 17
    NO_DEVICE = 100
    HOST_MEMORY = 101
    DEVICE_MEMORY = 102
    THREADS = 103
    DRIVER = 104
    UNSUPPORTED = 105
    COMMUNICATION = 106
    INTERNAL = -1
    UNUSABLE = -2
    DEVICE_LOST = -3
    FORKED = -4
    OUT_OF_MEMORY = -5
