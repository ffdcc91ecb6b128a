"""Finds libtutti.so, loads it, and declares its functions: the public C API, include/tutti/tutti.h."""
from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_char, c_char_p, c_int, c_longlong, c_size_t, c_uint, c_void_p

VERSION = (0, 1)  # major and minor of the libraries whose functions and structs are as declared here
SONAME = "libtutti.so.1"

UNSET = -(2**31)  # TUTTI_CONFIG_UNDEF_INT
_CONFIG_MAGIC = 0x74757474
_ID_BYTES = 128


class IdStruct(ctypes.Structure):
    """tuttiUniqueId."""

    _fields_ = [("internal", c_char * _ID_BYTES)]


class StatusStruct(ctypes.Structure):
    """tuttiStatus_t."""

    _fields_ = [("source", c_int), ("tag", c_int), ("count", c_size_t), ("type", c_int), ("cancelled", c_int),
                ("reserved", c_longlong * 2)]


class Config(ctypes.Structure):
    """tuttiConfig_t, as TUTTI_CONFIG_INITIALIZER makes it."""

    _fields_ = [
        ("size", c_size_t),
        ("magic", c_uint),
        ("version", c_uint),
        ("blocking", c_int),
        ("deterministic", c_int),
        ("timeoutMs", c_int),
        ("name", c_char_p),
        ("device", c_int),
        ("progress", c_void_p),
        ("progressContext", c_void_p),
        ("callTimeoutMs", c_int),
    ]

    def __init__(self) -> None:
        super().__init__(ctypes.sizeof(Config), _CONFIG_MAGIC, VERSION[0] * 10000 + VERSION[1] * 100, UNSET, UNSET,
                         UNSET, None, UNSET, None, None, UNSET)


# tuttiRedOpFunction_t.
OperatorFunction = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_size_t, c_int, c_void_p)

_comm = _stream = _buffer = _counts = c_void_p
_config = POINTER(Config)
_handle = POINTER(c_void_p)
_type = _op = c_int

