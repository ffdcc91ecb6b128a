#!/usr/bin/env python3
"""Calls on device memory from Python, on a fake CUDA driver: arrays, streams, lifetimes.

Usage: gpu_test.py FAKE_CUDA_LIBRARY     its GPUs are host memory
"""
import ctypes
import gc
import os
import sys
import unittest
import weakref
from ctypes import byref, c_uint, c_uint32, c_void_p

import numpy

import ranks as testing
from cuda_driver import Driver
import tutti
from tutti import _cuda


class OfTorch:
    def __init__(self, handle):
        self.cuda_stream = handle


class OfCupy:
    def __init__(self, handle):
        self.ptr = handle


class OfNewPrograms:
    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return 0, self.handle


class DeviceArray:
    """Elements in memory of the fake GPU, which is host memory: `host` shows them."""

    def __init__(self, values):
        values = numpy.asarray(values)
        self.memory = tutti.mem_alloc_device(values.nbytes, 0)
        self.host = numpy.frombuffer((ctypes.c_ubyte * values.nbytes).from_address(self.memory.address), dtype=values.dtype)
        self.host[:] = values
        self.__cuda_array_interface__ = {**self.memory.__cuda_array_interface__, "shape": values.shape,
                                         "typestr": values.dtype.str}


def with_two_ranks(function):
    """Both in this thread, whose current GPU is theirs."""
    comms = tutti.Communicator.init_all([0, 0])
    assert [comm.device for comm in comms] == [0, 0]
    driver, context = Driver(), c_void_p()
    driver.cuDevicePrimaryCtxRetain(byref(context), 0)
    driver.cuCtxSetCurrent(context)
    function(driver, comms)
    for comm in comms:
        comm.destroy()


def every_kind_of_stream(driver, comms):
    for kind in (int, OfTorch, OfCupy, OfNewPrograms):
        stream = driver.stream()
        arrays = [DeviceArray(numpy.full(1000, rank + 1, dtype="float32")) for rank in range(2)]
        with tutti.group():
            for comm, array in zip(comms, arrays):
                comm.all_reduce(array, stream=kind(stream))
        driver.cuStreamSynchronize(c_void_p(stream))
        assert all((array.host == 3).all() for array in arrays), kind
    try:
        with tutti.group():
            comms[0].all_reduce(arrays[0], stream=tutti.Stream())
        raise AssertionError("a host stream with device memory")
    except tutti.InvalidArgumentError:
        pass
    try:
        with tutti.group():
            comms[0].all_reduce(arrays[0], numpy.zeros(1000, dtype="float32"), stream=stream)
        raise AssertionError("host memory and device memory in one call")
    except tutti.InvalidArgumentError as error:
        assert error.code == tutti.Result.INVALID_ARGUMENT


def buffers_live_until_the_stream_has_passed(driver, comms):
    for use_default in (False, True):
        stream = None if use_default else driver.stream()
        word = tutti.mem_alloc(4)
        gate = c_uint32.from_buffer(word)
        address = ctypes.addressof(gate)
        driver.cuStreamWaitValue32(c_void_p(stream), ctypes.c_uint64(address), c_uint32(1), c_uint(0))  # until it is 1
        arrays = [DeviceArray(numpy.ones(100, dtype="int32")) for _ in comms]
        watches = [weakref.ref(array) for array in arrays]
        with tutti.group():
            for comm, array in zip(comms, arrays):
                comm.broadcast(array, stream=stream)
        del arrays, array
        _cuda.release_done(_cuda._driver())
        gc.collect()
        assert all(watch() is not None for watch in watches), "the stream has not passed"
        gate.value = 1
        driver.cuStreamSynchronize(c_void_p(stream))
        _cuda.release_done(_cuda._driver())
        gc.collect()
        assert all(watch() is None for watch in watches), "the stream has passed"


def calls_are_captured_while_others_are_under_way(driver, comms):
    """Those that are not done are asked for in each call, which must not end the capture."""
    stream, captured, graph = driver.stream(), driver.stream(), c_void_p()
    gate = c_uint32.from_buffer(tutti.mem_alloc(4))
    driver.cuStreamWaitValue32(c_void_p(stream), ctypes.c_uint64(ctypes.addressof(gate)), c_uint32(1), c_uint(0))
    arrays = [DeviceArray(numpy.ones(100, dtype="int32")) for _ in comms]

    def broadcast(on):
        with tutti.group():
            for comm, array in zip(comms, arrays):
                comm.broadcast(array, stream=on)

    broadcast(stream)
    driver.cuStreamBeginCapture(c_void_p(captured), c_uint(0))  # as torch does: no thread may ask the driver in vain
    broadcast(captured)
    driver.cuStreamEndCapture(c_void_p(captured), byref(graph))
    assert graph.value
    gate.value = 1
    driver.cuStreamSynchronize(c_void_p(stream))


def current_gpu_of_the_thread():
    """A communicator takes the GPU of the thread's context, though it is started in a thread of its own."""
    driver, context = Driver(), c_void_p()
    unique_id = tutti.UniqueId()
    with tutti.Communicator.from_id(unique_id, 1, 0, device=0) as comm:  # initialises the driver
        assert comm.device == 0
    driver.cuDevicePrimaryCtxRetain(byref(context), 0)
    driver.cuCtxSetCurrent(context)
    with tutti.Communicator.from_id(tutti.UniqueId(), 1, 0) as comm:
        assert comm.device == 0
    driver.cuCtxSetCurrent(None)
    with tutti.Communicator.from_id(tutti.UniqueId(), 1, 0, device=-1) as comm:
        assert comm.device == -1


def memory_of_the_gpu():
    memory = tutti.mem_alloc_device(64, 0)
    assert bytes((ctypes.c_ubyte * 64).from_address(memory.address)) == bytes(64)
    memory.free()
    memory.free()
    for wrong in (lambda: memory.__cuda_array_interface__, lambda: tutti.mem_alloc_device(4, 99),
                  lambda: tutti.mem_alloc_device(-1, 0)):
        try:
            wrong()
            raise AssertionError("no error")
        except tutti.InvalidArgumentError:
            pass


class Gpu(unittest.TestCase):
    def test_every_kind_of_stream(self):
        testing.start(1, with_two_ranks, every_kind_of_stream)

    def test_buffers_live_until_the_stream_has_passed(self):
        testing.start(1, with_two_ranks, buffers_live_until_the_stream_has_passed)

    def test_calls_are_captured_while_others_are_under_way(self):
        testing.start(1, with_two_ranks, calls_are_captured_while_others_are_under_way)

    def test_current_gpu_of_the_thread(self):
        testing.start(1, current_gpu_of_the_thread)

    def test_memory_of_the_gpu(self):
        testing.start(1, memory_of_the_gpu)


if __name__ == "__main__":
    os.environ["TUTTI_CUDA_LIBRARY"] = sys.argv.pop(1)
    unittest.main()
