#include "submit/batch.h"

#include <algorithm>

#include "submit/operations.h"

namespace tutti {

Batch::~Batch() {
  leave();
}

void Batch::add(const Request& request) {
  requests_.push_back(request);
  collectives_.push_back(make_collective(*communicator_, requests_.back()));
}

void Batch::enqueue() {
  ticket_ = communicator_->take_ticket();
  if (!peers_.empty()) transfers_ = make_transfers(*communicator_, peers_);
  DeviceSide* const device = communicator_->device();
  if (device == nullptr) return;
  for (const Request& request : requests_) device->count(request);
  for (const PeerRequest& request : peers_) device->count(request);
}

void Batch::leave() {
  if (ticket_ == 0) return;
  ticket_ = 0;
  if (has_collective()) leased_ = collectives_[next_]->leased();
  collectives_.clear();
  transfers_.reset();
  communicator_->complete();
}

Result<Progress> Batch::advance() {
  if (communicator_->failed()) {
    if (has_collective()) collectives_[next_]->abandon(communicator_->failure());
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

Result<Progress> Batch::work() {
  Progress progress = Progress::blocked;
  if (has_collective()) {
    auto moved = collectives_[next_]->advance();
    if (!moved) return moved;
    if (*moved != Progress::blocked) progress = Progress::moved;
    if (*moved == Progress::done) collectives_[next_++].reset();
  }
  if (transfers_) {
    auto moved = transfers_->advance();
    if (!moved) return moved;
    if (*moved != Progress::blocked) progress = Progress::moved;
    if (*moved == Progress::done) transfers_.reset();
  }
  return transfers_ || has_collective() ? progress : Progress::done;
}

Result<void> Batch::poll_peers() {
  Result<void> looked;
  if (ticket_ == 0 || !communicator_->turn_of(ticket_)) return looked;
  if (has_collective()) looked = collectives_[next_]->poll_peers();
  if (looked && transfers_) looked = transfers_->poll_peers();
  if (!looked) communicator_->fail(looked.error());
  return looked;
}

std::int64_t Batch::poll_set(std::vector<PollItem>& items) const {
  std::int64_t until = 0;
  const auto sooner = [&until](std::int64_t other) {
    if (other != 0) until = until == 0 ? other : std::min(until, other);
  };
  if (ticket_ == 0 || !communicator_->turn_of(ticket_)) return until;
  if (has_collective()) sooner(collectives_[next_]->poll_set(items));
  if (transfers_) sooner(transfers_->poll_set(items));
  return until;
}

std::string Batch::where() const {
  if (ticket_ == 0 || !communicator_->turn_of(ticket_)) return "its turn";
  if (has_collective()) return collectives_[next_]->where();
  return transfers_ ? transfers_->where() : "its end";
}

}  // namespace tutti
