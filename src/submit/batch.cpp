#include "submit/batch.h"

#include <algorithm>
#include <utility>

#include "submit/operations.h"

namespace tutti {

Batch::~Batch() {
  leave();
}

void Batch::enqueue() {
  if (takes_turn()) ticket_ = communicator_->take_ticket();
  DeviceSide* const device = communicator_->device();
  if (device == nullptr) return;
  for (const Request& request : requests_) device->count(request);
  for (const PeerRequest& request : peers_) device->count(request);
}

bool Batch::takes_turn() const {
  const auto free = [](const auto& request) { return request.device && !request.device->takes_turn(); };
  return !std::ranges::all_of(peers_, free) || !std::ranges::all_of(requests_, free);
}

/// Kernels of a rank run one after another, on all ranks in the same order: messages after the collectives.
bool Batch::may_transfer() const {
  if (transferred_ || peers_.empty()) return false;
  const bool by_kernel = peers_.front().device && !peers_.front().device->through_host();
  return !by_kernel || next_ == requests_.size();
}

void Batch::leave() {
  // While it is this batch's turn: afterwards another call may use the channels.
  if (ticket_ != 0 && (collective_ || transfers_) && communicator_->failed()) communicator_->channels().stop();
  if (ticket_ != 0 && collective_) leased_ = collective_->leased();
  collective_.reset();
  transfers_.reset();
  // Whether the calls succeeded or not, their streams must go on.
  for (const Request& request : requests_)
    if (request.device) request.device->finish();
  for (const PeerRequest& request : peers_)
    if (request.device) request.device->finish();
  if (std::exchange(ticket_, 0) != 0) communicator_->complete();
}

Result<Progress> Batch::advance() {
  if (communicator_->failed()) {
    if (collective_) collective_->abandon(communicator_->failure());
    leave();
    return communicator_->failure();
  }
  if (!communicator_->turn_of(ticket_)) return Progress::blocked;
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
  if (!collective_) make_collective(collective_, *communicator_, requests_[next_]);
  auto moved = collective_->advance();
  if (moved && *moved == Progress::done) {
    collective_.reset();
    ++next_;
  }
  return moved;
}

Result<Progress> Batch::transfer() {
  if (!transfers_) make_transfers(transfers_, *communicator_, peers_);
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
  return until;
}

Rank Batch::waits_for() const {
  if (collective_) return collective_->waits_for();
  return transfers_ ? transfers_->waits_for() : -1;
}

std::string Batch::where() const {
  if (collective_) return collective_->where();
  return transfers_ ? transfers_->where() : "its turn";
}

}  // namespace tutti
