#include "process/rdma_devices.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/descriptors.h"
#include "base/printable.h"

namespace tutti {
namespace {

constexpr const char* kernel_list = "/sys/class/infiniband";

Error no_device() {
  return {.code = Code::system, .what = "this machine has no RDMA device"};
}

/// What a user can do about ports that are there and cannot be used.
std::string remedy(const Config& config, const verbs::PortList& list) {
  if (const auto& names = config.text("TUTTI_IB_HCA"); list.excluded)
    return fmt::format("; TUTTI_IB_HCA={} decides which may be", names);
  if (list.unopened) return "; in a container, /dev/infiniband must be visible and may be opened";
  return {};
}

/// Ends with the devices: those that only it has are closed at the next event, as after a port that was down.
class DeviceEvents final : public Task {
 public:
  DeviceEvents(std::vector<std::shared_ptr<verbs::OpenDevice>> devices, Log& log)
      : devices_(std::move(devices)), log_(log) {}

  bool advance() override {
    std::erase_if(devices_, [](const auto& device) { return device.use_count() == 1; });
    for (const auto& device : devices_) {
      verbs::AsyncEvent event{};
      while (device->library->ibv_get_async_event(device->context, &event) == 0) {
        say(device, event);
        note(device, event);
        device->library->ibv_ack_async_event(&event);  // until then, what it names exists
      }
    }
    return !devices_.empty();
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

  static void note(const std::shared_ptr<verbs::OpenDevice>& device, const verbs::AsyncEvent& event) {
    const char* const words = device->library->ibv_event_type_str(event.type);
    if (event.type == verbs::EventType::device_fatal) device->faults.add(nullptr, words);
    if (event.type == verbs::EventType::cq_error) device->faults.add(event.cq, words);
    if (event.type == verbs::EventType::qp_fatal) device->faults.add(event.qp->send_cq, words);
  }

  std::vector<std::shared_ptr<verbs::OpenDevice>> devices_;
  Log& log_;
};

}  // namespace

Result<std::vector<verbs::Port>> RdmaDevices::ports(System& system, const Config& config, Log& log) {
  constexpr std::int64_t look_again_ns = 1'000'000'000;
  const std::lock_guard lock(mutex_);
  const std::int64_t now = system.now_ns();
  if (!known_ || now - looked_ns_ >= look_again_ns) {
    known_ = look(config, log);
    looked_ns_ = now;
  }
  if (*known_) return **known_;
  return Error(known_->error());
}

Result<std::vector<verbs::Port>> RdmaDevices::look(const Config& config, Log& log) {
  const std::string& path = config.text("TUTTI_IB_LIBRARY");
  std::error_code none;
  // Loading the library takes a millisecond, which most machines need not spend.
  if (path.empty() && (std::filesystem::is_empty(kernel_list, none) || none)) return no_device();
  const HeldStdio held;  // for the descriptors of the devices
  if (!library_) {
    auto library = verbs::Library::load(path);
    if (!library) {
      if (std::exchange(said_, library.error().what) != library.error().what)
        log.warn("RDMA", "RDMA is not used: {}", library.error().text());
      return std::move(library).error();
    }
    library_ = *std::move(library);
    (void)library_->ibv_fork_init();
  }
  auto list = TUTTI_TRY(verbs::list_ports(library_,
                                          {.verbs_library = path,
                                           .names = config.text("TUTTI_IB_HCA"),
                                           .gid_index = static_cast<int>(config.integer("TUTTI_IB_GID_INDEX"))},
                                          devices_));
  devices_.clear();
  for (const verbs::Port& port : list.ports)
    if (std::ranges::count(devices_, port.device) == 0) devices_.push_back(port.device);
  const std::string left_out = joined(list.left_out, ", ");
  say(list, left_out, config, log);
  if (!list.ports.empty()) return std::move(list.ports);
  if (left_out.empty()) return no_device();
  return Error{.code = Code::system, .what = fmt::format("no RDMA port can be used: {}", left_out)};
}

/// If it differs from the last time.
void RdmaDevices::say(const verbs::PortList& list, const std::string& left_out, const Config& config, Log& log) {
  std::vector<std::string> used;
  for (const verbs::Port& port : list.ports) used.push_back(port.text());
  std::string line = fmt::format("ports: {}; left out: {}", used.empty() ? "none" : joined(used, ", "),
                                 left_out.empty() ? "none" : left_out);
  if (std::exchange(said_, line) == line) return;
  if (used.empty() && !left_out.empty())
    log.warn("RDMA", "no port can be used: {}{}", left_out, remedy(config, list));
  else if (list.unmet)
    log.warn("RDMA", "{}", line);
  else
    log.info(LogTopic::net, "RDMA", "{}", line);
}

bool RdmaDevices::is_news(const std::string& why) {
  constexpr std::size_t kept = 100;  // reasons with numbers in them may be many
  const std::lock_guard lock(mutex_);
  return reasons_.size() < kept && reasons_.insert(why).second;
}

std::shared_ptr<Task> RdmaDevices::events(Log& log) {
  const std::lock_guard lock(mutex_);
  std::erase_if(watched_, [](const auto& known) { return known.expired(); });
  const auto is_watched = [this](const std::shared_ptr<verbs::OpenDevice>& device) {
    return std::ranges::any_of(watched_, [&](const auto& known) { return known.lock() == device; });
  };
  std::vector<std::shared_ptr<verbs::OpenDevice>> devices;
  for (const auto& device : devices_)
    if (!is_watched(device) && verbs::stop_blocking(device->context->async_fd)) devices.push_back(device);
  watched_.insert(watched_.end(), devices.begin(), devices.end());
  return devices.empty() ? nullptr : std::make_shared<DeviceEvents>(std::move(devices), log);
}

}  // namespace tutti
