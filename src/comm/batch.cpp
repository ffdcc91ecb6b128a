#include "comm/batch.h"

namespace tutti {

Batch::~Batch() {
  leave();
}

void Batch::enqueue() {
  ticket_ = communicator_->take_ticket();
}

void Batch::leave() {
  if (ticket_ == 0) return;
  ticket_ = 0;
  if (call_) lent_ = call_->lent();
  call_.reset();
  gpu_call_.reset();
  transfers_.reset();
  communicator_->complete();
}

Result<Progress> Batch::advance() {
  if (communicator_->failed()) {
    if (call_) (void)call_->abandon(communicator_->failure());
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
  const Request& request = collectives_[next_];
  if (request.on_gpu) {
    if (!gpu_call_) gpu_call_.emplace(*communicator_, request);
    return gpu_call_->advance();
  }
  if (!call_) call_.emplace(*communicator_, request);
  return call_->advance();
}

Result<Progress> Batch::work() {
  Progress progress = Progress::blocked;
  if (next_ < collectives_.size()) {
    auto moved = collective();
    if (!moved) return moved;
    if (*moved != Progress::blocked) progress = Progress::moved;
    if (*moved == Progress::done) {
      call_.reset();
      gpu_call_.reset();
      ++next_;
    }
  }
  if (!transferred_) {
    if (!transfers_) transfers_.emplace(*communicator_, peers_);
    auto moved = transfers_->advance();
    if (!moved) return moved;
    if (*moved != Progress::blocked) progress = Progress::moved;
    transferred_ = *moved == Progress::done;
  }
  return transferred_ && next_ == collectives_.size() ? Progress::done : progress;
}

Result<void> Batch::look_around() {
  Result<void> looked;
  if (call_) looked = call_->look_around();
  if (gpu_call_) looked = gpu_call_->look_around();
  if (looked && transfers_ && !transferred_) looked = transfers_->look_around();
  if (!looked) communicator_->fail(looked.error());
  return looked;
}

std::int64_t Batch::interests(std::vector<PollItem>& items) const {
  std::int64_t until = 0;
  if (call_) until = call_->interests(items);
  if (!transfers_ || transferred_) return until;
  const std::int64_t transfers = transfers_->interests(items);
  return until == 0 ? transfers : std::min(until, transfers);
}

std::string Batch::where() const {
  if (call_) return call_->where();
  if (gpu_call_) return gpu_call_->where();
  if (transfers_ && !transferred_) return transfers_->where();
  return "its turn";
}

}  // namespace tutti
