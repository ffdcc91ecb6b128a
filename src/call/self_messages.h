// Messages of a rank to itself.
#pragma once

#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "call/request.h"
#include "plan/amount.h"

namespace tutti {

/// Whether the sends and receives of one group match, of which the k-th send goes to the k-th receive. Errors:
/// invalid_usage.
inline Result<void> check_self_messages(std::span<const PeerRequest* const> sends,
                                        std::span<const PeerRequest* const> receives, Rank rank) {
  const auto differ = [rank](std::string what) {
    return Error{.code = Code::invalid_usage, .what = std::move(what), .peer = rank};
  };
  if (sends.size() != receives.size())
    return differ(
        fmt::format("a group has {} sends to this rank itself but {} receives from it", sends.size(), receives.size()));
  const auto amount_of = [](const PeerRequest& one) { return amount(one.bytes, static_cast<std::uint32_t>(one.type)); };
  for (std::size_t k = 0; k < sends.size(); ++k)
    if (sends[k]->bytes != receives[k]->bytes || sends[k]->type != receives[k]->type)
      return differ(fmt::format("a send of {} to this rank itself matches a receive of {}", amount_of(*sends[k]),
                                amount_of(*receives[k])));
  return {};
}

}  // namespace tutti
