// How a rank that cannot take part in a start lets all ranks know why.
#pragma once

#include <cstdint>
#include <vector>

#include "base/system.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/bootstrap_call.h"
#include "net/unique_id.h"

namespace tutti::bootstrap {

/// Calls the root of the id, as a rank does, and gives it the reason in place of a join; the root makes it the error of
/// all ranks, those that come later included. A Task; it ends when the root has answered or cannot be told, at the
/// deadline at the latest.
class Excuse final : public Task {
 public:
  Excuse(System& system, const UniqueId& id, Bootstrap::Who who, const Error& why, std::int64_t deadline_ns);
  Excuse(const Excuse&) = delete;
  Excuse& operator=(const Excuse&) = delete;

  bool advance() override;
  std::int64_t poll_set(std::vector<PollItem>& items) override;

 private:
  System& system_;
  UniqueId id_;
  const Bootstrap::Who who_;
  const std::int64_t deadline_ns_;
  Call call_;
};

}  // namespace tutti::bootstrap
