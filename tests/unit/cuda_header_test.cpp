// What we declare of CUDA's driver is what cuda.h declares: functions, codes and flags.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <type_traits>

#include "cuda/driver.h"

namespace tutti::cuda {
namespace {

/// The same to a caller in C: pointers are pointers, and enumerations numbers of their size.
template <class Ours, class Theirs>
constexpr bool is_alike() {
  using A = std::remove_cv_t<Ours>;
  using B = std::remove_cv_t<Theirs>;
  if constexpr (std::is_same_v<A, IpcHandle>)
    return std::is_same_v<B, CUipcMemHandle> && sizeof(A) == sizeof(B);
  else if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B> &&
                     std::is_same_v<std::remove_pointer_t<A>, DeviceUuid>)
    return std::is_same_v<std::remove_pointer_t<B>, CUuuid> && sizeof(DeviceUuid) == sizeof(CUuuid);
  else if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B>)
    return std::is_pointer_v<A> && std::is_pointer_v<B>;
  else
    return (std::is_integral_v<A> || std::is_enum_v<A>)&&(std::is_integral_v<B> || std::is_enum_v<B>)&&sizeof(A) ==
           sizeof(B);
}

template <class... Ours, class... Theirs>
constexpr bool is_alike_function(int (*)(Ours...), CUresult (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs))
    return (is_alike<Ours, Theirs>() && ...);
  else
    return false;
}

