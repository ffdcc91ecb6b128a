#include "collective/point_to_point.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "call/self_messages.h"
#include "plan/amount.h"

namespace tutti {
namespace {

/// Shorter messages are copied through slots, which costs less than waiting for the receiver to read the buffer.
constexpr std::size_t reference_bytes_min = 64 * 1024;

/// Lets the stream of a finished request go on, without waiting for other requests of the group.
void end(const PeerRequest& request) {
  if (request.queued) request.queued->finish();
}

}  // namespace

PointToPoint::PointToPoint(Communicator& communicator, std::span<const PeerRequest> requests)
    : communicator_(communicator) {
  for (const auto& request : requests) {
    if (request.peer == communicator.rank()) {
      (request.send ? self_sends_ : self_receives_).push_back(&request);
      continue;
    }
    auto queue =
        std::ranges::find_if(queues_, [&](const Queue& q) { return q.peer == request.peer && q.send == request.send; });
    if (queue == queues_.end()) queue = queues_.insert(queues_.end(), {.peer = request.peer, .send = request.send});
    queue->requests.push_back(&request);
  }
}

Result<Progress> PointToPoint::advance() {
  if (!self_done_) {
    TUTTI_TRY(to_self());
    self_done_ = true;
  }
  Progress progress = Progress::blocked;
  bool done = true;
  for (auto& queue : queues_) {
    if (queue.next == queue.requests.size()) continue;
    auto moved = queue.send ? send(queue) : receive(queue);
    if (!moved) return std::move(moved).error().at_peer(queue.peer);
    if (*moved == Progress::moved) {
      progress = Progress::moved;
      queue.stall.note_move();
    }
    done = done && queue.next == queue.requests.size();
  }
  auto flushed = TUTTI_TRY(flush());
  if (!done || !flushed) return progress;
  lease_.reset();
  return Progress::done;
}

/// True if all sent messages have left this process.
Result<bool> PointToPoint::flush() {
  bool all = true;
  for (const auto& queue : queues_) {
    if (!queue.send) continue;
    auto flushed = channel().senders[queue.peer]->flush();
    if (!flushed) return std::move(flushed).error().at_peer(queue.peer);
    all = all && *flushed;
  }
  return all;
}

std::int64_t PointToPoint::poll_set(std::vector<PollItem>& items) const {
  if (!communicator_.members().spans_hosts()) return 0;
  const bool awaited = communicator_.links().channels().opening(items);
  for (const auto& queue : queues_) {
    if (queue.send)
      channel().senders[queue.peer]->poll_set(items);
    else if (queue.next < queue.requests.size())
      channel().receivers[queue.peer]->poll_set(items);
  }
  return communicator_.links().poll_deadline_ns(awaited);
}

Result<void> PointToPoint::to_self() {
  TUTTI_TRY(check_self_messages(self_sends_, self_receives_, communicator_.rank()));
  for (std::size_t k = 0; k < self_sends_.size(); ++k) {
    if (self_sends_[k]->bytes > 0) std::memmove(self_receives_[k]->data, self_sends_[k]->data, self_sends_[k]->bytes);
    end(*self_receives_[k]);
  }
  return {};
}

PointToPoint::Header PointToPoint::header_of(const PeerRequest& request) const {
  Header header{.bytes = request.bytes, .type = static_cast<std::uint32_t>(request.type), .carried = {}};
  if (request.bytes < reference_bytes_min || communicator_.members().peers[request.peer].remote()) return header;
  header.carried = best_carry(communicator_, request.peer, request.data, request.bytes);
  return header;
}

/// A peer of this host is reached through memory, whatever wire other peers are reached by.
void PointToPoint::note_carrier(Rank peer, const Header& header) {
  PastCalls& past = communicator_.past_calls();
  if (communicator_.members().peers[peer].remote())
    return past.note_used("", communicator_.links().channels().transport(Access::slots));
  Access access = Access::slots;
  if (header.carried.carry == Carry::window) access = Access::mapped;
  if (header.carried.carry == Carry::pull) access = Access::cma;
  past.note_used("", name(access));
}

Result<Progress> PointToPoint::send(Queue& queue) {
  Sender& sender = *channel().senders[queue.peer];
  const PeerRequest& request = *queue.requests[queue.next];
  if (queue.begun && queue.by_reference) {
    const auto settled = TUTTI_TRY(sender.settled());
    if (settled == Settled::not_yet) return Progress::blocked;
    if (settled == Settled::refused_last)
      queue.by_reference = false;  // the data follows in slots
    else
      finish(queue);
    return Progress::moved;
  }
  if (!queue.begun && has_left(communicator_, queue.peer))
    return Error{.code = Code::remote,
                 .what = fmt::format("{} left the communicator during {}", communicator_.members().describe(queue.peer),
                                     where()),
                 .peer = queue.peer};
  auto slot = TUTTI_TRY(sender.acquire());
  if (slot.empty()) return Progress::blocked;

  std::size_t used = 0;
  if (!queue.begun) {
    const Header header = header_of(request);
    std::memcpy(slot.data(), &header, sizeof header);
    used = sizeof header;
    queue.begun = true;
    queue.by_reference = header.carried.carry != Carry::slots;
    note_carrier(queue.peer, header);
  }
  // Between hosts messages carry no length, so the header is sent alone: the receiver may expect a different length.
  const bool alone = used > 0 && communicator_.members().peers[queue.peer].remote();
  if (!queue.by_reference && !alone) {
    const std::size_t piece = std::min(slot.size() - used, request.bytes - queue.moved);
    if (piece > 0) std::memcpy(slot.data() + used, request.data + queue.moved, piece);
    queue.moved += piece;
    used += piece;
  }
  TUTTI_TRY(sender.commit(used));
  if (!queue.by_reference && queue.moved == request.bytes) finish(queue);
  return Progress::moved;
}

Result<void> PointToPoint::open(Queue& queue, const PeerRequest& request, const Header& header) {
  if (header.bytes != request.bytes || header.type != static_cast<std::uint32_t>(request.type))
    return Error{
        .code = Code::invalid_usage,
        .what = fmt::format("rank {} sends {}, but rank {} receives {}", queue.peer, amount(header.bytes, header.type),
                            communicator_.rank(), amount(request.bytes, static_cast<std::uint32_t>(request.type)))};
  if (!header.carried.carry.checked())
    return Error{.code = Code::remote,
                 .what = "the header of a message is wrong: it says nothing of where its data is"};
  queue.begun = true;
  queue.by_reference = header.carried.carry != Carry::slots;
  note_carrier(queue.peer, header);
  if (!queue.by_reference) return {};
  if (!lease_) lease_.emplace(communicator_);
  if (auto failure = failure_of(communicator_, queue.peer)) return *std::move(failure);
  auto memory =
      SenderMemory::open(communicator_, communicator_.links().windows(), queue.peer, header.carried, request.bytes);
  if (!memory) return refuse(queue, std::move(memory).error());
  queue.memory = *memory;
  return {};
}

/// Where this rank may not read the sender's memory, the sender is asked to send the data through slots.
Result<void> PointToPoint::refuse(Queue& queue, Error why) {
  if (!note_refusal(communicator_, why)) return why;
  queue.by_reference = false;
  queue.memory = {};
  queue.moved = 0;
  return channel().receivers[queue.peer]->refuse();
}

Result<Progress> PointToPoint::receive(Queue& queue) {
  Receiver& receiver = *channel().receivers[queue.peer];
  const PeerRequest& request = *queue.requests[queue.next];
  if (queue.begun && queue.by_reference) return receive_by_reference(queue, request);

  const bool remote = communicator_.members().peers[queue.peer].remote();
  const std::size_t length = queue.begun
                                 ? std::min(communicator_.links().channels().slot_bytes(), request.bytes - queue.moved)
                                 : sizeof(Header);
  auto slot = receiver.peek(remote ? length : 0);  // shared memory stores the length
  if (!slot) return std::move(slot).error();
  if (slot->data() == nullptr) return Progress::blocked;
  std::span<const std::byte> data = *slot;
  if (!queue.begun) {
    Header header;
    if (data.size() < sizeof header) return Error{.code = Code::remote, .what = "a message has no header"};
    std::memcpy(&header, data.data(), sizeof header);
    TUTTI_TRY(open(queue, request, header));
    // The slot is released once the data has been read, or has been refused.
    if (header.carried.carry != Carry::slots) return Progress::moved;
    data = data.subspan(sizeof header);
  }
  if (data.size() > request.bytes - queue.moved)
    return Error{.code = Code::remote, .what = "a message is longer than its header says"};
  if (!data.empty()) std::memcpy(request.data + queue.moved, data.data(), data.size());
  queue.moved += data.size();
  TUTTI_TRY(receiver.release());
  if (queue.moved == request.bytes) finish(queue);
  return Progress::moved;
}

Result<Progress> PointToPoint::receive_by_reference(Queue& queue, const PeerRequest& request) {
  const std::size_t piece = std::min(limits::pass_bytes, request.bytes - queue.moved);
  if (auto copied = queue.memory.copy(queue.moved, {request.data + queue.moved, piece}); !copied) {
    TUTTI_TRY(refuse(queue, std::move(copied).error()));
    return Progress::moved;
  }
  queue.moved += piece;
  if (queue.moved < request.bytes) return Progress::moved;
  // A sender that failed meanwhile may have changed the data read here.
  if (auto failure = failure_of(communicator_, queue.peer)) return *std::move(failure);
  TUTTI_TRY(channel().receivers[queue.peer]->release());
  finish(queue);
  return Progress::moved;
}

void PointToPoint::finish(Queue& queue) {
  end(*queue.requests[queue.next]);
  ++queue.next;
  queue.moved = 0;
  queue.begun = false;
  queue.memory = {};
  queue.by_reference = false;
}

/// Messages that a rank sent before it left or ended are still received; then that it is gone is an error. Ranks that
/// are gone and have had all their part are no obstacle.
Result<void> PointToPoint::poll_peers() {
  for (auto& queue : queues_) {
    if (queue.next == queue.requests.size()) continue;
    queue.stall.look(communicator_.process().system.now_ns(), coming(*channel().receivers[queue.peer]));
    auto gone = obstacle(communicator_, queue.peer, &queue.stall, [this] { return where(); });
    if (!gone) continue;
    auto moved = queue.send ? send(queue) : receive(queue);
    if (!moved) return std::move(moved).error().at_peer(queue.peer);
    if (*moved == Progress::blocked) return *std::move(gone);
  }
  return {};
}

const PointToPoint::Queue* PointToPoint::first_open() const {
  const auto open = std::ranges::find_if(queues_, [](const Queue& one) { return one.next != one.requests.size(); });
  return open == queues_.end() ? nullptr : &*open;
}

Rank PointToPoint::waits_for() const {
  const Queue* const queue = first_open();
  return queue == nullptr ? -1 : queue->peer;
}

std::string PointToPoint::where() const {
  const Queue* const queue = first_open();
  if (queue == nullptr) return "sends and receives";
  return fmt::format("{} {} of {} bytes, {} of them moved", queue->send ? "a send to rank" : "a receive from rank",
                     queue->peer, queue->requests[queue->next]->bytes, queue->moved);
}

}  // namespace tutti
