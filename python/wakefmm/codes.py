"""Constants of the C interface as enumerations; a test holds every number against the library's header."""

from enum import IntEnum, IntFlag


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
    """Precision of the computation; `ARRAYS`: the library chooses for double arrays, single arrays are computed in single (on a CPU below 1e-4, of particles alone below 1e-6, in double)."""

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
