#include "init/open_root.h"

#include "bootstrap/bootstrap.h"
#include "init/refused_start.h"

namespace tutti {

Result<UniqueId> open_root(Process& process, const SocketAddress& at, const Secret& secret, const std::string& advice,
                           int ranks) {
  BootstrapLimits limits;
  limits.init_ms = process.config.integer("TUTTI_INIT_TIMEOUT_MS");
  limits.missing_report_ms = process.config.integer("TUTTI_STALL_REPORT_MS");
  const BootstrapLog log{
      .warn = [&process](const std::string& line) { process.log.warn("init", "{}", line); },
      .info = [&process](const std::string& line) { process.log.info(LogTopic::init, "init", "{}", line); }};
  auto root = [&]() -> Result<std::unique_ptr<BootstrapRoot>> {
    auto shared_listener = TUTTI_TRY(process.network.shared_listener(at));
    return BootstrapRoot::open(process.system, shared_listener, secret, limits, log);
  }();
  if (!root) return std::move(root).error().during("open the meeting point of a communicator");
  (*root)->advise(advice);
  UniqueId id{.root = (*root)->address(), .secret = secret};
  const std::shared_ptr<BootstrapRoot> shared = *std::move(root);
  if (auto served = process.service.add(shared); !served) {
    // Ranks that know the address beforehand may be calling.
    if (at.port != 0) {
      shared->excuse(/*rank=*/0, ranks, served.error());
      (void)drive_for_a_while(process.system, *shared);
    }
    return std::move(served).error();
  }
  process.pending_closes.add_root(shared);
  return id;
}

Result<UniqueId> open_root(Process& process, bool across_hosts, const std::string& advice) {
  auto secret = TUTTI_TRY(fresh_secret());
  if (!across_hosts) return open_root(process, {.host = "127.0.0.1", .port = 0}, secret, advice);
  auto addresses = TUTTI_TRY(process.network.interfaces.get(process.system, process.config, process.log));
  const std::vector<std::string> hosts = hosts_of(addresses);
  auto id = open_root(process, {.host = listening_address(hosts), .port = 0}, secret, advice);
  if (!id) return id;
  id->root.host = hosts.front();
  id->also.assign(hosts.begin() + 1, hosts.end());
  return id;
}

Result<void> close_root(Process& process, const UniqueId& id) {
  const auto root = process.pending_closes.root_of(id.secret);
  if (!root) return invalid_argument("this id was not made by this process, or all its ranks have met already");
  process.service.remove(root.get());
  return {};
}

}  // namespace tutti
