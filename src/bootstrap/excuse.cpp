#include "bootstrap/excuse.h"

#include <algorithm>
#include <utility>

#include "bootstrap/bootstrap_messages.h"

namespace tutti::bootstrap {

Excuse::Excuse(System& system, const UniqueId& id, Bootstrap::Who who, const Error& why, std::int64_t deadline_ns)
    : system_(system),
      id_(id),
      who_(std::move(who)),
      deadline_ns_(deadline_ns),
      call_(system, id_, who_, BootstrapLimits{}.handshake_ms) {
  call_.excuse(excused(who_, why));
}

/// The root answers with the failure, which is an error of the call.
bool Excuse::advance() {
  const auto answer = call_.advance();
  return answer && !*answer && system_.now_ns() < deadline_ns_;
}

std::int64_t Excuse::poll_set(std::vector<PollItem>& items) {
  return std::min(deadline_ns_, call_.poll_set(items));
}

}  // namespace tutti::bootstrap