// NOLINTBEGIN(bugprone-macro-parentheses): a member's name
#define DRIVER_FUNCTION(member, name, version, parameters)                                     \
  static_assert(is_alike_function(decltype(Api::member){}, PFN_##name##_v##version{}), #name); \
  static_assert(version <= CUDA_VERSION);
// NOLINTEND(bugprone-macro-parentheses)
#define DRIVER_OPTION DRIVER_FUNCTION
#include "cuda/driver_functions.inc"
#undef DRIVER_OPTION
#undef DRIVER_FUNCTION

static_assert(sizeof(Address) == sizeof(CUdeviceptr) && sizeof(Ordinal) == sizeof(CUdevice));
static_assert(sizeof(Location) == sizeof(CUmemLocation) && offsetof(Location, id) == offsetof(CUmemLocation, id));
static_assert(sizeof(AllocationKind) == sizeof(CUmemAllocationProp) &&
              offsetof(AllocationKind, handle_types) == offsetof(CUmemAllocationProp, requestedHandleTypes) &&
              offsetof(AllocationKind, location) == offsetof(CUmemAllocationProp, location) &&
              offsetof(AllocationKind, win32) == offsetof(CUmemAllocationProp, win32HandleMetaData) &&
              offsetof(AllocationKind, flags) == offsetof(CUmemAllocationProp, allocFlags));
static_assert(sizeof(AccessOf) == sizeof(CUmemAccessDesc) &&
              offsetof(AccessOf, flags) == offsetof(CUmemAccessDesc, flags));
static_assert(sizeof(Allocated) == sizeof(CUmemGenericAllocationHandle));
static_assert(std::is_same_v<Pool, CUmemoryPool>);
static_assert(std::is_same_v<Stream, CUstream> && std::is_same_v<Event, CUevent> && std::is_same_v<Context, CUcontext>);
static_assert(std::is_same_v<Function, CUfunction> && std::is_same_v<Kernel, CUkernel> &&
              std::is_same_v<Library, CUlibrary>);
static_assert(std::is_same_v<Graph, CUgraph> && std::is_same_v<GraphNode, CUgraphNode> &&
              std::is_same_v<GraphExec, CUgraphExec> && std::is_same_v<UserObject, CUuserObject>);

TEST(CudaHeader, NumbersAreCudas) {
  const auto same = [](auto ours, auto theirs) { EXPECT_EQ(static_cast<long>(ours), static_cast<long>(theirs)); };
  same(status::success, CUDA_SUCCESS);
  same(status::invalid_value, CUDA_ERROR_INVALID_VALUE);
  same(status::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
  same(status::not_initialized, CUDA_ERROR_NOT_INITIALIZED);
  same(status::deinitialized, CUDA_ERROR_DEINITIALIZED);
  same(status::no_device, CUDA_ERROR_NO_DEVICE);
  same(status::invalid_device, CUDA_ERROR_INVALID_DEVICE);
  same(status::invalid_context, CUDA_ERROR_INVALID_CONTEXT);
  same(status::already_mapped, CUDA_ERROR_ALREADY_MAPPED);
  same(status::no_binary_for_gpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
  same(status::ecc_uncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
  same(status::nvlink_uncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE);
  same(status::invalid_handle, CUDA_ERROR_INVALID_HANDLE);
  same(status::not_found, CUDA_ERROR_NOT_FOUND);
  same(status::not_ready, CUDA_ERROR_NOT_READY);
  same(status::illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS);
  same(status::launch_timeout, CUDA_ERROR_LAUNCH_TIMEOUT);
  same(status::peer_access_already_enabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  same(status::context_is_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  same(status::assert_failed, CUDA_ERROR_ASSERT);
  same(status::hardware_stack_error, CUDA_ERROR_HARDWARE_STACK_ERROR);
  same(status::launch_failed, CUDA_ERROR_LAUNCH_FAILED);
  same(status::cooperative_launch_too_large, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  same(status::not_permitted, CUDA_ERROR_NOT_PERMITTED);
  same(status::not_supported, CUDA_ERROR_NOT_SUPPORTED);
  same(status::stream_capture_unsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  same(status::stream_capture_invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  same(status::stream_capture_merge, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  same(status::stream_capture_implicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  same(attribute::multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  same(attribute::compute_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  same(attribute::compute_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  same(attribute::cooperative_launch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
  same(attribute::virtual_memory, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
  same(attribute::descriptors_of_memory, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
  same(attribute::stream_memory_operations, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
  same(pointer_attribute::memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
  same(pointer_attribute::buffer_id, CU_POINTER_ATTRIBUTE_BUFFER_ID);
  same(pointer_attribute::is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED);
  same(pointer_attribute::device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
  same(pointer_attribute::ipc_capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE);
  same(pointer_attribute::pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
  same(AllocationKind{}.type, CU_MEM_ALLOCATION_TYPE_PINNED);
  same(handle_type_descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  same(AllocationKind{}.handle_types, handle_type_descriptor);
  same(granularity_minimum, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  same(location_device, CU_MEM_LOCATION_TYPE_DEVICE);
  same(access_read_write, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  same(memory_type_host, CU_MEMORYTYPE_HOST);
  same(memory_type_device, CU_MEMORYTYPE_DEVICE);
  same(stream_non_blocking, CU_STREAM_NON_BLOCKING);
  same(event_without_timing, CU_EVENT_DISABLE_TIMING);
  same(host_memory_portable, CU_MEMHOSTALLOC_PORTABLE);
  same(host_memory_mapped, CU_MEMHOSTALLOC_DEVICEMAP);
  same(host_register_portable, CU_MEMHOSTREGISTER_PORTABLE);
  same(host_register_mapped, CU_MEMHOSTREGISTER_DEVICEMAP);
  same(wait_value_reached, CU_STREAM_WAIT_VALUE_GEQ);
  same(write_value_ordered, CU_STREAM_WRITE_VALUE_DEFAULT);
  same(ipc_lazy_peer_access, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  same(managed_global, CU_MEM_ATTACH_GLOBAL);
  same(user_object_unsynchronized, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  same(graph_takes_reference, CU_GRAPH_USER_OBJECT_MOVE);
  same(capture_none, CU_STREAM_CAPTURE_STATUS_NONE);
  same(capture_active, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  same(capture_invalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  same(capture_mode_global, CU_STREAM_CAPTURE_MODE_GLOBAL);
  same(capture_mode_relaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
}

}  // namespace
}  // namespace tutti::cuda
