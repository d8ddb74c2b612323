"""Arrays of PyTorch and CuPy as they are: their device pointers go in and out, on their streams; compared with host arrays.

    python3 tests/gpu/torch_arrays.py path/to/libwakefmm.so     exit code 1 when a case failed
"""
import ctypes as c
import sys

import numpy as np

lib = c.CDLL(sys.argv[1])
HOST, DEVICE, AUTO = 0, 1, 2
failed = 0


def must(status):
    if status:
        text = c.create_string_buffer(500)
        lib.wfmm_last_error(text, c.c_size_t(500), None)
        raise SystemExit(f"status {status}: {text.value.decode()}")


def expect(good, what):
    global failed
    failed += not good
    print(f"{what}: {'ok' if good else 'FAILED'}", flush=True)


def pointer(array):
    if isinstance(array, np.ndarray):
        return c.c_void_p(array.ctypes.data)
    return c.c_void_p(array.data_ptr() if hasattr(array, "data_ptr") else array.data.ptr)


class Plan:
    def __init__(self):
        self.p = c.c_void_p()
        must(lib.wfmm_plan_create(None, None, c.byref(self.p)))

    def velocity(self, x, a, y, u, memory, stream=0, suffix="f64"):
        n, m = c.c_int64(len(x)), c.c_int64(len(y))
        must(lib.wfmm_plan_set_stream(self.p, c.c_void_p(stream)))
        must(getattr(lib, f"wfmm_plan_set_particles_{suffix}")(self.p, n, pointer(x), pointer(a), None, c.c_int32(memory)))
        must(getattr(lib, f"wfmm_plan_set_targets_{suffix}")(self.p, m, pointer(y), c.c_int32(memory)))
        must(getattr(lib, f"wfmm_plan_evaluate_{suffix}")(self.p, pointer(u), None, c.c_int32(memory)))
        return u

    def __del__(self):
        lib.wfmm_plan_destroy(c.byref(self.p))


def main():
    import torch

    rng = np.random.default_rng(1)
    for kind, suffix in ((np.float64, "f64"), (np.float32, "f32")):
        x, a, y = (rng.random((n, 3)).astype(kind) for n in (100_000, 100_000, 50_000))
        plan = Plan()
        want = plan.velocity(x, a, y, np.zeros_like(y), HOST, suffix=suffix)
        expect(np.abs(want).max() > 0, f"host arrays, {suffix}")
        for name, memory in (("declared", DEVICE), ("found out", AUTO)):
            tx, ta, ty = (torch.from_numpy(v).cuda() for v in (x, a, y))
            got = plan.velocity(tx, ta, ty, torch.zeros_like(ty), memory, suffix=suffix)
            expect(np.array_equal(got.cpu().numpy(), want), f"torch tensors, memory {name}, {suffix}: the same bits")
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            # Made on this stream while it is busy: the evaluation must wait for it.
            busy = torch.rand(8000, 8000, device="cuda")
            for _ in range(20):
                busy = busy @ busy
                busy /= busy.norm()
            tx, ta, ty = (torch.from_numpy(v).cuda(non_blocking=True) * 2 / 2 for v in (x, a, y))
            got = plan.velocity(tx, ta, ty, torch.zeros_like(ty), DEVICE, stream.cuda_stream, suffix)
            doubled = got * 2
        expect(np.array_equal(doubled.cpu().numpy(), 2 * want), f"torch tensors on a stream of their own, {suffix}")
        expect(torch.cuda.current_device() == 0 and float(torch.ones(3, device="cuda").sum()) == 3, "torch works on")
        try:
            import cupy
        except ImportError:
            print("no cupy")
            continue
        cx, ca, cy = (cupy.asarray(v) for v in (x, a, y))
        got = plan.velocity(cx, ca, cy, cupy.zeros_like(cy), DEVICE, suffix=suffix)
        expect(np.array_equal(cupy.asnumpy(got), want), f"cupy arrays, {suffix}: the same bits")


main()
print(f"{failed} failed")
sys.exit(failed != 0)
