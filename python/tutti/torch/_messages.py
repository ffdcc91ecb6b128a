"""Sends and receives. Each peer, direction and tag has a communicator and a thread of its own, made when first used, so
that a message that is waited for holds nothing else up.

Messages of tensors on GPUs go through host memory, by copies that this thread waits for. A stream of the GPU that waited
for a peer instead would share a queue of the hardware with other streams, and might hold up the very send that lets the
peer answer."""
from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from datetime import timedelta
from typing import Any, Callable, Dict, List, Optional, Tuple

import tutti

from . import _gpu
from ._place import ON_HOST, OnGpu, Place
from ._worker import Worker

_NAP_S = 0.001  # between two looks at the store; waiting in it would keep other threads from it


def publish(store: Any, key: str, value: bytes) -> None:
    """For wait_for of other ranks."""
    store.set(key, value)
    store.add(key + "/is there", 1)


def wait_for(store: Any, key: str, timeout: timedelta, what: str, abandoned: Optional[threading.Event] = None) -> bytes:
    """The value of a key that another rank publishes. Errors: TimeoutError; RemoteError (`abandoned` was set)."""
    end = time.monotonic() + timeout.total_seconds()
    while store.add(key + "/is there", 0) == 0:
        _nap(end, timeout, what, abandoned or threading.Event())
    return bytes(store.get(key))


def _nap(end: float, timeout: timedelta, what: str, abandoned: threading.Event) -> None:
    """Between two looks at the store. Errors: as wait_for."""
    if time.monotonic() > end:
        raise tutti.TimeoutError(f"waited {timeout.total_seconds():g} s for {what}")
    if abandoned.wait(_NAP_S):
        raise tutti.RemoteError(f"the process group was ended while this rank waited for {what}")


def _each(made: List[tutti.Communicator], end: Callable[[tutti.Communicator], None]) -> None:
    for communicator in made:
        with contextlib.suppress(tutti.Error):  # nobody waits for it, and the library has logged it
            end(communicator)


def _abandon(made: List[tutti.Communicator], abandoned: threading.Event) -> None:
    abandoned.set()
    _each(made, tutti.Communicator.abort)


def _place(tensor: Any, streams: _gpu.Streams) -> Place:
    """Where a message is copied. To be asked by the thread that sends or receives it."""
    gpu = _gpu.gpu_of([tensor])
    return ON_HOST if gpu is None else OnGpu(streams.on(gpu), gpu, [tensor])


def _in_host_memory(tensor: Any, place: Place) -> Any:
    """The tensor, or a copy of one on a GPU."""
    if place.stream is None:
        return tensor if tensor.is_contiguous() else tensor.contiguous()
    copy = _gpu.pinned_like(tensor)
    copy.copy_(tensor, non_blocking=True)
    place.stream.synchronize()
    return copy


class _Channel:
    """Messages of one tag from `source` to `target`, of which this rank is one."""

    def __init__(self, messages: "Messages", source: int, target: int, tag: int) -> None:
        self._store, self._timeout = messages.store, messages.timeout
        self._source, self._target, self._tag = source, target, tag
        self._sends = messages.rank == source
        self._made = made = []  # type: List[tutti.Communicator]
        self.streams = _gpu.Streams()
        self._abandoned = abandoned = threading.Event()
        self.worker = Worker(f"tutti-{source}-{target}", lambda: _each(made, tutti.Communicator.destroy),
                             lambda: _abandon(made, abandoned), messages.timeout.total_seconds())

    def communicator(self) -> tutti.Communicator:
        """Of the two ranks: the sender is 0, the receiver 1. Made when first used, in the thread of the channel."""
        if not self._made:
            key = f"messages/{self._source}/{self._target}/{self._tag}"
            limit_ms = max(1, int(self._timeout.total_seconds() * 1000))
            if self._sends:
                unique_id = tutti.UniqueId()
                publish(self._store, key, bytes(unique_id))
            else:
                what = f"rank {self._source} to send to rank {self._target}"
                unique_id = tutti.UniqueId(wait_for(self._store, key, self._timeout, what, self._abandoned))
            self._made.append(
                tutti.Communicator.from_id(unique_id, 2, 0 if self._sends else 1, timeout_ms=limit_ms, device=-1))
        return self._made[0]


