"""Bounded pools of Lambda workers: reuse when warm, start when there is room, wait otherwise."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING

from local.emulator.lambda_worker import FunctionSpec, KillPlan, LambdaWorker, Outcome, WorkerLimits

if TYPE_CHECKING:
    from pathlib import Path

    from local.emulator.stock import Json


class WorkerPools:
    """All workers of one emulator.

    A function has at most `per_function` workers and all functions together `in_all`; when the latter is
    reached, the worker idle for longest makes room. A caller beyond the bounds waits: AWS would scale or
    throttle here, and 300 processes on two cores answer nobody.
    """

    def __init__(self, limits: WorkerLimits, python: Path) -> None:
        self._limits = limits
        self._python = python
        self._changed = threading.Condition()
        self._idle: defaultdict[FunctionSpec, list[LambdaWorker]] = defaultdict(list)
        self._live: defaultdict[FunctionSpec, int] = defaultdict(int)
        self._busy: set[LambdaWorker] = set()
        self._cold_starts = threading.Semaphore(limits.parallel_cold_starts)
        self._closed = threading.Event()
        threading.Thread(target=self._reap, daemon=True, name="lambda-reaper").start()

    def invoke(
        self,
        spec: FunctionSpec,
        event: Json,
        request_id: str,
        trace_id: str | None = None,
        plan: KillPlan | None = None,
    ) -> Outcome:
        """Run one event on a worker of `spec`, starting one when none is warm."""
        worker, cold = self._lease(spec)
        try:
            if cold:
                with self._cold_starts:
                    failure = worker.start(self._limits.init_seconds)
                if failure is not None:
                    failure.cold = True
                    return failure
            outcome = worker.invoke(event, request_id, trace_id, plan)
            outcome.cold = cold
            return outcome
        finally:
            self._release(worker)

    def forget(self, function_name: str) -> None:
        """Close the idle workers of a function whose code or configuration changed or went."""
        with self._changed:
            doomed = [
                w for spec in list(self._idle) if spec.name == function_name for w in self._idle.pop(spec)
            ]
            self._gone(doomed)
        _close(doomed)

    def close(self) -> None:
        """Kill every worker, also busy ones."""
        self._closed.set()
        with self._changed:
            doomed = [worker for workers in self._idle.values() for worker in workers] + list(self._busy)
            self._idle.clear()
        _close(doomed)

    def census(self) -> dict[str, int]:
        """Live workers by function name."""
        with self._changed:
            counts: defaultdict[str, int] = defaultdict(int)
            for spec, count in self._live.items():
                counts[spec.name] += count
            return {name: count for name, count in counts.items() if count}

    def _lease(self, spec: FunctionSpec) -> tuple[LambdaWorker, bool]:
        while True:
            evicted: list[LambdaWorker] = []
            with self._changed:
                worker, cold = self._warm_or_room(spec, evicted)
                if worker is None and not evicted:
                    self._changed.wait()
                    continue
                if worker is not None:
                    self._busy.add(worker)
            _close(evicted)
            if worker is not None:
                return worker, cold

    def _warm_or_room(
        self, spec: FunctionSpec, evicted: list[LambdaWorker]
    ) -> tuple[LambdaWorker | None, bool]:
        while self._idle[spec]:
            worker = self._idle[spec].pop()
            if worker.alive:
                return worker, False
            self._gone([worker])
            evicted.append(worker)
        if self._live[spec] >= self._limits.per_function:
            return None, False
        if sum(self._live.values()) >= self._limits.in_all and not self._evict_oldest(evicted):
            return None, False
        self._live[spec] += 1
        return LambdaWorker(spec, self._python), True

    def _evict_oldest(self, evicted: list[LambdaWorker]) -> bool:
        idle = [worker for workers in self._idle.values() for worker in workers]
        if not idle:
            return False
        oldest = min(idle, key=lambda worker: worker.last_used)
        self._idle[oldest.spec].remove(oldest)
        self._gone([oldest])
        evicted.append(oldest)
        return True

    def _release(self, worker: LambdaWorker) -> None:
        with self._changed:
            self._busy.discard(worker)
            keep = worker.alive and not self._closed.is_set()
            if keep:
                self._idle[worker.spec].append(worker)
                self._changed.notify_all()
        if not keep:
            worker.close()
            with self._changed:
                self._gone([worker])

    def _gone(self, workers: list[LambdaWorker]) -> None:
        for worker in workers:
            self._live[worker.spec] -= 1
            if not self._live[worker.spec]:
                del self._live[worker.spec]
        self._changed.notify_all()

    def _reap(self) -> None:
        while not self._closed.wait(min(self._limits.idle_seconds / 4, 5.0)):
            oldest_kept = time.monotonic() - self._limits.idle_seconds
            with self._changed:
                doomed = [w for ws in self._idle.values() for w in ws if w.last_used < oldest_kept]
                for worker in doomed:
                    self._idle[worker.spec].remove(worker)
                self._gone(doomed)
            _close(doomed)


def _close(workers: list[LambdaWorker]) -> None:
    for worker in workers:
        worker.close()
