// The fake driver's streams and events: each stream has a thread that does its work in order; captured work becomes
// nodes of a graph instead.
#include <algorithm>

#include "support/fake_cuda_state.h"

namespace tutti::testing::fake {

namespace {

/// Nodes that `tail` comes after, itself included.
std::set<int> ancestors(const CUgraph_st& graph, const std::set<int>& tail) {
  std::set<int> all;
  std::vector<int> open(tail.begin(), tail.end());
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    if (!all.insert(node).second) continue;
    for (const int before : graph.nodes[static_cast<std::size_t>(node)].after) open.push_back(before);
  }
  return all;
}

}  // namespace

CUstream_st* State::resolve(CUstream_st* stream) {
  constexpr std::uintptr_t special = 2;
  if (reinterpret_cast<std::uintptr_t>(stream) > special) return stream;
  CUctx_st* const context = current();
  if (context == nullptr) return nullptr;
  if (reinterpret_cast<std::uintptr_t>(stream) == cuda::stream_per_thread) {
    auto& own = thread_state().streams[context];
    if (own == nullptr) {
      own = new CUstream_st;
      own->context = context;
      of_threads.insert(own);
    }
    return own;
  }
  auto& made = legacy[context];
  if (!made) {
    made = std::make_unique<CUstream_st>();
    made->context = context;
    made->legacy = true;
  }
  return made.get();
}

Status State::prohibited() {
  std::erase_if(captures, [](const auto& capture) { return capture.expired(); });
  Status status = 0;
  for (const auto& open : captures) {
    const auto capture = open.lock();
    if (capture->mode != cuda::capture_mode_global || thread_state().capture_mode == cuda::capture_mode_relaxed)
      continue;
    capture->broken = true;
    status = code::stream_capture_unsupported;
  }
  return status;
}

Status State::submit(CUstream_st* given, Work work) {
  CUstream_st* const stream = resolve(given);
  if (stream == nullptr) return code::invalid_context;
  if (!known(stream)) {
    ++misuse;
    return code::invalid_handle;
  }
  if (stream->capture) {
    if (stream->capture->broken) return code::stream_capture_invalidated;
    auto& nodes = stream->capture->graph->nodes;
    nodes.push_back({.work = std::move(work), .after = stream->tail});
    stream->tail = {static_cast<int>(nodes.size()) - 1};
    return 0;
  }
  if (queue_max > 0 && stream->queue.size() >= queue_max)
    wait_locked([this, stream] { return stream->queue.size() < queue_max; });
  Op op{.work = std::move(work)};
  // What the legacy stream and blocking ones wait for.
  if (stream->legacy) {
    for (const auto* const some : {&streams, &of_threads})
      for (auto* other : *some)
        if (other->blocking && other->context == stream->context && other->last) op.after.push_back(other->last);
  } else if (stream->blocking) {
    if (const auto of = legacy.find(stream->context); of != legacy.end() && of->second->last)
      op.after.push_back(of->second->last);
  }
  if (one_queue && newest) op.after.push_back(newest);
  newest = op.done;
  stream->last = op.done;
  stream->queue.push_back(std::move(op));
  if (!stream->worker.joinable()) stream->worker = std::thread([this, stream] { this->work(stream); });
  changed.notify_all();
  return 0;
}

void State::work(CUstream_st* stream) {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [this, stream] {
      if (stream->destroyed && stream->queue.empty()) return true;
      if (held || stream->queue.empty()) return false;
      return std::ranges::all_of(stream->queue.front().after, [](const DoneMark& mark) { return mark->ended; });
    });
    if (stream->queue.empty()) break;
    Op op = std::move(stream->queue.front());
    stream->queue.pop_front();
    const bool works = op.work != nullptr && stream->context->sticky == 0;
    ++running;
    lock.unlock();
    const Status status = works ? op.work() : 0;
    op.work = nullptr;  // what it held goes before anybody hears of its end
    lock.lock();
    --running;
    if (status != 0) stream->context->sticky = status;
    op.done->ended = true;
    changed.notify_all();
  }
  stream->worker.detach();
  delete stream;
}

void State::wait_locked(const std::function<bool()>& until) {
  std::unique_lock held_already(mutex, std::adopt_lock);
  lock_holder = std::this_thread::get_id();
  changed.wait(held_already, until);
  lock_holder = {};
  changed.notify_all();
  (void)held_already.release();
}

void State::wait_for_all() {
  if (queue_max == 0) return;
  wait_locked([this] {
    return std::ranges::all_of(streams, [](const CUstream_st* stream) { return !stream->last || stream->last->ended; });
  });
}

void State::wait_for(std::unique_lock<std::mutex>& lock, const DoneMark& mark) {
  if (mark == nullptr) return;
  changed.wait(lock, [&] { return mark->ended; });
}

