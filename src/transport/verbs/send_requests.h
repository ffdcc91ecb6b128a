// The requests of a queue pair's send queue: which of them are under way, and those that wait to be posted in one call.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/verbs/abi.h"

namespace tutti::verbs {

/// Counts the requests: they have numbers, and are freed in order by the next completion that was asked for.
class SendCount {
 public:
  /// `capacity`: requests under way.
  explicit SendCount(std::uint32_t capacity) : capacity_(capacity) {}

  std::uint32_t space() const { return capacity_ - (added_ - completed_); }
  std::uint32_t added() const { return added_; }
  std::uint32_t completed() const { return completed_; }

  /// Of one more request: the flag that asks for a completion, or 0. Asks often enough to free the others.
  unsigned add(bool asks) {
    assert(space() > 0);
    ++added_;
    if (!asks && added_ - signaled_ < capacity_ / 4) return 0;
    signaled_ = added_;
    return send_flag::signaled;
  }
  /// All requests up to this one are done. `number`: modulo mask + 1; what cannot be is passed over.
  void complete(std::uint32_t number, std::uint32_t mask) {
    const std::uint32_t more = (number - completed_) & mask;
    if (more <= added_ - completed_) completed_ += more;
  }

 private:
  std::uint32_t capacity_;
  std::uint32_t added_ = 0;
  std::uint32_t signaled_ = 0;  // number of the last request that asks for a completion
  std::uint32_t completed_ = 0;
};

/// The requests that were added and are not yet posted, with the memory that they name.
class WaitingSends {
 public:
  void reserve(std::size_t requests, std::size_t pieces) {
    works_.reserve(requests);
    pieces_.reserve(pieces);
  }
  bool empty() const { return works_.empty(); }

  /// The caller adds what the opcode needs.
  SendWork& add(std::uint64_t id, WorkOpcode opcode, unsigned flags, std::span<const Sge> memory = {}) {
    pieces_.insert(pieces_.end(), memory.begin(), memory.end());
    SendWork& work = works_.emplace_back();
    work.wr_id = id;
    work.opcode = opcode;
    work.send_flags = flags;
    work.num_sge = static_cast<int>(memory.size());
    return work;
  }

  /// All of them, one behind the other. Requires that there are some.
  SendWork* chain() {
    Sge* piece = pieces_.data();
    for (std::size_t i = 0; i < works_.size(); piece += works_[i++].num_sge) {
      works_[i].sg_list = piece;
      works_[i].next = i + 1 < works_.size() ? &works_[i + 1] : nullptr;
    }
    return works_.data();
  }
  void clear() {
    works_.clear();
    pieces_.clear();
  }
  /// Those in front of `work`, which is one of the chain, wait no more.
  void drop_before(const SendWork& work) {
    pieces_.erase(pieces_.begin(), pieces_.begin() + (work.sg_list - pieces_.data()));
    works_.erase(works_.begin(), works_.begin() + (&work - works_.data()));
  }

  /// Requests as SendCount counts them, of which no part, or not the last part, is posted: where a write has a header
  /// of its own, it is a part of the header's request.
  std::size_t requests() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(works_, [](const SendWork& work) { return work.opcode != WorkOpcode::rdma_write; }));
  }

 private:
  std::vector<SendWork> works_;
  std::vector<Sge> pieces_;  // theirs, one after another
};

}  // namespace tutti::verbs
