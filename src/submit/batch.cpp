#include "submit/batch.h"

#include <algorithm>

#include <fmt/format.h>

#include "gpu/gpu_context.h"
#include "gpu/host_staged_call.h"

namespace tutti {

namespace {

/// A GPU rings no bell: how often to look for what it brings.
constexpr std::int64_t gpu_look_ns = 50'000;

}  // namespace

Batch::~Batch() {
  leave();
  finish_host_staged();
}

void Batch::enqueue() {
  ticket_ = communicator_->take_ticket();
  GpuContext* const context = gpu_context(*communicator_);
  if (context == nullptr) return;
  for (const Request& request : collectives_)
    if (!request.host_staged) context->count_collective();
  for (const PeerRequest& request : peers_) {
    if (request.host_staged) continue;
    if (request.send)
      context->stream_order->sent(communicator_->rank(), request.peer);
    else
      (void)context->next_receive(request.peer);
  }
}

/// Whatever became of them, streams go on.
void Batch::finish_host_staged() {
  for (const Request& request : collectives_)
    if (request.host_staged) request.host_staged->finish();
  for (const PeerRequest& request : peers_)
    if (request.host_staged) request.host_staged->finish();
}

void Batch::leave() {
  if (ticket_ == 0) return;
  ticket_ = 0;
  // A stage is used by no other call after a failure, so peers may still write there.
  if (call_ && !collectives_[next_].host_staged) leased_ = call_->leased();
  call_.reset();
  gpu_call_.reset();
  gpu_peer_call_.reset();
  transfers_.reset();
  finish_host_staged();
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
  Request& request = collectives_[next_];
  if (request.host_staged && !begun()) {
    if (!request.host_staged->landed()) return Progress::blocked;
    if (request.peers) {
      gpu_peer_call_.emplace(*communicator_, request);
    } else {
      request.input = request.host_staged->input();
      request.output = request.host_staged->output();
    }
  } else if (request.on_gpu && !request.host_staged) {
    if (!gpu_call_) gpu_call_.emplace(*communicator_, request);
    return gpu_call_->advance();
  }
  if (gpu_peer_call_) return gpu_peer_call_->advance();
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
      gpu_peer_call_.reset();
      if (collectives_[next_].host_staged) collectives_[next_].host_staged->finish();
      ++next_;
    }
  }
  if (!transferred_ && (transfers_ || peers_landed())) {
    if (!transfers_) transfers_.emplace(*communicator_, peers_);
    auto moved = transfers_->advance();
    if (!moved) return moved;
    if (*moved != Progress::blocked) progress = Progress::moved;
    transferred_ = *moved == Progress::done;
  }
  return transferred_ && next_ == collectives_.size() ? Progress::done : progress;
}

/// All of them: then they know where their buffers are.
bool Batch::peers_landed() {
  for (PeerRequest& request : peers_) {
    if (!request.host_staged) continue;
    if (!request.host_staged->landed()) return false;
    request.data = request.send ? request.host_staged->input() : request.host_staged->output();
  }
  return true;
}

bool Batch::awaits_gpu() const {
  if (gpu_peer_call_ && gpu_peer_call_->awaits_gpu()) return true;
  const bool collective = next_ < collectives_.size() && collectives_[next_].host_staged && !begun();
  const auto host_staged = [](const PeerRequest& request) { return request.host_staged != nullptr; };
  return collective || (!transferred_ && !transfers_ && std::ranges::any_of(peers_, host_staged));
}

Result<void> Batch::poll_peers() {
  Result<void> looked;
  if (call_) looked = call_->poll_peers();
  if (gpu_call_) looked = gpu_call_->poll_peers();
  if (gpu_peer_call_) looked = gpu_peer_call_->poll_peers();
  if (looked && transfers_ && !transferred_) looked = transfers_->poll_peers();
  if (!looked) communicator_->fail(looked.error());
  return looked;
}

std::int64_t Batch::poll_set(std::vector<PollItem>& items) const {
  std::int64_t until = 0;
  const auto sooner = [&until](std::int64_t other) {
    if (other != 0) until = until == 0 ? other : std::min(until, other);
  };
  if (call_) sooner(call_->poll_set(items));
  if (transfers_ && !transferred_) sooner(transfers_->poll_set(items));
  if (awaits_gpu()) sooner(communicator_->process().system.now_ns() + gpu_look_ns);
  return until;
}

std::string Batch::where() const {
  if (call_) return call_->where();
  if (gpu_call_) return gpu_call_->where();
  if (gpu_peer_call_) return gpu_peer_call_->where();
  if (transfers_ && !transferred_) return transfers_->where();
  if (awaits_gpu() && communicator_->turn_of(ticket_))
    return fmt::format("a call that GPU {} has not come to yet", gpu_context(*communicator_)->gpu->ordinal());
  return "its turn";
}

}  // namespace tutti
