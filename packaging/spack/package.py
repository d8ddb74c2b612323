# Spack recipe: var/spack/repos/<repo>/packages/wakefmm/package.py
from spack.package import *


class Wakefmm(MakefilePackage):
    """Biot-Savart sums of vortex wakes by a fast multipole method, with a C, C++ and Fortran interface."""

    # The address and checksum of a release archive (make dist) go here when it is published.
    license("MIT OR Apache-2.0")
    version("0.1.0")

    depends_on("c", type="build")
    depends_on("fortran", type="build")
    depends_on("rust@1.90:", type="build")
    depends_on("gmake", type="build")

    def build(self, spec, prefix):
        make("library")

    def install(self, spec, prefix):
        make("install-files", "install-fortran", f"PREFIX={prefix}")
