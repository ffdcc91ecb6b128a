// What the log of the root says of a start: who is missing for long, and in the end how the ranks met.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "bootstrap/bootstrap.h"
#include "bootstrap/bootstrap_tree.h"
#include "bootstrap/roster.h"

namespace tutti::bootstrap {

/// Each of it once, for each wait and for each start.
class StartReport {
 public:
  /// `missing_ms`: see BootstrapLimits.
  StartReport(BootstrapLog log, std::int64_t missing_ms) : log_(std::move(log)), missing_ms_(missing_ms) {}

  /// When to say who is missing in a wait that began then; none: it has been said, or is not wanted.
  std::optional<std::int64_t> missing_ns(std::int64_t since_ns) const {
    if (!log_.warn || missing_ms_ <= 0 || said_missing_since_ns_ == since_ns) return std::nullopt;
    return since_ns + missing_ms_ * 1'000'000;
  }
  void say_missing(std::int64_t since_ns, const std::string& words) {
    said_missing_since_ns_ = since_ns;
    log_.warn(words);
  }

  void count_sockets(std::size_t now) { sockets_most_ = std::max(sockets_most_, now); }
  bool said_met() const { return said_met_; }
  /// `refused`: connections, refusals and those of other ranks together.
  void say_met(int ranks, const Tree& tree, const Refusals& refusals, std::uint64_t refused) {
    said_met_ = true;
    if (log_.info)
      log_.info(fmt::format(
          "init: {} ranks met in a tree of depth {}, at most {} below each; the root had at most {} sockets", ranks,
          tree.depth(), tree.widest(), sockets_most_));
    if (refused > 0 && log_.warn)
      log_.warn(fmt::format("init: all {} ranks are here. {}", ranks, refusals.words(refused)));
  }

 private:
  BootstrapLog log_;
  std::int64_t missing_ms_;
  std::int64_t said_missing_since_ns_ = -1;
  std::size_t sockets_most_ = 0;
  bool said_met_ = false;
};

}  // namespace tutti::bootstrap
