#include "process/rdma_devices.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/descriptors.h"

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
  const HeldStdio held;  // for the descriptors of the devices
  auto library = verbs::Library::load(path);
  if (!library) return std::move(library).error();
  (void)(*library)->ibv_fork_init();
  auto list = verbs::list_ports(*library, {.verbs_library = path,
                                           .names = config.text("TUTTI_IB_HCA"),
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

class DeviceEvents final : public Task {
 public:
  DeviceEvents(std::vector<std::shared_ptr<verbs::OpenDevice>> devices, Log& log)
      : devices_(std::move(devices)), log_(log) {}

  bool advance() override {
    for (const auto& device : devices_) {
      verbs::AsyncEvent event{};
      while (device->library->ibv_get_async_event(device->context, &event) == 0) {
        say(device, event);
        device->library->ibv_ack_async_event(&event);
      }
    }
    return true;
  }
  std::int64_t poll_set(std::vector<PollItem>& items) override {
    for (const auto& device : devices_) items.push_back({.handle = device->context->async_fd, .want_read = true});
    return std::numeric_limits<std::int64_t>::max();
  }

 private:
  void say(const std::shared_ptr<verbs::OpenDevice>& device, const verbs::AsyncEvent& event) {
    const char* const words = device->library->ibv_event_type_str(event.type);
    const bool of_port = event.type == verbs::EventType::port_active || event.type == verbs::EventType::port_error;
    const std::string where = of_port ? fmt::format("{} port {}", device->name, event.port_num) : device->name;
    if (event.type == verbs::EventType::port_active)
      log_.info(LogTopic::net, "RDMA", "{}: {}", where, words);
    else
      log_.warn("RDMA", "{}: {}", where, words);
  }

  std::vector<std::shared_ptr<verbs::OpenDevice>> devices_;
  Log& log_;
};

/// Without this, a thread that asks for an event waits for one.
bool stop_blocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

}  // namespace

Result<std::vector<verbs::Port>> RdmaDevices::ports(const Config& config, Log& log) {
  const std::lock_guard lock(mutex_);
  if (!known_) known_ = find_ports(config, log);
  if (*known_) return **known_;
  return Error(known_->error());
}

std::shared_ptr<Task> RdmaDevices::events(Log& log) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(watched_, true) || !known_ || !*known_) return nullptr;
  std::vector<std::shared_ptr<verbs::OpenDevice>> devices;
  for (const verbs::Port& port : **known_)
    if (std::ranges::count(devices, port.device) == 0 && stop_blocking(port.device->context->async_fd))
      devices.push_back(port.device);
  return std::make_shared<DeviceEvents>(std::move(devices), log);
}

}  // namespace tutti
