#include "cuda/launch_sequence.h"

namespace tutti::cuda {
namespace {

/// Objects that a captured graph keeps alive.
struct Kept {
  std::shared_ptr<DeferredReleases> deferred;
  std::vector<std::shared_ptr<const void>> all;
};

/// Called by the driver; must not call the driver.
void defer_release(void* kept) {
  std::shared_ptr<Kept> owned(static_cast<Kept*>(kept));
  const auto deferred = owned->deferred;
  deferred->defer_release(std::move(owned));
}

}  // namespace

Result<Capture> Capture::of(const Gpu& gpu, std::span<const Stream> streams) {
  Capture first;
  for (auto* const stream : streams) {
    int state = capture_none;
    Capture one;
    const Status asked = gpu.api().capture_info(stream, &state, &one.id, &one.graph, nullptr, nullptr);
    TUTTI_TRY(gpu.check(asked, "cuStreamGetCaptureInfo"));
    if (state == capture_none) one = {};
    if (state == capture_invalidated)
      return Error{.code = Code::invalid_usage,
                   .what = "the capture of a stream failed before this call: end that capture, and begin a new one"};
    if (stream == streams.front()) {
      first = one;
    } else if ((one.graph == nullptr) != (first.graph == nullptr) || one.id != first.id) {
      return Error{.code = Code::invalid_usage,
                   .what =
                       "the streams of a call must be captured together or not at all, also those of ranks that share "
                       "a GPU: fork their streams from one capture, and put their calls into one group"};
    }
  }
  return first;
}

Result<void> Capture::retain(const Gpu& gpu, std::shared_ptr<DeferredReleases> deferred,
                             std::vector<std::shared_ptr<const void>> what) const {
  auto* const kept = new Kept;  // owned by the driver once the user object is created
  kept->deferred = std::move(deferred);
  kept->all = std::move(what);
  const Api& api = gpu.api();
  UserObject object = nullptr;
  if (auto made = gpu.check(api.user_object_create(&object, kept, defer_release, 1, user_object_unsynchronized),
                            "cuUserObjectCreate");
      !made) {
    delete kept;
    return made;
  }
  auto retained = gpu.check(api.graph_retain(graph, object, 1, graph_takes_reference), "cuGraphRetainUserObject");
  if (!retained) (void)api.user_object_release(object, 1);
  return retained;
}

Result<LaunchSequence> LaunchSequence::make(const SharedGpu& gpu, std::size_t streams,
                                            std::shared_ptr<LaunchOrder> order) {
  LaunchSequence made;
  made.gpu_ = gpu;
  made.order_ = std::move(order);
  made.ready_.resize(streams);
  for (OwnEvent& one : made.ready_) one = TUTTI_TRY(OwnEvent::create(gpu));
  for (OwnEvent* const one : {&made.launched_.ended, &made.captured_.ended}) *one = TUTTI_TRY(OwnEvent::create(gpu));
  return made;
}

Result<std::unique_lock<std::mutex>> LaunchSequence::enter(std::span<const Stream> streams, const Capture& capture) {
  auto* const first = streams.front();
  std::unique_lock<std::mutex> turn;
  if (LaunchOrder* const among = order(capture)) {
    turn = std::unique_lock(among->mutex);
    TUTTI_TRY(gpu_->follow(first, among->last.get()));
  }
  Launched& before = last(capture);
  // The id must not be queried during a capture. There the handle serves: streams outlive the capture.
  auto stream = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(first));
  if (capture.id == 0) TUTTI_TRY(gpu_->check(gpu_->api().stream_id(first, &stream), "cuStreamGetId"));
  if (before.any && before.stream != stream && before.capture == capture.id)
    TUTTI_TRY(gpu_->follow(first, before.ended.get()));
  before.stream = stream;
  before.capture = capture.id;
  for (std::size_t i = 1; i < streams.size(); ++i) {
    if (i >= ready_.size()) ready_.push_back(TUTTI_TRY(OwnEvent::create(gpu_)));
    TUTTI_TRY(gpu_->record(ready_[i].get(), streams[i]));
    TUTTI_TRY(gpu_->follow(first, ready_[i].get()));
  }
  return turn;
}

Result<void> LaunchSequence::leave(std::span<const Stream> streams, const Capture& capture) {
  Result<void> told;
  if (LaunchOrder* const among = order(capture)) told = gpu_->record(among->last.get(), streams.front());
  Launched& left = last(capture);
  TUTTI_TRY(gpu_->record(left.ended.get(), streams.front()));
  left.any = true;
  for (auto* const stream : streams.subspan(1)) TUTTI_TRY(gpu_->follow(stream, left.ended.get()));
  return told;
}

}  // namespace tutti::cuda
