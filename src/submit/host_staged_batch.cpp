#include "submit/host_staged_batch.h"

#include <fmt/format.h>

#include "call/mismatch.h"
#include "comm/peer_failure.h"
#include "gpu/gpu_context.h"
#include "progress/stream.h"

namespace tutti {

HostStagedBatch::HostStagedBatch(std::shared_ptr<Communicator> communicator)
    : communicator_(std::move(communicator)),
      proxy_(gpu_context(*communicator_)->staging.proxy()),
      host_(std::make_unique<Batch>(communicator_)),
      batch_(gpu_context(*communicator_)->staging.pool()->next_batch()) {}

HostStagedBatch::~HostStagedBatch() {
  give_up();
}

void HostStagedBatch::add(const Request& request) {
  collectives_.push_back(
      {.call = std::static_pointer_cast<StreamCall>(request.queued), .text = call_text(request.signature())});
  host_->add(request);
}

void HostStagedBatch::add(const PeerRequest& request) {
  (request.send ? sends_ : receives_)
      .push_back({.call = std::static_pointer_cast<StreamCall>(request.queued),
                  .peer = request.peer,
                  .text = fmt::format("a {} rank {} of {} bytes", request.send ? "send to" : "receive from",
                                      request.peer, request.bytes)});
  host_->add(request);
}

void HostStagedBatch::enqueue() {
  GpuContext& context = *gpu_context(*communicator_);
  for (Item& item : collectives_)
    item.number = context.neighbours->order().collective(communicator_->rank(), /*host_staged=*/true);
  for (Item& item : receives_) item.number = context.neighbours->next_receive(item.peer);
  proxy_->push(Submission::of(std::move(host_)));
}

Result<Progress> HostStagedBatch::advance() {
  if (communicator_->failed()) {
    give_up();
    return communicator_->failure().error();
  }
  auto progress = step();
  if (!progress) {
    communicator_->fail(progress.error());
    give_up();
  }
  if (!progress || *progress != Progress::blocked) since_ns_ = 0;
  return progress;
}

Result<bool> HostStagedBatch::begin(Item& item, bool signals) {
  auto begun = signals ? item.call->queue_input(batch_) : item.call->queue_nothing(batch_);
  if (begun && *begun) item.begun = true;
  return begun;
}

/// The first call does only what makes no stream wait, so that all operations of the submission get that far before any
/// stream waits.
Result<Progress> HostStagedBatch::step() {
  if (!exchange_begun_) {
    auto begun = TUTTI_TRY(begin_exchange());
    if (!begun) return Progress::blocked;
  }
  if (next_collective_ < collectives_.size()) return collective(collectives_[next_collective_]);
  if (next_receive_ < receives_.size()) return receive(receives_[next_receive_]);
  return Progress::done;
}

/// Sends are queued, and receives have room: all of them, as the host begins with none before.
Result<bool> HostStagedBatch::begin_exchange() {
  for (auto* const items : {&sends_, &receives_})
    for (Item& item : *items) {
      if (item.begun) continue;
      auto begun = begin(item, /*signals=*/items == &sends_);
      if (!begun || !*begun) return begun;
      if (items == &sends_) item.call->give_up();  // the stream need not wait for a send
    }
  for (const Item& item : sends_)
    gpu_context(*communicator_)->neighbours->order().sent(communicator_->rank(), item.peer);
  if (!sends_.empty()) communicator_->links().ring_all();
  exchange_begun_ = true;
  return true;
}

Result<Progress> HostStagedBatch::collective(Item& item) {
  if (!item.begun) {
    auto begun = TUTTI_TRY(begin(item, /*signals=*/true));
    if (!begun) return Progress::blocked;
    gpu_context(*communicator_)->neighbours->order().queued(communicator_->rank());
    communicator_->links().ring_all();
    return Progress::moved;
  }
  if (missing() >= 0) return Progress::blocked;
  TUTTI_TRY(item.call->queue_output());
  ++next_collective_;
  return Progress::moved;
}

Result<Progress> HostStagedBatch::receive(Item& item) {
  if (std::exchange(first_receive_, false)) return Progress::moved;
  if (missing() >= 0) return Progress::blocked;
  TUTTI_TRY(item.call->queue_output());
  ++next_receive_;
  return Progress::moved;
}

bool HostStagedBatch::awaits(const Item& item, Rank rank) const {
  const GpuContext& context = *gpu_context(*communicator_);
  if (!context.neighbours->contain(rank)) return false;
  if (item.peer < 0) return !context.neighbours->order().has_queued(rank, item.number);
  return rank == item.peer && !context.neighbours->order().has_sent(rank, communicator_->rank(), item.number);
}

/// The item to be queued next; null: none.
const HostStagedBatch::Item* HostStagedBatch::next() const {
  if (!exchange_begun_)
    for (const auto* const items : {&sends_, &receives_})
      for (const Item& item : *items)
        if (!item.begun) return &item;
  if (next_collective_ < collectives_.size()) return &collectives_[next_collective_];
  return next_receive_ < receives_.size() ? &receives_[next_receive_] : nullptr;
}

/// The first rank that the batch waits for; −1: none.
Rank HostStagedBatch::missing() const {
  const Item* const item = next();
  if (item == nullptr || !item->begun) return -1;
  for (Rank rank = 0; rank < communicator_->ranks(); ++rank)
    if (awaits(*item, rank)) return rank;
  return -1;
}

Result<void> HostStagedBatch::poll_peers() {
  const Rank rank = missing();
  if (rank < 0) return {};
  const std::int64_t now = communicator_->process().system.now_ns();
  if (since_ns_ == 0) since_ns_ = now;
  const auto failed = [this](Error error) {
    communicator_->fail(error);
    return error;
  };
  if (auto gone = obstacle(*communicator_, rank, nullptr, [this] { return where(); })) {
    if (missing() != rank) return {};
    return failed(*std::move(gone));
  }
  const std::int64_t limit_ns = communicator_->process().gpus.settings.meeting_ns;
  if (limit_ns == 0 || now - since_ns_ < limit_ns ||
      !gpu_context(*communicator_)->neighbours->order().driven_here(rank))
    return {};
  return failed(waits_for_own_thread(communicator_->rank(), rank, now - since_ns_));
}

Rank HostStagedBatch::waits_for() const {
  const Item* const item = next();
  return item != nullptr && item->begun ? missing() : -1;
}

std::string HostStagedBatch::where() const {
  const Item* const item = next();
  if (item == nullptr) return "the end of a group";
  const std::string text =
      fmt::format("{} through the host for GPU {}", item->text, gpu_context(*communicator_)->gpu->ordinal());
  if (!item->begun)
    return text + ", waiting for a bounce buffer that earlier calls use, or for peers to map its memory";
  const Rank rank = missing();
  return rank < 0 ? text : text + fmt::format(", waiting for the call of rank {}", rank);
}

/// A bounce buffer that becomes free rings no doorbell, so the batch polls.
std::int64_t HostStagedBatch::poll_set(std::vector<PollItem>&) const {
  constexpr std::int64_t look_ns = 100'000;
  return communicator_->process().system.now_ns() + look_ns;
}

void HostStagedBatch::give_up() {
  for (auto* const items : {&sends_, &collectives_, &receives_})
    for (Item& item : *items) item.call->give_up();
}

}  // namespace tutti
