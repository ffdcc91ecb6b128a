// The parts of a group that belong to one communicator and go different ways: each is queued before the next begins.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "call/operation.h"

namespace tutti {

/// Streams hold each other up if two ranks queue the same calls in different orders.
class InOrder final : public Operation {
 public:
  void add(std::unique_ptr<Operation> part) { parts_.push_back(std::move(part)); }

  void enqueue() override {
    for (auto& part : parts_) part->enqueue();
  }
  Result<Progress> advance() override {
    auto progress = parts_[next_]->advance();
    if (!progress || *progress != Progress::done) return progress;
    return ++next_ == parts_.size() ? Progress::done : Progress::moved;
  }
  Communicator* communicator() override { return parts_.front()->communicator(); }
  Result<void> poll_peers() override { return current().poll_peers(); }
  std::string where() const override { return current().where(); }
  Rank waits_for() const override { return current().waits_for(); }
  std::int64_t poll_set(std::vector<PollItem>& items) const override { return current().poll_set(items); }

 private:
  Operation& current() const { return *parts_[std::min(next_, parts_.size() - 1)]; }

  std::vector<std::unique_ptr<Operation>> parts_;
  std::size_t next_ = 0;
};

}  // namespace tutti
