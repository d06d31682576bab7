"""Threads of a simulation: what they are given is done by its loop, at a time that the plan says."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


class SimThreads(Executor):
    """Must be used in the loop, which is the only thread there is."""

    def submit(self, work: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
        told: Future[T] = Future()

        def tell(done: asyncio.Future[T]) -> None:
            error = done.exception()
            if error is not None:
                told.set_exception(error)
            else:
                told.set_result(done.result())

        done = asyncio.get_running_loop().run_in_executor(None, partial(work, *args, **named))
        done.add_done_callback(tell)
        return told
