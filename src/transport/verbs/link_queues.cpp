#include "transport/verbs/link_queues.h"

#include <algorithm>

#include <fmt/format.h>

namespace tutti::verbs {
namespace {

/// Smaller pieces cost more than they save.
constexpr std::size_t piece_bytes_min = 16 * 1024;

}  // namespace

/// Queue pairs have no common order, so each has places of its own: a late invitation never overwrites a later one.
std::size_t LinkShape::invitation_at(std::uint64_t message) const {
  const std::size_t ring = ring_slots();
  const std::size_t place = message % static_cast<std::size_t>(queue_pairs) * ring + message % ring;
  return ring * slot_bytes + place * sizeof(Destination);
}

std::size_t LinkShape::piece_bytes() const {
  const std::size_t quarter = (slot_bytes + 3) / 4;
  return std::max(piece_bytes_min, (quarter + 63) / 64 * 64);
}

Result<void> LinkQueues::create(const QueueShape& queues, std::uint32_t sink) {
  QueueShape all = queues;
  all.sends = shape_.sends();
  all.receives = shape_.receives();
  for (int i = 0; i < shape_.queue_pairs; ++i)
    queues_.push_back(TUTTI_TRY(QueuePair::create(endpoint_, all, sink, static_cast<std::uint32_t>(i))));
  windows_.resize(std::size_t{2} * shape_.ring_slots());
  opens_windows_ = endpoint_->windows() && queues_.front()->inline_bytes() >= sizeof(Destination);
  return {};
}

LinkAddress LinkQueues::address(const RegisteredMemory& ring) const {
  LinkAddress address{.shape = shape_, .port = endpoint_->port.address(), .ring = ring.address(), .rkey = ring.rkey()};
  for (std::size_t i = 0; i < queues_.size(); ++i) address.queues[i] = queues_[i]->address();
  return address;
}

Result<void> LinkQueues::connect(const LinkAddress& peer) {
  if (!(peer.shape == shape_)) return remote_error(fmt::format("{} has slots of another shape", peer_.name));
  if (peer.port.link_layer != endpoint_->port.link_layer || peer.port.iwarp != endpoint_->port.iwarp)
    return remote_error(fmt::format("{} is on a fabric of another kind (InfiniBand, RoCE or iWARP)", peer_.name));
  to_ = peer;
  if (endpoint_->port.iwarp) return {};
  for (std::size_t i = 0; i < queues_.size(); ++i) TUTTI_TRY(queues_[i]->connect(peer.queues[i], peer.port));
  return {};
}

bool LinkQueues::are_past(const Marks& marks) const {
  for (std::size_t i = 0; i < queues_.size(); ++i)
    if (static_cast<std::int32_t>(queues_[i]->completed() - marks[i]) < 0) return false;
  return true;
}

bool LinkQueues::have_space() const {
  return std::ranges::all_of(queues_, [&](const auto& queue) { return queue->space() >= shape_.space_needed(); });
}

bool LinkQueues::have_waiting() const {
  return std::ranges::any_of(queues_, [](const auto& queue) { return queue->waiting(); });
}

Result<bool> LinkQueues::post() {
  bool all = true;
  for (auto& queue : queues_) {
    if (!queue->waiting()) continue;
    auto posted = queue->post();
    if (posted && !*posted) {  // the device has no space yet
      endpoint_->poll();
      if (error_) return *error_;
      posted = queue->post();
    }
    if (!posted) return refused_here(posted.error());
    all = all && *posted;
  }
  return all;
}

Result<void> LinkQueues::post(QueuePair& queue) {
  if (auto posted = queue.post(); !posted) return refused_here(posted.error());
  return {};
}

Result<void> LinkQueues::post_receives() {
  for (auto& queue : queues_)
    if (auto posted = queue->post_receives(); !posted) return refused_here(posted.error());
  return {};
}

bool LinkQueues::make_window(std::uint64_t message) {
  auto& window = windows_[message % windows_.size()];
  if (!window) window = MemoryWindow::make(endpoint_);
  opens_windows_ = window != nullptr;
  return opens_windows_;
}

void LinkQueues::fail(const Error& error) {
  if (error_) return;
  error_ = error;
  for (auto& queue : queues_) queue->stop();
  for (auto& window : windows_) window.reset();
}

/// The end whose own port says that it is down is the one to look at.
Error LinkQueues::broken(std::string why) const {
  if (const auto trouble = endpoint_->port.trouble())
    return remote_error(fmt::format("{}: its RDMA port {} is {}, so the connection to {} failed: {}",
                                    endpoint_->owner.name, endpoint_->port.text(), *trouble, peer_.name, why),
                        endpoint_->owner.rank);
  return remote_error(
      fmt::format("the RDMA connection to {} over {} failed: {}", peer_.name, endpoint_->port.text(), why), peer_.rank);
}

/// What this end's own device does not take is no fault of the peer's. With iWARP a request is refused also when the
/// connection has ended.
Error LinkQueues::refused_here(const Error& error) {
  fail(endpoint_->port.iwarp ? broken(error.text())
                             : Error{.code = Code::system,
                                     .what = fmt::format("{}: {}", endpoint_->owner.name, error.what),
                                     .sys_errno = error.sys_errno,
                                     .peer = endpoint_->owner.rank});
  return *error_;
}

}  // namespace tutti::verbs