namespace {

Status stream_create(CUstream_st** stream, unsigned flags) {
  FAKE_ENTER_CONTEXT("cuStreamCreate");
  if (const Status stopped = fake.prohibited(); stopped != 0) return stopped;
  *stream = new CUstream_st;
  (*stream)->context = context;
  (*stream)->blocking = (flags & cuda::stream_non_blocking) == 0;
  fake.streams.insert(*stream);
  return 0;
}

Status stream_destroy(CUstream_st* stream) {
  FAKE_ENTER("cuStreamDestroy");
  if (fake.streams.erase(stream) == 0) {
    ++fake.misuse;
    return code::invalid_handle;
  }
  stream->destroyed = true;
  if (!stream->worker.joinable()) {
    delete stream;
    return 0;
  }
  fake.changed.notify_all();
  return 0;
}

Status stream_synchronize(CUstream_st* given) {
  FAKE_ENTER("cuStreamSynchronize");
  auto* const stream = fake.resolve(given);
  if (stream == nullptr) return code::invalid_context;
  if (stream->capture) {
    stream->capture->broken = true;
    return code::stream_capture_unsupported;
  }
  if (const Status stopped = fake.prohibited(); stopped != 0) return stopped;
  const DoneMark last = stream->last;
  CUctx_st* const context = stream->context;
  fake.wait_for(lock, last);
  return context->sticky;
}

Status stream_id(CUstream_st* given, std::uint64_t* id) {
  FAKE_ENTER("cuStreamGetId");
  auto* const stream = fake.resolve(given);
  if (stream == nullptr) return code::invalid_context;
  if (!fake.known(stream)) return code::invalid_handle;
  if (stream->capture) return code::stream_capture_unsupported;
  if (stream->id == 0) stream->id = fake.next_stream++;
  *id = stream->id;
  return 0;
}

Status stream_context(CUstream_st* given, CUctx_st** context) {
  FAKE_ENTER("cuStreamGetCtx");
  auto* const stream = fake.resolve(given);
  if (stream == nullptr) return code::invalid_context;
  if (!fake.known(stream)) return code::invalid_handle;
  *context = stream->context;
  return 0;
}

Status stream_wait(CUstream_st* given, CUevent_st* event, unsigned) {
  FAKE_ENTER("cuStreamWaitEvent");
  auto* const stream = fake.resolve(given);
  if (stream == nullptr) return code::invalid_context;
  if (fake.events.count(event) == 0 || !fake.known(stream)) {
    ++fake.misuse;
    return code::invalid_handle;
  }
  if (event->capture && event->capture->graph != nullptr) {
    if (stream->capture && stream->capture != event->capture) {
      stream->capture->broken = event->capture->broken = true;
      return code::stream_capture_merge;
    }
    if (!stream->capture) stream->tail.clear();
    stream->capture = event->capture;
    stream->capture->streams.insert(stream);
    stream->tail.insert(event->tail.begin(), event->tail.end());
    return 0;
  }
  if (stream->capture) {  // an event from outside
    constexpr Status isolation = 905;
    if (!event->recorded) return 0;
    stream->capture->broken = true;
    return isolation;
  }
  if (!event->recorded) return 0;
  const DoneMark mark = event->recorded;
  const Status submitted = fake.submit(stream, nullptr);
  if (submitted == 0) stream->queue.back().after.push_back(mark);
  return submitted;
}

Status begin_capture(CUstream_st* stream, int mode) {
  FAKE_ENTER("cuStreamBeginCapture");
  if (!fake.streams.contains(stream) || stream->capture) return code::invalid_value;
  auto capture = std::make_shared<Capture>();
  capture->id = fake.next_capture++;
  capture->mode = mode;
  capture->origin = stream;
  capture->graph = new CUgraph_st;
  capture->streams.insert(stream);
  stream->capture = capture;
  stream->tail.clear();
  fake.captures.push_back(capture);
  return 0;
}

Status end_capture(CUstream_st* stream, CUgraph_st** graph) {
  FAKE_ENTER("cuStreamEndCapture");
  if (!fake.streams.contains(stream) || !stream->capture || stream->capture->origin != stream)
    return code::invalid_value;
  const auto capture = stream->capture;
  constexpr Status unjoined = 904;
  Status status = capture->broken ? code::stream_capture_invalidated : 0;
  const auto seen = ancestors(*capture->graph, stream->tail);
  for (auto* joined : capture->streams) {
    if (!std::ranges::includes(seen, joined->tail) && status == 0) status = unjoined;
    joined->capture.reset();
    joined->tail.clear();
  }
  capture->streams.clear();
  *graph = status == 0 ? capture->graph : nullptr;
  if (status != 0) delete capture->graph;
  capture->graph = nullptr;
  std::erase_if(fake.captures, [&](const auto& open) { return open.lock() == capture; });
  return status;
}

Status capture_info(CUstream_st* given, int* state, std::uint64_t* id, CUgraph_st** graph,
                    CUgraphNode_st* const** nodes, std::size_t* count) {
  FAKE_ENTER("cuStreamGetCaptureInfo");
  auto* const stream = fake.resolve(given);
  if (stream == nullptr) return code::invalid_context;
  *state = !stream->capture          ? cuda::capture_none
           : stream->capture->broken ? cuda::capture_invalidated
                                     : cuda::capture_active;
  if (stream->capture) {
    if (id != nullptr) *id = stream->capture->id;
    if (graph != nullptr) *graph = stream->capture->graph;
  }
  if (nodes != nullptr) *nodes = nullptr;
  if (count != nullptr) *count = 0;
  return 0;
}

Status exchange_capture_mode(int* mode) {
  FAKE_ENTER("cuThreadExchangeStreamCaptureMode");
  std::swap(*mode, thread_state().capture_mode);
  return 0;
}

std::atomic_ref<std::uint32_t> word(cuda::Address at) {
  return std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(at));  // NOLINT: an address
}

