// Reading of a launcher's variables: numbers that have to fit each other, and sentences that name what does not.
#pragma once

#include <optional>
#include <string>

#include "launch/launchers.h"

namespace tutti::launchers {

class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  /// Nothing where it is not set, or empty.
  std::optional<std::string> text(const char* name) const;
  bool has(const char* name) const { return text(name).has_value(); }
  /// Errors: invalid_argument (not a whole number that fits an int).
  Result<std::optional<int>> number(const char* name) const;

  /// A launcher's rank and number of ranks; nothing where neither is set.
  /// Errors: invalid_usage (one of them is missing), invalid_argument.
  Found rank_and_ranks(const char* launcher, const char* rank, const char* ranks) const;
  /// Local rank and number of local ranks, as far as they are set. Errors: invalid_argument (they do not fit).
  Result<void> local(LaunchInfo& launch, const char* local_rank, const char* local_ranks) const;
  Result<void> local(LaunchInfo& launch, const char* local_rank) const;

 private:
  const Environment& environment_;
};

/// host:port, [v6]:port. Errors: invalid_argument, with `name` in it.
Result<SocketAddress> read_address(const std::string& name, const std::string& text);

}  // namespace tutti::launchers
