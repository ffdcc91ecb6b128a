#include "transport/verbs/link.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace tutti::verbs {

Link::Link(std::shared_ptr<Endpoint> endpoint, const LinkShape& shape, Owner peer, RegisteredMemory ring,
           RegisteredMemory slots)
    : ring_(std::move(ring)),
      slots_(std::move(slots)),
      queues_(std::move(endpoint), shape, std::move(peer)),
      out_(queues_, shape, slots_, ring_.data()),
      in_(queues_, out_, shape, ring_.data()) {}

Result<std::shared_ptr<Link>> Link::make(std::shared_ptr<Endpoint> endpoint, const LinkShape& shape,
                                         const QueueShape& queues, int peer, std::string peer_name) {
  assert(shape.pieces(shape.slot_bytes) <= Immediate::pieces_max && shape.ring_slots() <= Immediate::credits_max);
  auto ring = TUTTI_TRY(
      RegisteredMemory::make(endpoint, shape.ring_bytes(), access_flag::local_write | access_flag::remote_write));
  // With iWARP a device may still read a slot after its completion, so slots are free when the peer says so.
  const auto sends = endpoint->port.iwarp ? shape.ring_slots() : static_cast<std::size_t>(shape.slots);
  auto slots = TUTTI_TRY(RegisteredMemory::make(endpoint, sends * shape.slot_bytes, access_flag::local_write));
  std::shared_ptr<Link> link(new Link(std::move(endpoint), shape, {.rank = peer, .name = std::move(peer_name)},
                                      std::move(ring), std::move(slots)));
  link->sink_ = TUTTI_TRY(link->queues_.endpoint().attach(link.get()));
  TUTTI_TRY(link->queues_.create(queues, *link->sink_));
  return link;
}

Link::~Link() {
  if (sink_) queues_.endpoint().detach(*sink_);
}

Result<CmAddress> Link::listen(const CmToken& token) {
  QueuePair& queue = *queues_.all().front();
  cm_ = TUTTI_TRY(CmConnection::listen(queues_.endpoint().port, queue.address().number, token));
  queue.wait_to_be_addressed();
  return cm_->address();
}

Result<void> Link::call(const CmAddress& peer, const CmToken& token) {
  const std::uint32_t queue = queues_.all().front()->address().number;
  cm_ = TUTTI_TRY(CmConnection::connect(queues_.endpoint().port, queue, token, peer));
  return {};
}

Result<void> Link::probe() {
  const Destination to = queues_.in_ring(0);
  for (auto& queue : queues_.all()) {
    queues_.add(*queue, {.memory = {}, .remote_address = to.address, .rkey = to.key}, {.credit_only = true});
    TUTTI_TRY(queue->post());
  }
  return {};
}

Result<bool> Link::probed() {
  queues_.endpoint().poll();
  if (queues_.error()) return *queues_.error();
  return std::ranges::all_of(queues_.all(), [](const auto& queue) { return queue->completed() == queue->added(); });
}

void Link::stop() {
  fail({.code = Code::remote, .what = "the RDMA connection was stopped", .peer = queues_.peer().rank});
}

void Link::complete(const Completion& completion) {
  const WorkWord word{static_cast<std::uint32_t>(completion.wr_id)};
  if (completion.status != Status::success) {
    if (completion.status != Status::flushed || !queues_.error())
      fail(queues_.broken(text(*queues_.endpoint().port.device->library, completion.status) +
                          (completion.status == Status::window_bind_error
                               ? "; TUTTI_IB_MEMORY_WINDOWS=0 does without memory windows"
                               : "")));
    return;
  }
  if (queues_.error() || word.queue() >= queues_.all().size()) return;
  QueuePair& queue = *queues_.all()[word.queue()];
  if (!word.is_receive()) return queue.complete(word);
  receive(queue.used_receive(completion));
}

/// All numbers are the peer's: checked before they are used.
void Link::receive(const Completion& completion) {
  const Immediate immediate = Immediate::unpack(ntohl(completion.immediate));
  const bool right = (completion.wc_flags & with_immediate) != 0 && out_.may_be_freed(immediate.credits) &&
                     (immediate.is_invitation() ? out_.take_invitation(immediate.message)
                                                : immediate.credit_only || in_.place(immediate, completion.byte_len));
  if (!right) return fail(queues_.broken("a message came that cannot be"));
  out_.free(immediate.credits);
  in_.grant();
  // Credits alone are the only writes that no message of this direction must follow.
  if (immediate.credit_only && !immediate.packed) (void)queues_.post_receives();
}

}  // namespace tutti::verbs
