// Why the tries of a call have failed, and when the next one is due.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace tutti::bootstrap {

/// Of one call, whose tries take all its addresses in turn. The pauses grow.
class FailedTries {
 public:
  enum class Why { refused, no_port, other };

  /// Ranks that were refused together try again at different times.
  FailedTries(int rank, std::size_t addresses) : spread_ns_(rank % 16 * ms), addresses_(addresses) {}

  void add(std::string words, Why why, std::int64_t now_ns) {
    last_ = std::move(words);
    if (alike_ == 0 || why_ != why) {
      why_ = why;
      alike_ = 0;
      alike_since_ns_ = now_ns;
    }
    ++alike_;
    ++count_;
    next_ns_ = now_ns + pause_ns_ + spread_ns_;
    pause_ns_ = std::min(2 * pause_ns_, 250 * ms);
  }

  int count() const { return count_; }
  /// The words about the last one.
  const std::string& last() const { return last_; }
  std::int64_t next_ns() const { return next_ns_; }
  /// Whether the last tries at all addresses, for at least so long, had the same reason.
  bool alike(Why why, std::int64_t for_ns, std::int64_t now_ns) const {
    return why_ == why && alike_ >= addresses_ && now_ns - alike_since_ns_ >= for_ns;
  }

 private:
  static constexpr std::int64_t ms = 1'000'000;

  std::int64_t spread_ns_;
  std::size_t addresses_;
  std::string last_ = "not tried yet";
  int count_ = 0;
  Why why_ = Why::other;             ///< of the last try,
  std::size_t alike_ = 0;            ///< and of so many in a row
  std::int64_t alike_since_ns_ = 0;  ///< the first of these
  std::int64_t next_ns_ = 0;
  std::int64_t pause_ns_ = 10 * ms;
};

}  // namespace tutti::bootstrap
