#include "submit/batch.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gpu/gpu_context.h"
#include "submit/operations.h"

namespace tutti {
namespace {

/// Whether the call's stream, if one waits for the host, has come to it.
constexpr auto has_landed = [](const auto& request) { return request.queued == nullptr || request.queued->landed(); };

}  // namespace

Batch::~Batch() {
  leave();
}

void Batch::enqueue() {
  if (takes_turn()) ticket_ = communicator_->order().take_ticket();
  DeviceSide* const device = communicator_->device();
  if (device == nullptr) return;
  for (const Request& request : requests_) device->count(request);
  for (const PeerRequest& request : peers_) device->count(request);
}

bool Batch::takes_turn() const {
  const auto waits = [](const auto& request) { return request.route.takes_turn(); };
  return std::ranges::any_of(peers_, waits) || std::ranges::any_of(requests_, waits);
}

/// Kernels of a rank run one after another, on all ranks in the same order: messages after the collectives.
bool Batch::may_transfer() const {
  if (transferred_ || peers_.empty()) return false;
  return !peers_.front().route.one_kernel() || next_ == requests_.size();
}

/// Whether it waits for a stream to come to its call.
bool Batch::awaits_gpu() const {
  if (!communicator_->order().turn_of(ticket_)) return false;
  const bool next = next_ < requests_.size() && !collective_ && !has_landed(requests_[next_]);
  return next || (may_transfer() && !transfers_ && !std::ranges::all_of(peers_, has_landed));
}

void Batch::leave() {
  // While it is this batch's turn: afterwards another call may use the channels.
  if (ticket_ != 0 && (collective_ || transfers_) && communicator_->failed()) communicator_->links().channels().stop();
  if (ticket_ != 0 && collective_) leased_ = collective_->leased();
  collective_.reset();
  transfers_.reset();
  // Whether the calls succeeded or not, their streams must go on.
  for (const Request& request : requests_)
    if (request.queued) request.queued->finish();
  for (const PeerRequest& request : peers_)
    if (request.queued) request.queued->finish();
  if (std::exchange(ticket_, 0) != 0) communicator_->order().complete();
}

Result<Progress> Batch::advance() {
  if (communicator_->failed()) {
    if (collective_) collective_->abandon(communicator_->failure().error());
    leave();
    return communicator_->failure().error();
  }
  if (!communicator_->order().turn_of(ticket_)) return Progress::blocked;
  auto progress = work();
  if (!progress) {
    communicator_->fail(progress.error());
    leave();
  } else if (*progress == Progress::done) {
    leave();
  }
  return progress;
}

Result<Progress> Batch::collective() {
  Request& request = requests_[next_];
  if (!collective_) {
    if (!has_landed(request)) return Progress::blocked;
    if (request.queued) request.queued->bind(request);
    make_collective(collective_, *communicator_, request);
  }
  auto moved = collective_->advance();
  if (moved && *moved == Progress::done) {
    if (request.queued) request.queued->finish();
    collective_.reset();
    ++next_;
  }
  return moved;
}

Result<Progress> Batch::transfer() {
  if (!transfers_) {
    // The host begins with none of a group's messages before the streams have come to all of them.
    if (!std::ranges::all_of(peers_, has_landed)) return Progress::blocked;
    for (PeerRequest& request : peers_)
      if (request.queued) request.queued->bind(request);
    make_transfers(transfers_, *communicator_, peers_);
  }
  auto moved = transfers_->advance();
  if (moved && *moved == Progress::done) {
    transfers_.reset();
    transferred_ = true;
  }
  return moved;
}

Result<Progress> Batch::work() {
  Progress progress = Progress::blocked;
  if (next_ < requests_.size()) {
    auto moved = collective();
    if (!moved) return moved;
    if (*moved != Progress::blocked) progress = Progress::moved;
  }
  if (may_transfer()) {
    auto moved = transfer();
    if (!moved) return moved;
    if (*moved != Progress::blocked) progress = Progress::moved;
  }
  const bool through = next_ == requests_.size() && (transferred_ || peers_.empty());
  return through ? Progress::done : progress;
}

Result<void> Batch::poll_peers() {
  Result<void> looked;
  if (collective_) looked = collective_->poll_peers();
  if (looked && transfers_) looked = transfers_->poll_peers();
  if (!looked) communicator_->fail(looked.error());
  return looked;
}

std::int64_t Batch::poll_set(std::vector<PollItem>& items) const {
  std::int64_t until = 0;
  const auto sooner = [&until](std::int64_t other) {
    if (other != 0) until = until == 0 ? other : std::min(until, other);
  };
  if (collective_) sooner(collective_->poll_set(items));
  if (transfers_) sooner(transfers_->poll_set(items));
  if (awaits_gpu()) sooner(next_gpu_poll_ns(*communicator_));
  return until;
}

Rank Batch::waits_for() const {
  if (collective_) return collective_->waits_for();
  return transfers_ ? transfers_->waits_for() : -1;
}

std::string Batch::where() const {
  if (collective_) return collective_->where();
  if (transfers_) return transfers_->where();
  if (!awaits_gpu()) return "its turn";
  return fmt::format("a call that GPU {} has not reached yet", gpu_context(*communicator_)->gpu->ordinal());
}

}  // namespace tutti
