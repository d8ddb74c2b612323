"""Copies between host and device in a step of a flow, as CUPTI records them through PyTorch's profiler.

Enters: gpu_flow.c as a shared library, a case of gpu_flow ("ring", "brownout", "particles"), two numbers of steps. Leaves: copies and
bytes a step by direction, from the difference of the two runs; exit code 1 where a step copies more than 4096 bytes.

    cc -O2 -std=gnu11 -D_GNU_SOURCE -shared -fPIC -Dmain=gpu_flow -Iinclude -Ibench bench/gpu_flow.c -Ltarget/release -lwakefmm -ldl -lm \\
        -Wl,-rpath,$PWD/target/release -o gpu_flow.so
    python3 bench/gpu_transfers.py ./gpu_flow.so brownout 10 30
"""
import collections
import ctypes
import json
import pathlib
import subprocess
import sys
import tempfile

MOST_BYTES = 4096


def traced(library, case, steps):
    """Copies and bytes of one run by direction. A run has a flow with sums in double precision and one with the library's choice."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.zeros(1, device="cuda")
    words = [b"gpu_flow", case.encode(), str(steps).encode()]
    bench = ctypes.CDLL(library)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        bench.gpu_flow(len(words), (ctypes.c_char_p * len(words))(*words))
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        found.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    sums = collections.defaultdict(lambda: [0, 0])
    for event in events:
        if event.get("cat") in ("gpu_memcpy", "kernel"):
            name = event["name"] if event["cat"] == "gpu_memcpy" else "kernels"
            sums[name][0] += 1
            sums[name][1] += event["args"].get("bytes", 0)
    return sums


def main():
    if sys.argv[1] == "--trace":
        print("TRACE " + json.dumps(traced(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
        return 0
    library, case, few, many = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    runs = []
    for steps in (few, many):
        out = subprocess.run([sys.executable, __file__, "--trace", library, case, str(steps)], stdout=subprocess.PIPE, text=True, check=True).stdout
        runs.append(json.loads(next(line for line in out.splitlines() if line.startswith("TRACE "))[6:]))
    print(f"{case}: a step of each of the flows and one evaluation of a plan of the same elements, from runs of {few} and {many}")
    most = 0
    for name in sorted(set(runs[0]) | set(runs[1])):
        count, size = ((runs[1].get(name, [0, 0])[k] - runs[0].get(name, [0, 0])[k]) / (many - few) for k in (0, 1))
        print(f"  {name}: {count:.1f}" + ("" if name == "kernels" else f" of {size:.0f} bytes together"))
        if name != "kernels" and "DtoD" not in name:
            most = max(most, size)
    return int(most > MOST_BYTES)


sys.exit(main())
