#include "process/rdma_devices.h"

#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti {
namespace {

constexpr const char* kernel_list = "/sys/class/infiniband";

Result<std::vector<verbs::Port>> find_ports(const Config& config, Log& log) {
  const std::string& path = config.text("TUTTI_IB_LIBRARY");
  std::error_code none;
  // Loading the library takes a millisecond, which most machines need not spend.
  if (path.empty() && std::filesystem::is_empty(kernel_list, none))
    return Error{.code = Code::system, .what = "this machine has no RDMA device"};
  if (none) return Error{.code = Code::system, .what = "this machine has no RDMA device"};
  auto library = verbs::Library::load(path);
  if (!library) return std::move(library).error();
  (void)(*library)->ibv_fork_init();
  auto list = verbs::list_ports(*library, {.names = config.text("TUTTI_IB_HCA"),
                                           .gid_index = static_cast<int>(config.integer("TUTTI_IB_GID_INDEX"))});
  if (!list) return std::move(list).error();
  std::vector<std::string> used;
  for (const verbs::Port& port : list->ports) used.push_back(port.text());
  log.info(LogTopic::net, "RDMA", "ports: {}; left out: {}",
           used.empty() ? "none" : fmt::format("{}", fmt::join(used, ", ")),
           list->left_out.empty() ? "none" : fmt::format("{}", fmt::join(list->left_out, ", ")));
  if (!list->ports.empty()) return std::move(list->ports);
  return Error{.code = Code::system,
               .what = list->left_out.empty()
                           ? "this machine has no RDMA device"
                           : fmt::format("no RDMA port can be used: {}", fmt::join(list->left_out, ", "))};
}

}  // namespace

Result<std::vector<verbs::Port>> RdmaDevices::ports(const Config& config, Log& log) {
  const std::lock_guard lock(mutex_);
  if (!known_) known_ = find_ports(config, log);
  if (*known_) return **known_;
  return Error(known_->error());
}

}  // namespace tutti
