// Reads a launcher's variables: checks that numbers fit together, with errors that name those that do not.
#pragma once

#include <optional>
#include <string>

#include "launch/launchers.h"

namespace tutti::launchers {

class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  /// Nothing if it is not set, or empty.
  std::optional<std::string> text(const char* name) const;
  bool has(const char* name) const { return text(name).has_value(); }
  /// Errors: invalid_argument (not a whole number that fits an int).
  Result<std::optional<int>> number(const char* name) const;

  /// A launcher's rank and number of ranks; nothing if neither is set. Errors: invalid_usage (one of them is missing),
  /// invalid_argument.
  Found rank_and_ranks(const char* launcher, const char* rank, const char* ranks) const;
  /// Local rank and number of local ranks, as far as they are set. Errors: invalid_argument (they do not fit together).
  Result<void> local(LaunchInfo& launch, const char* local_rank, const char* local_ranks) const;
  Result<void> local(LaunchInfo& launch, const char* local_rank) const;

 private:
  const Environment& environment_;
};

/// Parses host:port or [v6]:port. Errors: invalid_argument, which contains `name`.
Result<SocketAddress> read_address(const std::string& name, const std::string& text);

}  // namespace tutti::launchers
