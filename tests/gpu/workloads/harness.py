"""What every workload shares: options, digests, timing in blocks, one JSON line at the end.

A workload runs on the GPU with or without the shim and does not know which. Its digests cover
every output, loss and final weight, so that two runs are equal only if they are equal bit for bit.
"""
import argparse
import ctypes
import hashlib
import json
import os
import statistics
import time


def options(default_steps, default_blocks=9, overlap=False, batch=None):
    p = argparse.ArgumentParser()
    if overlap:
        p.add_argument("--overlap", action="store_true", help="prepare the next step in a second stream")
    if batch:
        p.add_argument("--batch", type=int, default=batch)
    p.add_argument("--steps", type=int, default=default_steps, help="steps in a measured block")
    p.add_argument("--blocks", type=int, default=default_blocks)
    p.add_argument("--warmup", type=int, default=3, help="blocks before the measured ones")
    return p.parse_args()


def quiet_environment():
    """Before torch is imported: what makes cuBLAS choose the same way twice."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def torch_deterministic(seed=1234):
    import torch
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch


class Digest:
    """A running sha256 over arrays, in the order they come."""

    def __init__(self):
        self.sha = hashlib.sha256()
        self.bytes = 0

    def torch(self, *tensors):
        for t in tensors:
            self.raw(t.detach().contiguous().cpu().numpy().tobytes())

    def array(self, *arrays):
        for a in arrays:
            self.raw(a.tobytes())

    def raw(self, data):
        self.sha.update(data)
        self.bytes += len(data)

    def hex(self):
        return self.sha.hexdigest() if self.bytes else "nothing"


def blocks(opts, step, synchronize, after_block=None):
    """Runs warm-up and measured blocks; milliseconds a step took, one number for each block."""
    samples = []
    done = 0
    for block in range(opts.warmup + opts.blocks):
        synchronize()
        began = time.perf_counter()
        for _ in range(opts.steps):
            step(done)
            done += 1
        synchronize()
        if block >= opts.warmup:
            samples.append((time.perf_counter() - began) * 1e3 / opts.steps)
        if after_block:
            after_block()
    return samples, done


def driver():
    """Path and version of the libcuda that this process has mapped."""
    path = "none"
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            if "/" in line and "libcuda.so" in line:
                path = line[line.index("/"):].strip()
                break
    version = ctypes.c_int(0)
    try:
        ctypes.CDLL(path if path != "none" else "libcuda.so.1").cuDriverGetVersion(
            ctypes.byref(version))
    except OSError:
        pass
    return path, version.value


def shim_is_at_work():
    """True when the shim's thread runs in this process: it has held launches, and is no idle preload."""
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm", encoding="utf-8") as comm:
                if comm.read().strip() == "autograph":
                    return True
        except OSError:
            pass
    return False


def report(name, samples, steps, digests, device, **more):
    path, version = driver()
    line = {
        "workload": name,
        "unit": "ms per step",
        "median": statistics.median(samples),
        "min": min(samples),
        "max": max(samples),
        "samples": len(samples),
        "steps": steps,
        "digests": {k: d.hex() for k, d in digests.items()},
        "digest_bytes": {k: d.bytes for k, d in digests.items()},
        "driver": path,
        "driver_version": version,
        "device": device,
        "preload": os.environ.get("LD_PRELOAD", ""),
        "shim_at_work": shim_is_at_work(),
    }
    line.update(more)
    print(json.dumps(line), flush=True)
