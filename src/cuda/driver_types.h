// The types and constants of the CUDA driver that tutti uses, declared here so that building needs no CUDA header.
//
// Structures have CUDA's own names, so that a CUstream is a Stream. tests/unit/cuda_header_test.cpp compares these
// declarations with cuda.h where it is installed.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUfunc_st;
struct CUlib_st;
struct CUkern_st;
struct CUgraph_st;
struct CUgraphNode_st;
struct CUgraphExec_st;
struct CUuserObject_st;
struct CUmemPoolHandle_st;

namespace tutti::cuda {

using Status = int;  ///< CUresult
using Ordinal = int;
using Address = unsigned long long;  ///< CUdeviceptr
using Context = CUctx_st*;
using Stream = CUstream_st*;
using Event = CUevent_st*;
using Function = CUfunc_st*;
using Library = CUlib_st*;
using Kernel = CUkern_st*;
using Graph = CUgraph_st*;
using GraphNode = CUgraphNode_st*;
using GraphExec = CUgraphExec_st*;
using UserObject = CUuserObject_st*;
using Pool = CUmemPoolHandle_st*;
using HostFunction = void (*)(void*);

/// CUipcMemHandle: lets another process map memory of a GPU.
struct IpcHandle {
  unsigned char bytes[64];
  bool operator==(const IpcHandle&) const = default;
};

/// CUuuid: the same for a GPU, or a part of one, in all processes.
struct DeviceUuid {
  unsigned char bytes[16] = {};
  bool operator==(const DeviceUuid&) const = default;
};

/// CUmemLocation
struct Location {
  int type = 0;
  int id = 0;
};

/// CUmemAllocationProp
struct AllocationKind {
  int type = 1;          ///< CU_MEM_ALLOCATION_TYPE_PINNED: in one place
  int handle_types = 1;  ///< CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
  Location location;
  void* win32 = nullptr;
  unsigned char flags[8] = {};
};

/// CUmemAccessDesc
struct AccessOf {
  Location location;
  unsigned flags = 0;
};

using Allocated = unsigned long long;  ///< CUmemGenericAllocationHandle

namespace status {
inline constexpr Status success = 0;
inline constexpr Status invalid_value = 1;
inline constexpr Status out_of_memory = 2;
inline constexpr Status not_initialized = 3;
inline constexpr Status deinitialized = 4;
inline constexpr Status no_device = 100;
inline constexpr Status invalid_device = 101;
inline constexpr Status invalid_context = 201;
inline constexpr Status already_mapped = 208;
inline constexpr Status no_binary_for_gpu = 209;
inline constexpr Status ecc_uncorrectable = 214;
inline constexpr Status nvlink_uncorrectable = 220;
inline constexpr Status invalid_handle = 400;
inline constexpr Status not_found = 500;
inline constexpr Status not_ready = 600;
inline constexpr Status illegal_address = 700;
inline constexpr Status launch_timeout = 702;
inline constexpr Status peer_access_already_enabled = 704;
inline constexpr Status context_is_destroyed = 709;
inline constexpr Status assert_failed = 710;
inline constexpr Status hardware_stack_error = 714;
inline constexpr Status launch_failed = 719;
inline constexpr Status cooperative_launch_too_large = 720;
inline constexpr Status not_permitted = 800;
inline constexpr Status not_supported = 801;
inline constexpr Status stream_capture_unsupported = 900;
inline constexpr Status stream_capture_invalidated = 901;
inline constexpr Status stream_capture_merge = 902;
inline constexpr Status stream_capture_implicit = 906;
}  // namespace status

namespace attribute {  // CUdevice_attribute
inline constexpr int multiprocessors = 16;
inline constexpr int pci_bus = 33;
inline constexpr int pci_device = 34;
inline constexpr int pci_domain = 50;
inline constexpr int compute_major = 75;
inline constexpr int compute_minor = 76;
inline constexpr int cooperative_launch = 95;
inline constexpr int virtual_memory = 102;
inline constexpr int descriptors_of_memory = 103;
inline constexpr int stream_memory_operations = 122;  // CAN_USE_64_BIT_STREAM_MEM_OPS; tutti uses the 32-bit operations
inline constexpr int mps_enabled = 133;
}  // namespace attribute

namespace pointer_attribute {  // CUpointer_attribute
inline constexpr int memory_type = 2;
inline constexpr int buffer_id = 7;
inline constexpr int is_managed = 8;
inline constexpr int device_ordinal = 9;
inline constexpr int ipc_capable = 10;
inline constexpr int pool = 17;
}  // namespace pointer_attribute

inline constexpr unsigned memory_type_host = 1;    // CUmemorytype; 0: unknown to the driver
inline constexpr unsigned memory_type_device = 2;  //
inline constexpr int location_device = 1;          // CUmemLocationType
inline constexpr int handle_type_descriptor = 1;   // CUmemAllocationHandleType
inline constexpr int granularity_minimum = 0;      // CUmemAllocationGranularity_flags
inline constexpr unsigned access_read_write = 3;   // CUmemAccess_flags
inline constexpr unsigned stream_non_blocking = 1;
inline constexpr std::uintptr_t stream_per_thread = 2;  // CU_STREAM_PER_THREAD
inline constexpr unsigned event_without_timing = 2;
inline constexpr unsigned host_memory_portable = 1;
inline constexpr unsigned host_memory_mapped = 2;
inline constexpr unsigned host_register_portable = 1;
inline constexpr unsigned host_register_mapped = 2;
inline constexpr unsigned wait_value_reached = 0;   // (int32_t)(*at - value) >= 0
inline constexpr unsigned write_value_ordered = 0;  // after all earlier writes
inline constexpr unsigned managed_global = 1;
inline constexpr unsigned ipc_lazy_peer_access = 1;  // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
inline constexpr unsigned user_object_unsynchronized = 1;
inline constexpr unsigned graph_takes_reference = 1;
inline constexpr int capture_none = 0;  // CUstreamCaptureStatus
inline constexpr int capture_active = 1;
inline constexpr int capture_invalidated = 2;
inline constexpr int capture_mode_global = 0;  // CUstreamCaptureMode
inline constexpr int capture_mode_relaxed = 2;

}  // namespace tutti::cuda