class AnySource:
    """The Work of a receive whose sender is not known yet."""

    def __init__(self, work: Any) -> None:
        self._work = work

    def wait(self, *arguments: Any, **options: Any) -> bool:
        return bool(self._work.wait(*arguments, **options))

    def is_completed(self) -> bool:
        return bool(self._work.is_completed())

    def get_future(self) -> Any:
        return self._work.get_future()

    def _source_rank(self) -> int:
        return int(self._work.get_future().value()[1])

    source_rank = _source_rank


class Messages:
    """All sends and receives of one rank of a process group."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        self.store, self.rank, self.size, self.timeout = store, rank, size, timeout
        self._channels: Dict[Tuple[int, int, int], _Channel] = {}
        self._taken: "Counter[Tuple[int, int]]" = Counter()  # receives so far, by source and tag
        self._lock = threading.Lock()
        self._abandoned = threading.Event()
        self._any: Optional[Worker] = None
        self._any_streams = _gpu.Streams()

    def _channel(self, source: int, target: int, tag: int) -> _Channel:
        key = source, target, tag
        with self._lock:
            if key not in self._channels:
                self._channels[key] = _Channel(self, source, target, tag)
            return self._channels[key]

    def send(self, tensor: Any, peer: int, tag: int) -> Any:
        channel = self._channel(self.rank, peer, tag)
        place = _place(tensor, channel.streams)

        def call() -> Any:
            message = _in_host_memory(tensor, place)
            self.store.add(self._announcement(self.rank, peer, tag), 1)
            channel.communicator().send(message, 1)
            return [tensor]

        return channel.worker.submit("send", call, place)

    def recv(self, tensor: Any, peer: int, tag: int) -> Any:
        with self._lock:
            self._taken[peer, tag] += 1
        return self._receive(tensor, peer, tag)

    def _receive(self, tensor: Any, peer: int, tag: int) -> Any:
        channel = self._channel(peer, self.rank, tag)
        place = _place(tensor, channel.streams)

        def call() -> Any:
            message = tensor if place.stream is None else _gpu.pinned_like(tensor)
            channel.communicator().recv(message, 0)
            if message is not tensor:
                tensor.copy_(message, non_blocking=True)
            return [tensor]

        return channel.worker.submit("recv", call, place)

    def recv_any(self, tensor: Any, tag: int) -> AnySource:
        """From whoever has announced a message that nobody here has asked for."""
        abandoned, place = self._abandoned, _place(tensor, self._any_streams)
        with self._lock:
            if self._any is None:
                self._any = Worker("tutti-any", lambda: None, abandoned.set, self.timeout.total_seconds())

        def call() -> Any:
            source = self._claim(tag)
            self._receive(tensor, source, tag).wait()
            return [[tensor], source]

        return AnySource(self._any.submit("recvAnySource", call, place))

    def _claim(self, tag: int) -> int:
        """The sender of a message that has been announced, which is this receive's from now on."""
        end = time.monotonic() + self.timeout.total_seconds()
        while True:
            for source in range(self.size):
                key = self._announcement(source, self.rank, tag)
                with self._lock:
                    if source != self.rank and self.store.add(key, 0) > self._taken[source, tag]:
                        self._taken[source, tag] += 1
                        return source
            _nap(end, self.timeout, "a message from any rank", self._abandoned)

    @staticmethod
    def _announcement(source: int, target: int, tag: int) -> str:
        return f"announced/{source}/{target}/{tag}"

    def workers(self) -> List[Worker]:
        """To be stopped at the end of the group."""
        with self._lock:
            workers = [channel.worker for channel in self._channels.values()]
            return workers if self._any is None else [*workers, self._any]
