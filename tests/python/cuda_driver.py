"""What tests call of a CUDA driver, the fake one or a real one: the library that TUTTI_CUDA_LIBRARY names."""
import ctypes
import os
from ctypes import byref, c_int, c_uint, c_uint64, c_void_p


class Driver:
    """Functions by CUDA's names; each raises AssertionError if its status is not 0."""

    VERSIONS = {"cuInit": 2000, "cuStreamCreate": 2000, "cuStreamSynchronize": 2000, "cuStreamWaitValue32": 11070,
                "cuStreamWaitEvent": 3020, "cuMemHostAlloc": 2020, "cuMemcpyAsync": 4000, "cuMemsetD8Async": 3020,
                "cuCtxSetCurrent": 4000, "cuCtxGetCurrent": 4000, "cuDevicePrimaryCtxRetain": 7000,
                "cuStreamBeginCapture": 10010, "cuStreamEndCapture": 10000, "cuEventCreate": 2000, "cuEventRecord": 2000,
                "cuEventQuery": 2000}

    def __init__(self):
        self.loaded = ctypes.CDLL(os.environ["TUTTI_CUDA_LIBRARY"])

    def function(self, name):
        """One that returns its status."""
        address = c_void_p()
        found = self.loaded.cuGetProcAddress_v2(name.encode(), byref(address), self.VERSIONS[name], c_uint64(0), None)
        assert found == 0 and address.value, name
        return ctypes.CFUNCTYPE(c_int)(address.value)

    def __getattr__(self, name):
        function = self.function(name)

        def call(*arguments):
            assert function(*arguments) == 0, name
        return call

    def stream(self):
        made = c_void_p()
        self.cuStreamCreate(byref(made), c_uint(1))
        return made.value
