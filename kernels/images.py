#!/usr/bin/env python3
"""Compiles one unit to a fat binary with the CUDA 12 libraries that kernels/toolchain.sh installs.

images.py UNIT.cu OUT: machine code for the architectures of CUBINS and PTX for PTX. Run by the Python of that environment. Standard
output has what `ptxas -v` says, and size and processor time of each image; the exit status is 1 where something does not compile.

Which image a driver takes: machine code of the same major architecture with the largest minor number that is not above the GPU's; else it
translates the PTX. So 8.6, 8.7 and 8.9 run the code of sm_80, 10.3 that of sm_100, 12.1 that of sm_120, and only other architectures
(11.0, later ones) run the PTX. PTX of compute_80 would never be chosen beside it.
"""
import ctypes
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

# Machine code. Those that drivers before 550 are asked for are compressed as such drivers read it (LZ4), the others, whose GPUs need
# newer drivers, in half of the bytes (Zstandard).
CUBINS = {"75": "speed", "80": "speed", "90": "speed", "100": "size", "120": "size"}
# Translated by NVRTC 12.0, whose PTX (ISA 8.0) drivers from 525 on read.
PTX = {"90": "size"}
# M2L hands registers from warp to warp, which only the architecture's own target can.
OWN_TARGET = {("fmm_m2l", "90"): "90a"}

# What nvcc takes from the host's headers. Everything else that the kernels use is built into NVRTC.
HEADERS = {
    b"cuda_runtime.h": b"""#pragma once
#define NAN __int_as_float(0x7fffffff)
#define INFINITY __int_as_float(0x7f800000)
""",
    b"cstddef": b"""#pragma once
#define offsetof(type, member) __INTADDR__(&((type *)0)->member)
""",
    b"cstdint": b"""#pragma once
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long long uint64_t; typedef unsigned long long uintptr_t;
""",
}


def strings(texts):
    return (ctypes.c_char_p * len(texts))(*texts)


def translate(library, unit, arch, out):
    """UNIT to PTX; in a process of its own, since the two versions of NVRTC have one name."""
    nvrtc = ctypes.CDLL(library)
    source = pathlib.Path(unit)
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.read_bytes(), source.name.encode(), len(HEADERS),
                             strings(list(HEADERS.values())), strings(list(HEADERS)))
    options = [b"-std=c++17", b"-default-device", b"-arch=compute_" + arch.encode(), b"-I" + str(source.parent).encode()]
    failed = nvrtc.nvrtcCompileProgram(program, len(options), strings(options)) != 0
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    sys.stderr.write(log.value.decode())
    if not failed:
        nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
        ptx = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetPTX(program, ptx)
        pathlib.Path(out).write_bytes(ptx.raw)  # with the zero at its end, as the driver wants it
    return failed


def bundle(library, images, mode):
    """A fat binary of images (architecture, bytes, is PTX), compressed in one way."""
    fatbin = ctypes.CDLL(library)
    fatbin.nvFatbinGetErrorString.restype = ctypes.c_char_p
    handle, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = [b"-64", b"-compress=true", b"-compress-all", b"-compress-mode=" + mode.encode()]

    def check(code):
        if code != 0:
            sys.exit(f"nvFatbin: {fatbin.nvFatbinGetErrorString(code).decode()}")

    check(fatbin.nvFatbinCreate(ctypes.byref(handle), strings(options), ctypes.c_size_t(len(options))))
    for arch, image, is_ptx in images:
        add, end = (fatbin.nvFatbinAddPTX, [b""]) if is_ptx else (fatbin.nvFatbinAddCubin, [])
        check(add(handle, image, ctypes.c_size_t(len(image)), arch.encode(), b"wakefmm", *end))
    check(fatbin.nvFatbinSize(handle, ctypes.byref(size)))
    whole = ctypes.create_string_buffer(size.value)
    check(fatbin.nvFatbinGet(handle, whole))
    return whole.raw


def join(parts):
    """Fat binaries one after the other as one: a header of 16 bytes with the length of what follows it, then the images."""
    header = struct.Struct("<IHHQ")
    bodies = []
    for part in parts:
        magic, version, begin, length = header.unpack_from(part)
        if (magic, version, begin) != (0xBA55ED50, 1, header.size) or begin + length != len(part):
            sys.exit("nvFatbin: the header of a fat binary is not as it was in CUDA 12.9")
        bodies.append(part[begin:])
    return header.pack(0xBA55ED50, 1, header.size, sum(map(len, bodies))) + b"".join(bodies)


def main(unit, out):
    source = pathlib.Path(unit).resolve()
    root = pathlib.Path(sys.prefix)
    packages = next(root.glob("lib/python3*/site-packages/nvidia"))
    nvrtc = packages / "cuda_nvrtc/lib/libnvrtc.so.12"
    older = root / "ptx/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"
    images = {}
    with tempfile.TemporaryDirectory() as folder:
        jobs = [(nvrtc, arch, mode, False) for arch, mode in CUBINS.items()] + [(older, arch, mode, True) for arch, mode in PTX.items()]
        for library, arch, mode, is_ptx in jobs:
            target = arch if is_ptx else OWN_TARGET.get((source.stem, arch), arch)
            ptx, cubin = f"{folder}/{target}.ptx", f"{folder}/{target}.cubin"
            begun = sum(os.times()[2:4])
            if subprocess.run([sys.executable, __file__, str(library), str(source), target, ptx]).returncode != 0:
                return 1
            if not is_ptx:
                ptxas = [packages / "cuda_nvcc/bin/ptxas", "-O3", "-v", f"-arch=sm_{target}", "-o", cubin, ptx]
                if subprocess.run(ptxas, stderr=subprocess.STDOUT).returncode != 0:
                    return 1
            image = pathlib.Path(ptx if is_ptx else cubin).read_bytes()
            images.setdefault(mode, []).append((target, image, is_ptx))
            name = f"{'compute' if is_ptx else 'sm'}_{target}"
            print(f"{name}: {len(image)} bytes in {sum(os.times()[2:4]) - begun:.1f} s of processor", flush=True)
    library = str(packages / "nvfatbin/lib/libnvfatbin.so.12")
    pathlib.Path(out).write_bytes(join([bundle(library, images[mode], mode) for mode in images]))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 3 else translate(*sys.argv[1:]))
