"""tutti: collective communication between processes, over shared memory, sockets and GPUs.

    import numpy, tutti
    with tutti.Communicator.from_environment() as comm:   # under torchrun, mpirun or srun
        x = numpy.full(1000, comm.rank + 1.0)
        comm.all_reduce(x)                                 # x is now the sum over all ranks

The methods of Communicator are the calls; tutti.group submits several together, tutti.Stream runs them in the
background, tutti.mem_alloc and tutti.zeros make the memory that is fastest. Failed calls raise subclasses of
tutti.Error.
"""
from ._communicator import Communicator, UniqueId
from ._errors import (Error, InternalError, InvalidArgumentError, InvalidUsageError, RemoteError, Result, SystemError,
                      TimeoutError, UnhandledCudaError)
from ._group import group
from ._library import library_path, library_version
from ._memory import DeviceMemory, mem_alloc, mem_alloc_device, zeros
from ._messages import ANY_SOURCE, ANY_TAG, Request, Status
from ._operators import Operator, PreMulSum
from ._registration import Registration
from ._stream import Stream
from ._types import DataType, RedOp

__version__ = "0.1.0"

__all__ = [
    "ANY_SOURCE", "ANY_TAG", "Communicator", "DataType", "DeviceMemory", "Error", "InternalError", "InvalidArgumentError",
    "InvalidUsageError", "Operator", "PreMulSum", "RedOp", "Registration", "RemoteError", "Request", "Result", "Status",
    "Stream", "SystemError", "TimeoutError", "UnhandledCudaError", "UniqueId", "group", "library_path", "library_version",
    "mem_alloc", "mem_alloc_device", "zeros"
]

# In messages and tracebacks as users know them.
for _name in __all__:
    if not _name.startswith("ANY_"):
        globals()[_name].__module__ = "tutti"
del _name
