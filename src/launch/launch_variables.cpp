#include "launch/launch_variables.h"

#include <charconv>

#include <fmt/format.h>

#include "base/printable.h"

namespace tutti::launchers {
namespace {

Error wrong(std::string what) {
  return {.code = Code::invalid_argument, .what = std::move(what)};
}

/// Makes launchers' values, which are foreign text, fit to show.
std::string shown(const std::string& text) {
  return printable(text, 200);
}

Result<int> to_number(const std::string& name, const std::string& text) {
  int value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size())
    return wrong(fmt::format("{}=\"{}\" is not a number", name, shown(text)));
  return value;
}

}  // namespace

std::optional<std::string> Variables::text(const char* name) const {
  auto value = environment_(name);
  if (value && value->empty()) return std::nullopt;
  return value;
}

Result<std::optional<int>> Variables::number(const char* name) const {
  const auto value = text(name);
  if (!value) return std::optional<int>();
  return std::optional<int>(TUTTI_TRY(to_number(name, *value)));
}

Found Variables::rank_and_ranks(const char* launcher, const char* rank, const char* ranks) const {
  auto r = TUTTI_TRY(number(rank));
  auto n = TUTTI_TRY(number(ranks));
  if (!r && !n) return std::optional<LaunchInfo>();
  if (!r || !n)
    return Error{.code = Code::invalid_usage,
                 .what = fmt::format("{} is set, but {} is not", r ? rank : ranks, r ? ranks : rank)};
  if (*n < 1) return wrong(fmt::format("{}={}: a job has at least one rank", ranks, *n));
  if (*r < 0 || *r >= *n)
    return wrong(fmt::format("{}={} is not one of the ranks 0 to {} that {}={} gives", rank, *r, *n - 1, ranks, *n));
  LaunchInfo launch;
  launch.rank = *r;
  launch.ranks = *n;
  launch.launcher = launcher;
  return std::optional(std::move(launch));
}

Result<void> Variables::local(LaunchInfo& launch, const char* local_rank, const char* local_ranks) const {
  const auto ranks = TUTTI_TRY(number(local_ranks));
  if (ranks && (*ranks < 1 || *ranks > launch.ranks))
    return wrong(fmt::format("{}={} does not fit {} ranks", local_ranks, *ranks, launch.ranks));
  launch.local_ranks = ranks.value_or(-1);
  return local(launch, local_rank);
}

Result<void> Variables::local(LaunchInfo& launch, const char* local_rank) const {
  auto rank = TUTTI_TRY(number(local_rank));
  if (rank && (*rank < 0 || *rank >= (launch.local_ranks > 0 ? launch.local_ranks : launch.ranks)))
    return wrong(fmt::format("{}={} is not one of {} local ranks", local_rank, *rank,
                             launch.local_ranks > 0 ? launch.local_ranks : launch.ranks));
  launch.local_rank = rank.value_or(-1);
  return {};
}

Result<SocketAddress> read_address(const std::string& name, const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return wrong(fmt::format("{}=\"{}\" is not host:port", name, shown(text)));
  const int port = TUTTI_TRY(to_number(name, text.substr(colon + 1)));
  if (port < 1 || port > 65535) return wrong(fmt::format("{}: port {} is not in 1 to 65535", name, port));
  std::string host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty()) return wrong(fmt::format("{}=\"{}\" is not host:port", name, shown(text)));
  return SocketAddress{.host = host == "localhost" ? "127.0.0.1" : host, .port = static_cast<std::uint16_t>(port)};
}

}  // namespace tutti::launchers