/// What a captured stream does with them is not asked for.
Status stream_write_value(CUstream_st* stream, cuda::Address at, std::uint32_t value, unsigned flags) {
  FAKE_ENTER_CONTEXT("cuStreamWriteValue32");
  if (flags != cuda::write_value_ordered || at % sizeof value != 0) return code::invalid_value;
  if (!fake.memory_operations) return code::not_supported;
  return fake.submit(stream, [=] {
    word(at).store(value, std::memory_order_release);
    return 0;
  });
}

Status stream_wait_value(CUstream_st* stream, cuda::Address at, std::uint32_t value, unsigned flags) {
  FAKE_ENTER_CONTEXT("cuStreamWaitValue32");
  if (flags != cuda::wait_value_reached || at % sizeof value != 0) return code::invalid_value;
  if (!fake.memory_operations) return code::not_supported;
  return fake.submit(stream, [=, lost = fake.lost.load()] {
    while (static_cast<std::int32_t>(word(at).load(std::memory_order_acquire) - value) < 0 && state().lost == lost)
      std::this_thread::yield();
    return 0;
  });
}

Status event_create(CUevent_st** event, unsigned) {
  FAKE_ENTER_CONTEXT("cuEventCreate");
  *event = new CUevent_st;
  fake.events.insert(*event);
  return 0;
}

Status event_destroy(CUevent_st* event) {
  FAKE_ENTER("cuEventDestroy");
  if (fake.events.erase(event) == 0) {
    ++fake.misuse;
    return code::invalid_handle;
  }
  delete event;
  return 0;
}

Status event_record(CUevent_st* event, CUstream_st* given) {
  FAKE_ENTER("cuEventRecord");
  auto* const stream = fake.resolve(given);
  if (stream == nullptr) return code::invalid_context;
  if (fake.events.count(event) == 0 || !fake.known(stream)) {
    ++fake.misuse;
    return code::invalid_handle;
  }
  if (stream->capture) {
    event->capture = stream->capture;
    event->tail = stream->tail;
    event->recorded.reset();
    return 0;
  }
  event->capture.reset();
  const Status submitted = fake.submit(stream, nullptr);
  if (submitted == 0) event->recorded = stream->last;
  return submitted;
}

Status event_query(CUevent_st* event) {
  FAKE_ENTER_CONTEXT("cuEventQuery");
  if (const Status stopped = fake.prohibited(); stopped != 0) return stopped;
  if (fake.events.count(event) == 0) {
    ++fake.misuse;
    return code::invalid_handle;
  }
  if (event->capture && event->capture->graph != nullptr) return code::stream_capture_unsupported;
  return event->recorded && !event->recorded->ended ? code::not_ready : 0;
}

template <class Type>
void* erased(Type* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

std::vector<Named> stream_functions() {
  return {{"cuStreamCreate", erased(stream_create)},
          {"cuStreamDestroy", erased(stream_destroy)},
          {"cuStreamSynchronize", erased(stream_synchronize)},
          {"cuStreamGetId", erased(stream_id)},
          {"cuStreamGetCtx", erased(stream_context)},
          {"cuStreamWaitEvent", erased(stream_wait)},
          {"cuStreamWriteValue32", erased(stream_write_value)},
          {"cuStreamWaitValue32", erased(stream_wait_value)},
          {"cuStreamBeginCapture", erased(begin_capture)},
          {"cuStreamEndCapture", erased(end_capture)},
          {"cuStreamGetCaptureInfo", erased(capture_info)},
          {"cuThreadExchangeStreamCaptureMode", erased(exchange_capture_mode)},
          {"cuEventCreate", erased(event_create)},
          {"cuEventDestroy", erased(event_destroy)},
          {"cuEventQuery", erased(event_query)},
          {"cuEventRecord", erased(event_record)}};
}

}  // namespace tutti::testing::fake
