"""psutil in a process of its own: for each line on standard input one census with the facts of a row,
answered with nanoseconds and rows."""

import sys
import time

import psutil

FACTS = ["pid", "ppid", "name", "status", "uids", "create_time"]

print("ready", flush=True)
for _ in sys.stdin:
    list(psutil.process_iter(FACTS))  # its caches and its processor wake up
    psutil.process_iter.cache_clear()
    start = time.perf_counter_ns()
    rows = [process.info for process in psutil.process_iter(FACTS)]
    psutil.process_iter.cache_clear()
    print(time.perf_counter_ns() - start, len(rows), flush=True)
