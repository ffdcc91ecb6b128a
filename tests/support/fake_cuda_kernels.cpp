// The fake driver's kernels, graphs and user objects.
#include <algorithm>

#include "kernels/entries.h"
#include "support/fake_cuda_state.h"
#include "support/plan_kernel.h"

namespace tutti::testing::fake {

/// Not under the lock: the destructor is code of others, which must not call the driver.
UserReference::~UserReference() {
  {
    const std::lock_guard guard(state().mutex);
    if (--object->references > 0) return;
    --state().user_objects;
  }
  thread_state().in_callback = true;
  object->destroy(object->what);
  thread_state().in_callback = false;
  delete object;
}

namespace {

Status library_load(CUlib_st** library, const void* code_at, int*, void**, unsigned, int*, void**, unsigned) {
  FAKE_ENTER("cuLibraryLoadData");
  if (code_at == nullptr) return code::invalid_value;
  *library = new CUlib_st;
  fake.libraries.insert(*library);
  return 0;
}

Status library_unload(CUlib_st* library) {
  FAKE_ENTER("cuLibraryUnload");
  if (fake.libraries.erase(library) == 0) {
    ++fake.misuse;
    return code::invalid_handle;
  }
  delete library;
  return 0;
}

Status library_kernel(CUkern_st** kernel, CUlib_st* library, const char* name) {
  FAKE_ENTER("cuLibraryGetKernel");
  if (fake.libraries.count(library) == 0) return code::invalid_handle;
  auto& made = library->kernels[name];
  if (!made) made = std::make_unique<CUkern_st>(CUkern_st{name});
  *kernel = made.get();
  return 0;
}

Status kernel_function(CUfunc_st** function, CUkern_st* kernel) {
  FAKE_ENTER_CONTEXT("cuKernelGetFunction");
  if (const Status stopped = fake.prohibited(); stopped != 0) return stopped;
  *function = reinterpret_cast<CUfunc_st*>(kernel);
  return 0;
}

Status function_load(CUfunc_st*) {
  FAKE_ENTER_CONTEXT("cuFuncLoad");
  return 0;
}

Status blocks_per_multiprocessor(int* blocks, CUfunc_st*, int, std::size_t) {
  FAKE_ENTER_CONTEXT("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  *blocks = 1;
  return 0;
}

/// Whether a kernel on `device` may access all buffers that it is told of. Aborted ones access none.
bool may_run(int device, const device::Call& call) {
  if (std::atomic_ref<std::uint32_t>(*call.abort).load(std::memory_order_acquire) != 0) return true;
  const std::lock_guard guard(state().mutex);
  const auto may_access = [device](const void* at) {
    return state().may_access(device, reinterpret_cast<std::uintptr_t>(at));
  };
  if (call.message_count != 0) {
    const device::Message* const messages = call.messages != nullptr ? call.messages : call.few_messages;
    return std::all_of(messages, messages + call.message_count,
                       [&](const device::Message& message) { return may_access(message.data); });
  }
  const device::PeerBuffers* const buffers = call.table != nullptr ? call.table : call.buffers;
  for (std::uint32_t rank = 0; rank < call.ranks; ++rank)
    for (const std::byte* const at : {buffers[rank].input, static_cast<const std::byte*>(buffers[rank].output)})
      if (!may_access(at)) return false;
  return true;
}

/// Blocks of a GPU that a kernel occupies while it runs; waits until there is room for them.
class Room {
 public:
  Room(int device, unsigned blocks) : device_(device), blocks_(blocks) {
    State& fake = state();
    std::unique_lock lock(fake.mutex);
    fake.changed.wait(
        lock, [&] { return fake.occupied + fake.resident[device_] + blocks_ <= fake.blocks_max || blocks_ == 0; });
    fake.resident[device_] += blocks_;
  }
  ~Room() {
    State& fake = state();
    const std::lock_guard lock(fake.mutex);
    fake.resident[device_] -= blocks_;
    fake.changed.notify_all();
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

 private:
  int device_;
  unsigned blocks_;
};

/// Blocks that wait for others must all be there; of others it is enough that one runs after the other, in the gaps.
unsigned room_for(const std::string& name, const device::Call& call, unsigned blocks, bool cooperative) {
  const bool ours = name.starts_with("tutti_");
  return cooperative || (ours && call.synchronises != 0) ? blocks : 0;
}

/// Without this a word that other GPUs poll would have the order of this GPU alone. Passes have no such words.
void check_scope(const device::Call& call) {
  if (call.local_ranks == call.ranks || call.checks_abort != 0 || call.synchronises != 0) return;
  const std::lock_guard guard(state().mutex);
  ++state().misuse;
}

/// Every kernel of ours takes a device::Call by value.
Status submit_kernel(CUfunc_st* function, unsigned blocks, unsigned threads, CUstream_st* stream, void** parameters,
                     bool cooperative) {
  State& fake = state();
  const std::string name = reinterpret_cast<CUkern_st*>(function)->name;
  const auto* const from = static_cast<const std::byte*>(parameters[0]);
  const auto argument = std::make_shared<const std::vector<std::byte>>(from, from + sizeof(device::Call));
  return fake.submit(stream, [=, device = current()->device]() -> Status {
    device::Call call;
    std::memcpy(&call, argument->data(), sizeof call);
    const Room room(device, room_for(name, call, blocks, cooperative));
    FakeKernel run;
    {
      const std::lock_guard guard(state().mutex);
      run = state().kernel;
    }
    if (run && !name.starts_with("tutti_"))
      return run(name, argument->data(), blocks, threads);  // its argument is its own
    check_scope(call);
    if (!may_run(device, call)) return code::illegal_address;
    if (run) return run(name, argument->data(), blocks, threads);
    (void)run_plans(call);
    return 0;
  });
}

Status launch_cooperative(CUfunc_st* function, unsigned grid_x, unsigned, unsigned, unsigned block_x, unsigned,
                          unsigned, unsigned, CUstream_st* stream, void** parameters) {
  FAKE_ENTER_CONTEXT("cuLaunchCooperativeKernel");
  if (grid_x == 0 || grid_x > fake.blocks_max) return code::cooperative_launch_too_large;
  return submit_kernel(function, grid_x, block_x, stream, parameters, /*cooperative=*/true);
}

Status launch(CUfunc_st* function, unsigned grid_x, unsigned, unsigned, unsigned block_x, unsigned, unsigned, unsigned,
              CUstream_st* stream, void** parameters, void**) {
  FAKE_ENTER_CONTEXT("cuLaunchKernel");
  if (auto* const hook = fake.launch_hook.load()) hook();
  if (grid_x == 0) return code::invalid_value;
  return submit_kernel(function, grid_x, block_x, stream, parameters, /*cooperative=*/false);
}

Status user_object_create(CUuserObject_st** object, void* what, cuda::HostFunction destroy, unsigned references,
                          unsigned flags) {
  FAKE_ENTER("cuUserObjectCreate");
  if (flags != cuda::user_object_unsynchronized) return code::invalid_value;
  *object = new CUuserObject_st{.references = static_cast<int>(references), .what = what, .destroy = destroy};
  ++fake.user_objects;
  return 0;
}

Status user_object_release(CUuserObject_st* object, unsigned count) {
  std::vector<std::shared_ptr<UserReference>> dropped;  // after the lock
  FAKE_ENTER("cuUserObjectRelease");
  for (unsigned i = 0; i < count; ++i) dropped.push_back(std::make_shared<UserReference>(object));
  lock.unlock();
  return 0;
}

Status graph_retain(CUgraph_st* graph, CUuserObject_st* object, unsigned count, unsigned flags) {
  FAKE_ENTER("cuGraphRetainUserObject");
  if (flags != cuda::graph_takes_reference) object->references += static_cast<int>(count);
  for (unsigned i = 0; i < count; ++i) graph->kept.push_back(std::make_shared<UserReference>(object));
  return 0;
}

Status graph_instantiate(CUgraphExec_st** exec, CUgraph_st* graph, unsigned long long) {
  FAKE_ENTER("cuGraphInstantiateWithFlags");
  *exec = new CUgraphExec_st{std::make_shared<const CUgraph_st>(*graph)};
  return 0;
}

Status graph_launch(CUgraphExec_st* exec, CUstream_st* stream) {
  FAKE_ENTER("cuGraphLaunch");
  return fake.submit(stream, [graph = exec->graph]() -> Status {
    for (const Node& node : graph->nodes)
      if (const Status status = node.work(); status != 0) return status;
    return 0;
  });
}

Status graph_destroy(CUgraph_st* graph) {
  { FAKE_ENTER("cuGraphDestroy"); }
  delete graph;
  return 0;
}

Status graph_exec_destroy(CUgraphExec_st* exec) {
  { FAKE_ENTER("cuGraphExecDestroy"); }
  delete exec;
  return 0;
}

template <class Type>
void* erased(Type* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

std::vector<Named> kernel_functions() {
  return {{"cuLibraryLoadData", erased(library_load)},
          {"cuLibraryUnload", erased(library_unload)},
          {"cuLibraryGetKernel", erased(library_kernel)},
          {"cuKernelGetFunction", erased(kernel_function)},
          {"cuFuncLoad", erased(function_load)},
          {"cuOccupancyMaxActiveBlocksPerMultiprocessor", erased(blocks_per_multiprocessor)},
          {"cuLaunchCooperativeKernel", erased(launch_cooperative)},
          {"cuLaunchKernel", erased(launch)},
          {"cuUserObjectCreate", erased(user_object_create)},
          {"cuUserObjectRelease", erased(user_object_release)},
          {"cuGraphRetainUserObject", erased(graph_retain)},
          {"cuGraphInstantiateWithFlags", erased(graph_instantiate)},
          {"cuGraphLaunch", erased(graph_launch)},
          {"cuGraphDestroy", erased(graph_destroy)},
          {"cuGraphExecDestroy", erased(graph_exec_destroy)}};
}

}  // namespace tutti::testing::fake
