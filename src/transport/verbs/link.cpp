#include "transport/verbs/link.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

namespace tutti::verbs {
namespace {

/// Smaller pieces cost more than they save.
constexpr std::size_t piece_bytes_min = 16 * 1024;

}  // namespace

std::size_t LinkShape::piece_bytes() const {
  const std::size_t quarter = (slot_bytes + 3) / 4;
  return std::max(piece_bytes_min, (quarter + 63) / 64 * 64);
}

std::uint32_t LinkShape::pieces(std::size_t bytes) const {
  return bytes == 0 ? 1 : static_cast<std::uint32_t>((bytes + piece_bytes() - 1) / piece_bytes());
}

std::uint32_t LinkShape::sends() const {
  return ring_slots() * (pieces(slot_bytes) + invitation_sends) + credit_sends;
}

std::uint32_t LinkShape::receives() const {
  return ring_slots() * (pieces(slot_bytes) + invitation_receives) + credit_receives;
}

Link::Link(std::shared_ptr<Endpoint> endpoint, const LinkShape& shape, int peer, std::string peer_name)
    : endpoint_(std::move(endpoint)),
      shape_(shape),
      peer_(peer),
      peer_name_(std::move(peer_name)),
      // With iWARP a device may still read a slot after its completion, so slots are free when the peer says so.
      sending_(endpoint_->port.iwarp ? shape.ring_slots() : static_cast<std::size_t>(shape.slots)),
      peer_invitations_(shape.ring_slots()),
      arriving_(shape.ring_slots()) {}

Result<std::shared_ptr<Link>> Link::make(std::shared_ptr<Endpoint> endpoint, const LinkShape& shape,
                                         const QueueShape& queues, int peer, std::string peer_name) {
  std::shared_ptr<Link> link(new Link(std::move(endpoint), shape, peer, std::move(peer_name)));
  TUTTI_TRY(link->create(queues));
  return link;
}

Result<void> Link::create(const QueueShape& queues) {
  assert(shape_.pieces(shape_.slot_bytes) <= Immediate::pieces_max && shape_.ring_slots() <= Immediate::credits_max);
  const std::size_t invitations = static_cast<std::size_t>(shape_.queue_pairs) * sizeof(Destination);
  ring_ = TUTTI_TRY(RegisteredMemory::make(endpoint_, shape_.ring_slots() * (shape_.slot_bytes + invitations),
                                           access_flag::local_write | access_flag::remote_write));
  auto slots =
      TUTTI_TRY(RegisteredMemory::make(endpoint_, sending_.size() * shape_.slot_bytes, access_flag::local_write));
  slots_ = std::move(slots);
  sink_ = TUTTI_TRY(endpoint_->attach(this));
  QueueShape all = queues;
  all.sends = shape_.sends();
  all.receives = shape_.receives();
  for (int i = 0; i < shape_.queue_pairs; ++i) {
    auto pair = TUTTI_TRY(QueuePair::create(endpoint_, all, *sink_, static_cast<std::uint32_t>(i)));
    queues_.push_back(std::move(pair));
  }
  invitations_.resize(std::size_t{2} * shape_.ring_slots());
  invites_ = endpoint_->windows() && queues_.front()->inline_bytes() >= sizeof(Destination);
  return {};
}

Link::~Link() {
  if (sink_) endpoint_->detach(*sink_);
}

LinkAddress Link::address() const {
  const Port& port = endpoint_->port;
  LinkAddress address{
      .shape = shape_,
      .port = {.link_layer = port.link_layer, .iwarp = port.iwarp, .lid = port.lid, .mtu = port.mtu, .gid = port.gid},
      .ring = ring_->address(),
      .rkey = ring_->rkey()};
  for (std::size_t i = 0; i < queues_.size(); ++i) address.queues[i] = queues_[i]->address();
  return address;
}

Result<void> Link::connect(const LinkAddress& peer) {
  if (!(peer.shape == shape_))
    return Error{.code = Code::remote, .what = fmt::format("{} has slots of another shape", peer_name_)};
  if (peer.port.link_layer != endpoint_->port.link_layer || peer.port.iwarp != endpoint_->port.iwarp)
    return Error{.code = Code::remote,
                 .what = fmt::format("{} is on a fabric of another kind (InfiniBand, RoCE or iWARP)", peer_name_)};
  to_ = peer;
  if (endpoint_->port.iwarp) return {};
  for (std::size_t i = 0; i < queues_.size(); ++i) TUTTI_TRY(queues_[i]->connect(peer.queues[i], peer.port));
  return {};
}

Result<CmAddress> Link::listen(const CmToken& token) {
  QueuePair& queue = *queues_.front();
  cm_ = TUTTI_TRY(CmConnection::listen(endpoint_->port, queue.address().number, token));
  queue.wait_to_be_addressed();
  return cm_->address();
}

Result<void> Link::call(const CmAddress& peer, const CmToken& token) {
  cm_ = TUTTI_TRY(CmConnection::connect(endpoint_->port, queues_.front()->address().number, token, peer));
  return {};
}

Result<void> Link::probe() {
  for (auto& queue : queues_) {
    queue->add({.memory = {},
                .remote_address = to_.ring,
                .rkey = to_.rkey,
                .immediate = Immediate{.credit_only = true}.pack()});
    TUTTI_TRY(queue->post());
  }
  return {};
}

Result<bool> Link::probed() {
  endpoint_->poll();
  if (error_) return *error_;
  return std::ranges::all_of(queues_, [](const auto& queue) { return queue->completed() == queue->added(); });
}

/// The end whose own port says that it is down is the one to look at.
Error Link::broken(std::string why) const {
  if (const auto trouble = endpoint_->port.trouble())
    return {.code = Code::remote,
            .what = fmt::format("{}: its RDMA port {} is {}, so the connection to {} failed: {}", endpoint_->owner.name,
                                endpoint_->port.text(), *trouble, peer_name_, why),
            .peer = endpoint_->owner.rank};
  return {.code = Code::remote,
          .what = fmt::format("the RDMA connection to {} over {} failed: {}", peer_name_, endpoint_->port.text(), why),
          .peer = peer_};
}

/// What this end's own device does not take is no fault of the peer's. With iWARP a request is refused also when the
/// connection has ended.
Error Link::refused_here(const Error& error) const {
  if (endpoint_->port.iwarp) return broken(error.text());
  return {.code = Code::system,
          .what = fmt::format("{}: {}", endpoint_->owner.name, error.what),
          .sys_errno = error.sys_errno,
          .peer = endpoint_->owner.rank};
}

void Link::stop() {
  fail({.code = Code::remote, .what = "the RDMA connection was stopped", .peer = peer_});
}

/// Nothing arrives or leaves afterwards: the memory may be used again.
void Link::fail(const Error& error) {
  if (error_) return;
  error_ = error;
  for (auto& queue : queues_) queue->stop();
  for (Invitation& invitation : invitations_) invitation.window.reset();
}

}  // namespace tutti::verbs