_ARGUMENTS = {
    "tuttiGetVersion": [POINTER(c_int)],
    "tuttiGetUniqueId": [POINTER(IdStruct)],
    "tuttiDropUniqueId": [POINTER(IdStruct)],
    "tuttiGetErrorString": [c_int],
    "tuttiGetLastError": [_comm],
    "tuttiCommInitRankConfig": [_handle, c_int, IdStruct, c_int, _config],
    "tuttiCommInitAll": [_handle, c_int, POINTER(c_int)],
    "tuttiCommInitFromEnv": [_handle, _config],
    "tuttiCommSplit": [_comm, c_int, c_int, _handle, _config],
    "tuttiCommCreateGroup": [_comm, POINTER(c_int), c_int, _handle, _config],
    "tuttiCommFinalize": [_comm],
    "tuttiCommDestroy": [_comm],
    "tuttiCommAbort": [_comm],
    "tuttiCommGetAsyncError": [_comm, POINTER(c_int)],
    "tuttiCommCount": [_comm, POINTER(c_int)],
    "tuttiCommUserRank": [_comm, POINTER(c_int)],
    "tuttiCommDevice": [_comm, POINTER(c_int)],
    "tuttiCommSetTimeout": [_comm, c_int],
    "tuttiAllReduce": [_buffer, _buffer, c_size_t, _type, _op, _comm, _stream],
    "tuttiReduce": [_buffer, _buffer, c_size_t, _type, _op, c_int, _comm, _stream],
    "tuttiBroadcast": [_buffer, _buffer, c_size_t, _type, c_int, _comm, _stream],
    "tuttiAllGather": [_buffer, _buffer, c_size_t, _type, _comm, _stream],
    "tuttiReduceScatter": [_buffer, _buffer, c_size_t, _type, _op, _comm, _stream],
    "tuttiScan": [_buffer, _buffer, c_size_t, _type, _op, _comm, _stream],
    "tuttiExScan": [_buffer, _buffer, c_size_t, _type, _op, _comm, _stream],
    "tuttiAllToAll": [_buffer, _buffer, c_size_t, _type, _comm, _stream],
    "tuttiGather": [_buffer, _buffer, c_size_t, _type, c_int, _comm, _stream],
    "tuttiScatter": [_buffer, _buffer, c_size_t, _type, c_int, _comm, _stream],
    "tuttiAllGatherV": [_buffer, c_size_t, _buffer, _counts, _counts, _type, _comm, _stream],
    "tuttiReduceScatterV": [_buffer, _counts, _counts, _buffer, c_size_t, _type, _op, _comm, _stream],
    "tuttiAllToAllV": [_buffer, _counts, _counts, _buffer, _counts, _counts, _type, _comm, _stream],
    "tuttiGatherV": [_buffer, c_size_t, _buffer, _counts, _counts, _type, c_int, _comm, _stream],
    "tuttiScatterV": [_buffer, _counts, _counts, _buffer, c_size_t, _type, c_int, _comm, _stream],
    "tuttiScatterGather": [_buffer, _buffer, POINTER(c_int), c_int, POINTER(c_int), c_int, c_size_t, c_size_t, _type,
                           _comm, _stream],
    "tuttiBarrier": [_comm, _stream],
    "tuttiSend": [_buffer, c_size_t, _type, c_int, _comm, _stream],
    "tuttiRecv": [_buffer, c_size_t, _type, c_int, _comm, _stream],
    "tuttiIsend": [_buffer, c_size_t, _type, c_int, c_int, _comm, _handle],
    "tuttiIrecv": [_buffer, c_size_t, _type, c_int, c_int, _comm, _handle],
    "tuttiTest": [_handle, POINTER(c_int), POINTER(StatusStruct)],
    "tuttiWait": [_handle, POINTER(StatusStruct)],
    "tuttiCancel": [c_void_p, POINTER(c_int)],
    "tuttiIprobe": [c_int, c_int, _comm, POINTER(c_int), POINTER(StatusStruct)],
    "tuttiProbe": [c_int, c_int, _comm, POINTER(StatusStruct)],
    "tuttiGroupStart": [],
    "tuttiGroupEnd": [],
    "tuttiMemAlloc": [_handle, c_size_t],
    "tuttiMemAllocDevice": [_handle, c_size_t, c_int],
    "tuttiMemFree": [c_void_p],
    "tuttiCommRegister": [_comm, _buffer, c_size_t, _handle],
    "tuttiCommDeregister": [_comm, c_void_p],
    "tuttiStreamCreate": [_handle],
    "tuttiStreamSynchronize": [_stream],
    "tuttiStreamQuery": [_stream],
    "tuttiStreamDestroy": [_stream],
    "tuttiRedOpCreatePreMulSum": [POINTER(c_int), c_void_p, _type, c_int, _comm],
    "tuttiRedOpCreate": [POINTER(c_int), OperatorFunction, c_void_p, _type, _comm],
    "tuttiRedOpDestroy": [_op, _comm],
    "tuttiCommLastAlgorithm": [_comm, POINTER(c_char_p), POINTER(c_char_p)],
    "tuttiCommExplain": [_comm, c_char_p, c_size_t, _type, c_char_p, c_size_t, POINTER(c_size_t)],
}


def _open() -> ctypes.CDLL:
    """The library in this package, else the one that the loader finds (LD_LIBRARY_PATH, ld.so.conf)."""
    packed = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libtutti.so")
    if os.path.exists(packed):
        return ctypes.CDLL(packed)
    try:
        return ctypes.CDLL(SONAME)
    except OSError as error:
        raise ImportError(
            f"tutti: {SONAME} was not found, neither as {packed} nor by the loader ({error}). "
            "Install the package with pip, or add the folder of the library to LD_LIBRARY_PATH.") from None


def _load() -> ctypes.CDLL:
    library = _open()
    for name, arguments in _ARGUMENTS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"tutti: {library._name} has no {name}: it is another version of the library") from None
        function.argtypes = arguments
        function.restype = c_int
    library.tuttiGetErrorString.restype = c_char_p
    library.tuttiGetLastError.restype = c_char_p
    version = c_int()
    library.tuttiGetVersion(version)
    if (version.value // 10000, version.value // 100 % 100) != VERSION:
        raise ImportError(f"tutti: {library._name} has version {version_text(version.value)}; this package needs "
                          f"{VERSION[0]}.{VERSION[1]}")
    return library


def version_text(number: int) -> str:
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


lib = _load()


def library_version() -> str:
    """Version of the loaded library, for example "0.1.0"."""
    number = c_int()
    lib.tuttiGetVersion(number)
    return version_text(number.value)


def library_path() -> str:
    """File of the loaded library; its bare name if the loader found it."""
    return str(lib._name)
