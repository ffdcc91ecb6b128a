// The fake driver's root: devices, contexts, failures that tests ask for, and the lookup of functions.
#include "support/fake_cuda_state.h"

namespace tutti::testing::fake {

State& state() {
  static auto* const made = new State;  // threads of streams may outlive everything else
  return *made;
}

ThreadState& thread_state() {
  thread_local ThreadState mine;
  return mine;
}

CUctx_st* current() {
  const auto& stack = thread_state().contexts;
  return stack.empty() ? nullptr : stack.back();
}

std::vector<std::unique_ptr<CUctx_st>> State::one_context() {
  std::vector<std::unique_ptr<CUctx_st>> contexts;
  contexts.push_back(std::make_unique<CUctx_st>());
  return contexts;
}

void State::set_devices(int count) {
  const std::lock_guard guard(mutex);
  contexts.clear();
  for (int device = 0; device < count; ++device) {
    contexts.push_back(std::make_unique<CUctx_st>());
    contexts.back()->device = device;
  }
}

void State::set_first_device(int first) {
  const std::lock_guard guard(mutex);
  first_device = first;
}

void State::set_mps(bool on) {
  const std::lock_guard guard(mutex);
  mps = on;
}

void State::set_blocks_max(unsigned blocks) {
  const std::lock_guard guard(mutex);
  blocks_max = blocks;
}

void State::occupy(unsigned blocks) {
  const std::lock_guard guard(mutex);
  occupied = blocks;
  changed.notify_all();
}

void State::set_one_queue(bool one) {
  const std::lock_guard guard(mutex);
  one_queue = one;
}

void State::set_shareable(bool can) {
  const std::lock_guard guard(mutex);
  shareable = can;
}

void State::set_memory_operations(bool can) {
  const std::lock_guard guard(mutex);
  memory_operations = can;
}

void State::set_queue_max(std::size_t most) {
  const std::lock_guard guard(mutex);
  queue_max = most;
}

bool State::is_locked() {
  const std::lock_guard guard(mutex);
  return lock_holder != std::thread::id();
}

void State::set_kernel(FakeKernel run) {
  const std::lock_guard guard(mutex);
  kernel = std::move(run);
}

void State::fail(const std::string& function, Status status, int after, bool for_ever) {
  const std::lock_guard guard(mutex);
  injected_[function] = {.status = status, .after = after, .for_ever = for_ever};
}

void State::forgive() {
  const std::lock_guard guard(mutex);
  injected_.clear();
}

int State::calls(const std::string& function) {
  const std::lock_guard guard(mutex);
  return calls_[function];
}

void State::break_device(int device, Status status) {
  const std::lock_guard guard(mutex);
  contexts[static_cast<std::size_t>(device)]->sticky = status;
  ++lost;
}

void State::hold() {
  const std::lock_guard guard(mutex);
  held = true;
}

void State::release() {
  const std::lock_guard guard(mutex);
  held = false;
  changed.notify_all();
}

FakeCuda::Live State::live() {
  const std::lock_guard guard(mutex);
  Live live{.streams = static_cast<int>(streams.size()),
            .events = static_cast<int>(events.size()),
            .libraries = static_cast<int>(libraries.size()),
            .user_objects = user_objects,
            .misuse = misuse};
  for (const auto& [at, range] : memory) {
    if (range.registered) {
      ++live.registrations;
      continue;
    }
    if (range.opened > 0) {
      ++live.mapped;
      continue;
    }
    ++live.allocations;
    if (range.device >= 0) live.device_bytes += range.bytes;
  }
  live.allocations += static_cast<int>(created.size() + reserved.size());
  for (const auto& context : contexts) live.contexts_retained += context->retained;
  return live;
}

/// As of a GPU that is lost: nothing of what was queued touches memory any more, which its owners now free.
void State::let_nothing_run(std::unique_lock<std::mutex>& lock) {
  ++lost;
  for (const auto* const some : {&streams, &of_threads})
    for (CUstream_st* stream : *some)
      for (Op& op : stream->queue) op.work = nullptr;
  for (const auto& [context, stream] : legacy)
    for (Op& op : stream->queue) op.work = nullptr;
  changed.wait_for(lock, std::chrono::seconds(30), [this] { return running == 0; });
}

Status State::enter(const char* function, std::unique_lock<std::mutex>& lock) {
  lock = std::unique_lock(mutex);
  changed.wait(lock, [this] { return lock_holder == std::thread::id(); });
  ++calls_[function];
  if (thread_state().in_callback) {
    ++misuse;
    return code::not_permitted;
  }
  if (const auto found = injected_.find(function); found != injected_.end() && found->second.after-- <= 0) {
    const Status status = found->second.status;
    if (found->second.for_ever)
      found->second.after = 0;
    else
      injected_.erase(found);
    if (status == code::launch_failed) let_nothing_run(lock);
    return status;
  }
  return 0;
}

namespace {

Status init(unsigned) {
  FAKE_ENTER("cuInit");
  fake.initialised = true;
  return 0;
}

Status driver_version(int* version) {
  *version = 12080;
  return 0;
}

Status error_name(Status status, const char** text) {
  switch (status) {
    case code::invalid_value: *text = "CUDA_ERROR_INVALID_VALUE"; break;
    case code::out_of_memory: *text = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case code::no_device: *text = "CUDA_ERROR_NO_DEVICE"; break;
    case code::illegal_address: *text = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    case code::launch_failed: *text = "CUDA_ERROR_LAUNCH_FAILED"; break;
    case code::cooperative_launch_too_large: *text = "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"; break;
    default: *text = "CUDA_ERROR_UNKNOWN"; break;
  }
  return 0;
}

Status error_string(Status, const char** text) {
  *text = "as the test asked for";
  return 0;
}

Status device_count(int* count) {
  FAKE_ENTER("cuDeviceGetCount");
  if (!fake.initialised) return code::not_initialized;
  *count = static_cast<int>(fake.contexts.size());
  return 0;
}

Status device_attribute(int* value, int which, int device) {
  FAKE_ENTER("cuDeviceGetAttribute");
  if (device < 0 || device >= static_cast<int>(fake.contexts.size())) return code::invalid_device;
  switch (which) {
    case cuda::attribute::multiprocessors: *value = static_cast<int>(fake.blocks_max); break;
    case cuda::attribute::compute_major: *value = 9; break;
    case cuda::attribute::compute_minor: *value = 0; break;
    case cuda::attribute::cooperative_launch: *value = 1; break;
    case cuda::attribute::stream_memory_operations: *value = fake.memory_operations ? 1 : 0; break;
    case cuda::attribute::virtual_memory:
    case cuda::attribute::descriptors_of_memory: *value = fake.shareable ? 1 : 0; break;
    case cuda::attribute::mps_enabled: *value = fake.mps ? 1 : 0; break;
    case cuda::attribute::pci_bus: *value = 0x10 + fake.first_device + device; break;
    default: *value = 0;
  }
  return 0;
}

Status device_uuid(cuda::DeviceUuid* uuid, int device) {
  FAKE_ENTER("cuDeviceGetUuid");
  if (device < 0 || device >= static_cast<int>(fake.contexts.size())) return code::invalid_device;
  *uuid = {};
  uuid->bytes[0] = static_cast<unsigned char>(1 + fake.first_device + device);
  return 0;
}

Status primary_retain(CUctx_st** context, int device) {
  FAKE_ENTER("cuDevicePrimaryCtxRetain");
  if (device < 0 || device >= static_cast<int>(fake.contexts.size())) return code::invalid_device;
  *context = fake.contexts[static_cast<std::size_t>(device)].get();
  ++(*context)->retained;
  return (*context)->sticky;
}

Status primary_release(int device) {
  FAKE_ENTER("cuDevicePrimaryCtxRelease");
  if (--fake.contexts[static_cast<std::size_t>(device)]->retained < 0) ++fake.misuse;
  return 0;
}

Status context_current(CUctx_st** context) {
  FAKE_ENTER("cuCtxGetCurrent");
  *context = current();
  return 0;
}

Status context_push(CUctx_st* context) {
  FAKE_ENTER("cuCtxPushCurrent");
  if (context == nullptr) return code::invalid_context;
  thread_state().contexts.push_back(context);
  return 0;
}

Status context_set(CUctx_st* context) {
  FAKE_ENTER("cuCtxSetCurrent");
  auto& stack = thread_state().contexts;
  if (!stack.empty()) stack.pop_back();
  if (context != nullptr) stack.push_back(context);
  return 0;
}

Status context_pop(CUctx_st** context) {
  FAKE_ENTER("cuCtxPopCurrent");
  auto& stack = thread_state().contexts;
  if (stack.empty()) return code::invalid_context;
  *context = stack.back();
  stack.pop_back();
  return 0;
}

Status context_device(int* device) {
  FAKE_ENTER("cuCtxGetDevice");
  if (current() == nullptr) return code::invalid_context;
  *device = current()->device;
  return 0;
}

Status can_access_peer(int* can, int, int) {
  *can = 1;
  return 0;
}

Status enable_peer_access(CUctx_st*, unsigned) {
  FAKE_ENTER("cuCtxEnablePeerAccess");
  return 0;
}

template <class Type>
void* erased(Type* function) {
  return reinterpret_cast<void*>(function);
}

std::map<std::string, void*> all_functions() {
  std::map<std::string, void*> all{{"cuInit", erased(init)},
                                   {"cuDriverGetVersion", erased(driver_version)},
                                   {"cuGetErrorName", erased(error_name)},
                                   {"cuGetErrorString", erased(error_string)},
                                   {"cuDeviceGetCount", erased(device_count)},
                                   {"cuDeviceGetAttribute", erased(device_attribute)},
                                   {"cuDeviceGetUuid", erased(device_uuid)},
                                   {"cuDevicePrimaryCtxRetain", erased(primary_retain)},
                                   {"cuDevicePrimaryCtxRelease", erased(primary_release)},
                                   {"cuCtxGetCurrent", erased(context_current)},
                                   {"cuCtxSetCurrent", erased(context_set)},
                                   {"cuCtxPushCurrent", erased(context_push)},
                                   {"cuCtxPopCurrent", erased(context_pop)},
                                   {"cuCtxGetDevice", erased(context_device)},
                                   {"cuDeviceCanAccessPeer", erased(can_access_peer)},
                                   {"cuCtxEnablePeerAccess", erased(enable_peer_access)}};
  for (const auto& part :
       {memory_functions(), virtual_memory_functions(), access_functions(), stream_functions(), kernel_functions()})
    for (const auto& [name, function] : part) all[name] = function;
  return all;
}

}  // namespace
}  // namespace tutti::testing::fake

extern "C" {

__attribute__((visibility("default"))) tutti::testing::FakeCuda* tutti_fake_cuda() {
  return &tutti::testing::fake::state();
}

__attribute__((visibility("default"))) int cuGetProcAddress_v2(const char* name, void** function, int, std::uint64_t,
                                                               int* found) {
  static const auto all = tutti::testing::fake::all_functions();
  const auto known = all.find(name);
  *function = known == all.end() ? nullptr : known->second;
  if (found != nullptr) *found = known == all.end() ? 1 : 0;
  return known == all.end() ? tutti::cuda::status::not_found : 0;
}
}
