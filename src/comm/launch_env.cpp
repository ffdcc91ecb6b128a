#include "comm/launch_env.h"

#include <charconv>

#include <fmt/format.h>

namespace tutti {
namespace {

struct Names {
  const char* launcher;
  const char* rank;
  const char* ranks;
};

constexpr Names known[] = {{"tutti", "TUTTI_RANK", "TUTTI_NRANKS"},
                           {"torchrun", "RANK", "WORLD_SIZE"},
                           {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}};

Result<int> number(const char* name, const std::string& text) {
  int value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size())
    return Error{.code = Code::invalid_argument, .what = fmt::format("{}=\"{}\" is not a number", name, text)};
  return value;
}

Result<SocketAddress> address(const char* name, const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return Error{.code = Code::invalid_argument, .what = fmt::format("{}=\"{}\" is not host:port", name, text)};
  auto port = number(name, text.substr(colon + 1));
  if (!port) return std::move(port).error();
  if (*port < 1 || *port > 65535)
    return Error{.code = Code::invalid_argument, .what = fmt::format("{}: port {} is not in 1 to 65535", name, *port)};
  std::string host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return SocketAddress{.host = host == "localhost" ? "127.0.0.1" : host, .port = static_cast<std::uint16_t>(*port)};
}

Result<void> read_root(const Environment& environment, LaunchInfo& launch) {
  if (const auto id = environment("TUTTI_COMM_ID"); id && !id->empty()) {
    auto root = address("TUTTI_COMM_ID", *id);
    if (!root) return std::move(root).error();
    launch.root = *root;
    return {};
  }
  const auto host = environment("MASTER_ADDR");
  const auto port = environment("MASTER_PORT");
  if (!host || !port) return {};
  auto master = address("MASTER_ADDR:MASTER_PORT", *host + ":" + *port);
  if (!master) return std::move(master).error();
  if (master->port == 65535)
    return Error{.code = Code::invalid_argument, .what = "MASTER_PORT is 65535: the port after it is needed"};
  ++master->port;  // MASTER_PORT itself is the launcher's own store
  launch.root = *master;
  return {};
}

}  // namespace

Result<LaunchInfo> read_launch(const Environment& environment) {
  for (const auto& names : known) {
    const auto rank = environment(names.rank);
    const auto ranks = environment(names.ranks);
    if (!rank || !ranks) continue;
    LaunchInfo launch{.root = {}, .job = {}, .launcher = names.launcher};
    auto r = number(names.rank, *rank);
    if (!r) return std::move(r).error();
    auto n = number(names.ranks, *ranks);
    if (!n) return std::move(n).error();
    if (*n < 1 || *r < 0 || *r >= *n)
      return Error{.code = Code::invalid_argument,
                   .what = fmt::format("{}={} and {}={} do not fit together", names.rank, *r, names.ranks, *n)};
    launch.rank = *r;
    launch.ranks = *n;
    if (auto root = read_root(environment, launch); !root) return std::move(root).error();
    for (const char* job : {"TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"})
      if (const auto value = environment(job)) launch.job += *value + "/";
    if (launch.root) launch.job += fmt::format("{}:{}", launch.root->host, launch.root->port);
    return launch;
  }
  return Error{
      .code = Code::invalid_usage,
      .what =
          "no rank in the environment: set TUTTI_RANK and TUTTI_NRANKS (and TUTTI_COMM_ID=host:port), or start "
          "under torchrun or mpirun"};
}

}  // namespace tutti
