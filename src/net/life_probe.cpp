#include "net/life_probe.h"

#include <cerrno>
#include <utility>

#include "net/reach_proof.h"

namespace tutti {

void LifeProbe::call(System& system) {
  if (wire_ && system.peer_address(wire_->socket())) turned_away_ = 0;  // the last one found somebody who is slow
  wire_.reset();
  called_ns_ = system.now_ns();
  const std::size_t nth = calls_++ % line_.addresses.size();
  auto probe = make_probe(line_.key, static_cast<std::size_t>(line_.from), line_.to, nth);
  if (!probe) return;
  auto socket = system.connect(line_.addresses[nth]);
  if (!socket) return fail(socket.error());
  probe_ = *std::move(probe);
  wire_.emplace(system, *std::move(socket));
  wire_->queue(probe_);
}

/// A network that brings nothing says nothing of the rank.
void LifeProbe::fail(const Error& error) {
  wire_.reset();
  const bool refused = error.sys_errno == ECONNREFUSED || error.sys_errno == ECONNRESET || error.code == Code::remote;
  turned_away_ = refused ? turned_away_ + 1 : 0;
}

bool LifeProbe::advance(System& system, std::int64_t every_ns) {
  if (line_.addresses.empty()) return false;
  if (calls_ == 0 || system.now_ns() - called_ns_ >= every_ns) call(system);
  if (!wire_) return false;
  const auto sent = wire_->flush();
  auto answer = wire_->take(probe_answer_bytes);
  if (!answer || (!sent && !*answer)) {
    fail(answer ? sent.error() : answer.error());
    return false;
  }
  if (!*answer) return false;
  wire_.reset();
  turned_away_ = 0;
  return is_probe_answer(line_.key.secret, probe_, **answer);
}

}  // namespace tutti
