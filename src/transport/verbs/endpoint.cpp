#include "transport/verbs/endpoint.h"

#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/descriptors.h"

namespace tutti::verbs {
namespace {

constexpr int batch = 16;  // completions taken at once

/// Of type 2, see MemoryWindow.
bool has_windows(const Port& port) {
  const OpenDevice& device = *port.device;
  constexpr unsigned windows = device_capability::windows_2a | device_capability::windows_2b;
  return !port.iwarp && (device.attributes.device_cap_flags & windows) != 0 && device.context->ops.alloc_mw != nullptr;
}

Error refused(const Endpoint& endpoint, std::size_t bytes, int reason) {
  Error error{.code = Code::system,
              .what = fmt::format("register {} bytes for {}", bytes, endpoint.port.text()),
              .sys_errno = reason};
  rlimit limit{};
  if (reason == ENOMEM && ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    error.what += fmt::format(
        ": this process may lock {} bytes of memory; raise the limit (ulimit -l unlimited, or LimitMEMLOCK=infinity of "
        "its service)",
        limit.rlim_cur);
  return error;
}

}  // namespace

Result<std::shared_ptr<Endpoint>> Endpoint::open(const Port& port, std::size_t sinks_max, std::size_t completions_max,
                                                 const UsableMemory& memory, bool windows, Owner owner) {
  std::shared_ptr<Endpoint> endpoint(new Endpoint(port, std::move(owner)));
  TUTTI_TRY(endpoint->create(sinks_max, completions_max));
  // With iWARP a write completes before the peer has its data, so memory that is sent must not be the caller's.
  if (memory.segments == nullptr || port.iwarp) return endpoint;
  endpoint->windows_ = windows && has_windows(port) && port.device->windows.passes(port);
  endpoint->registrations_.emplace(endpoint->library(), endpoint->pd_, memory,
                                   access_flag::local_write | (endpoint->windows_ ? access_flag::window_bind : 0));
  return endpoint;
}

Result<void> Endpoint::create(std::size_t sinks_max, std::size_t completions_max) {
  Context* const context = port.device->context;
  pd_ = library().ibv_alloc_pd(context);
  if (pd_ == nullptr) return port.failed("make a protection domain", errno);
  {
    const HeldStdio held;
    channel_ = library().ibv_create_comp_channel(context);
  }
  if (channel_ == nullptr) return port.failed("make a completion channel", errno);
  if (!stop_blocking(channel_->fd)) return port.failed("make a completion channel that does not block", errno);
  const auto most = static_cast<std::size_t>(std::max(port.device->attributes.max_cqe, 1));
  const std::size_t sinks = std::clamp<std::size_t>(most / completions_max, 1, sinks_max);
  cq_ =
      library().ibv_create_cq(context, static_cast<int>(std::min(sinks * completions_max, most)), nullptr, channel_, 0);
  if (cq_ == nullptr) return port.failed("make a completion queue", errno);
  ready_ = UniqueFd(above_stdio([&] { return ::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK); }));
  if (!ready_) return port.failed("make a descriptor", errno);
  sinks_ = std::vector<std::atomic<CompletionSink*>>(sinks);
  return {};
}

Endpoint::~Endpoint() {
  take_events();
  registrations_.reset();
  if (cq_ != nullptr) (void)library().ibv_destroy_cq(cq_);
  if (cq_ != nullptr) port.device->faults.forget(cq_);
  if (channel_ != nullptr) (void)library().ibv_destroy_comp_channel(channel_);
  if (pd_ != nullptr) (void)library().ibv_dealloc_pd(pd_);
}

Result<std::uint32_t> Endpoint::attach(CompletionSink* sink) {
  const std::uint32_t number = attached_.fetch_add(1, std::memory_order_relaxed);
  if (number >= sinks_.size()) {
    attached_.fetch_sub(1, std::memory_order_relaxed);
    return system_error(
        fmt::format("{} has no space for completions of more than {} connections", port.text(), sinks_.size()));
  }
  sinks_[number].store(sink, std::memory_order_release);
  return number;
}

bool Endpoint::poll() {
  if (broken_) return false;
  if (has_fault()) return true;
  Completion completions[batch];
  bool any = false;
  for (int count = batch; count == batch;) {
    count = port.device->context->ops.poll_cq(cq_, batch, completions);
    if (count < 0) {
      broken_ = true;
      Error unread = port.failed("read completions", count);
      unread.what = fmt::format("{}: {}", owner.name, unread.what);
      fail_all(std::move(unread).at_peer(owner.rank));
      return true;
    }
    for (int i = 0; i < count; ++i) {
      const std::size_t number = completions[i].wr_id >> 32;
      CompletionSink* const sink = number < sinks_.size() ? sinks_[number].load(std::memory_order_acquire) : nullptr;
      if (sink != nullptr) sink->complete(completions[i]);
    }
    any = any || count > 0;
  }
  if (any) armed_ = false;
  return any;
}

/// The device has said that it does not go on. It may complete nothing any more.
bool Endpoint::has_fault() {
  const unsigned count = port.device->faults.count();
  if (count == seen_faults_) return false;
  seen_faults_ = count;
  const auto words = port.device->faults.of(cq_);
  if (!words) return false;
  broken_ = true;
  fail_all({.code = Code::system,
            .what = fmt::format("{}: its RDMA device {} has failed: {}", owner.name, port.device->name, *words),
            .peer = owner.rank});
  return true;
}

void Endpoint::fail_all(const Error& error) {
  for (auto& known : sinks_)
    if (CompletionSink* const sink = known.load(std::memory_order_acquire); sink != nullptr) sink->fail(error);
}

void Endpoint::take_events() {
  if (channel_ == nullptr || cq_ == nullptr) return;
  Cq* cq = nullptr;
  void* context = nullptr;
  unsigned count = 0;
  while (library().ibv_get_cq_event(channel_, &cq, &context) == 0) ++count;
  if (count > 0) library().ibv_ack_cq_events(cq_, count);
}

/// A queue reports one event per arming, for a completion that comes after it. So look once more after arming.
void Endpoint::poll_set(std::vector<PollItem>& items) {
  if (!armed_ && !broken_) {
    take_events();
    armed_ = port.device->context->ops.req_notify_cq(cq_, 0) == 0;
    if (poll() || !armed_) {
      items.push_back({.handle = ready_.get(), .want_read = true});
      return;
    }
  }
  items.push_back({.handle = broken_ ? ready_.get() : channel_->fd, .want_read = true});
}

Result<RegisteredMemory> RegisteredMemory::make(const std::shared_ptr<Endpoint>& endpoint, std::size_t bytes,
                                                int access) {
  RegisteredMemory memory;
  memory.data_.reset(static_cast<std::byte*>(::operator new(bytes, page, std::nothrow)));
  if (!memory.data_) return refused(*endpoint, bytes, ENOMEM);
  memory.bytes_ = bytes;
  Mr* const mr = endpoint->library().ibv_reg_mr(endpoint->pd(), memory.data(), bytes, access);
  if (mr == nullptr) return refused(*endpoint, bytes, errno);
  memory.mr_ = std::unique_ptr<Mr, Deregister>(mr, Deregister{endpoint});
  return memory;
}

}  // namespace tutti::verbs
