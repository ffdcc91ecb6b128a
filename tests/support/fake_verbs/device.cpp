// Devices: how many there are, what they and their ports can, and their asynchronous events.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "exports.h"
#include "faults.h"
#include "identity.h"
#include "objects.h"
#include "post.h"

namespace tutti::testing::fake_verbs {

void OpenContext::raise(const verbs::AsyncEvent& event) {
  const std::lock_guard guard(lock);
  events.push_back(event);
  wake(async_fd);
}

namespace {

constexpr int port_count = 1;

FakeDevice* make_device(int number, const Settings& settings) {
  constexpr int adapter = 1, rdma_nic = 4;
  auto* const device = new FakeDevice{};
  const bool iwarp = settings.link == Link::iwarp;
  device->node_type = iwarp ? rdma_nic : adapter;
  device->transport = iwarp ? verbs::Transport::iwarp : verbs::Transport::infiniband;
  std::snprintf(device->name, sizeof device->name, "fake%d", number);
  std::snprintf(device->dev_name, sizeof device->dev_name, "uverbs%d", number);
  std::snprintf(device->ibdev_path, sizeof device->ibdev_path, "/sys/class/infiniband/fake%d", number);
  device->number = number;
  device->settings = settings;
  return device;
}

const FakeDevice& device_of(verbs::Context* context) {
  return static_cast<OpenContext*>(context)->own_device;
}

verbs::PortAttributes describe_port(const OpenContext& open) {
  constexpr std::uint8_t width_4x = 2, speed_25 = 32;
  const Settings& settings = open.own_device.settings;
  const PortIdentity identity = identity_of(settings, open.own_device.number);
  const bool down = (open.process->shared().ports_down.load() >> open.own_device.number & 1) != 0;
  verbs::PortAttributes port{};
  port.state = down ? verbs::PortState::down : verbs::PortState::active;
  port.max_mtu = 5;
  port.active_mtu = settings.mtu;
  port.gid_tbl_len = static_cast<int>(gid_count);
  port.max_msg_sz = 1u << 31;
  port.pkey_tbl_len = 1;
  port.lid = identity.lid;
  port.active_width = width_4x;
  port.active_speed = speed_25;
  port.phys_state = down ? 3 : 5;
  port.link_layer = identity.layer;
  return port;
}

}  // namespace
}  // namespace tutti::testing::fake_verbs

using namespace tutti::testing::fake_verbs;
namespace verbs = tutti::verbs;

extern "C" {

verbs::Device** ibv_get_device_list(int* count) {
  const Settings settings = read_settings();
  auto** const list = new verbs::Device* [static_cast<std::size_t>(settings.devices) + 1] {};
  for (int number = 0; number < settings.devices; ++number)
    list[number] = reinterpret_cast<verbs::Device*>(make_device(number, settings));
  if (count != nullptr) *count = settings.devices;
  return list;
}

void ibv_free_device_list(verbs::Device** list) {
  for (verbs::Device** at = list; *at != nullptr; ++at) delete reinterpret_cast<FakeDevice*>(*at);
  delete[] list;
}

const char* ibv_get_device_name(verbs::Device* device) {
  return reinterpret_cast<FakeDevice*>(device)->name;
}

verbs::Context* ibv_open_device(verbs::Device* device) {
  Process* const process = Process::enter();  // before the fault: that may be in the environment
  if (process == nullptr) return nullptr;
  const int fault = faults().hit(Point::open_device);
  const int events = fault != 0 ? -1 : ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  if (events < 0) {
    const int code = fault != 0 ? fault : errno;
    Process::leave();
    return errno = code, nullptr;
  }
  auto* const open = new OpenContext{};
  open->own_device = *reinterpret_cast<FakeDevice*>(device);
  open->device = reinterpret_cast<verbs::Device*>(&open->own_device);
  open->ops.alloc_mw = alloc_mw;
  open->ops.dealloc_mw = dealloc_mw;
  open->ops.poll_cq = poll_cq;
  open->ops.req_notify_cq = req_notify_cq;
  open->ops.post_send = post_send;
  open->ops.post_recv = post_recv;
  open->cmd_fd = -1;
  open->async_fd = events;
  open->num_comp_vectors = 2;
  pthread_mutex_init(&open->mutex, nullptr);
  open->process = process;
  process->add(open);
  add(counters().contexts);
  return open;
}

int ibv_close_device(verbs::Context* context) {
  auto* const open = static_cast<OpenContext*>(context);
  open->process->remove(open);
  ::close(open->async_fd);
  pthread_mutex_destroy(&open->mutex);
  delete open;
  add(counters().contexts, ~std::uint64_t{0});
  Process::leave();
  return 0;
}

int ibv_query_device(verbs::Context* context, verbs::DeviceAttributes* attributes) {
  const Settings& settings = device_of(context).settings;
  *attributes = {};
  std::snprintf(attributes->fw_ver, sizeof attributes->fw_ver, "fake");
  attributes->node_guid = attributes->sys_image_guid = 0xfa4e0000u + static_cast<unsigned>(device_of(context).number);
  attributes->max_mr_size = ~std::uint64_t{0};
  attributes->page_size_cap = 4096;
  attributes->max_qp = static_cast<int>(qp_slots);
  attributes->max_qp_wr = static_cast<int>(settings.max_qp_wr);
  attributes->max_sge = static_cast<int>(max_sge);
  attributes->max_cq = static_cast<int>(cq_slots);
  attributes->max_cqe = static_cast<int>(settings.max_cqe);
  attributes->max_mr = static_cast<int>(mr_slots);
  attributes->max_pd = static_cast<int>(mr_slots);
  attributes->max_pkeys = 1;
  if (settings.windows) attributes->device_cap_flags = verbs::device_capability::windows_2b;
  attributes->phys_port_cnt = port_count;
  return 0;
}

int ibv_query_port(verbs::Context* context, std::uint8_t port, verbs::PortAttributes* attributes) {
  if (const int fault = faults().hit(Point::query_port)) return fault;
  if (port != port_count) return EINVAL;
  *attributes = describe_port(*static_cast<OpenContext*>(context));
  return 0;
}

int ibv_query_gid(verbs::Context* context, std::uint8_t port, int index, verbs::Gid* gid) {
  verbs::GidEntry entry;
  const int code = _ibv_query_gid_ex(context, port, static_cast<std::uint32_t>(index), &entry, 0, sizeof entry);
  if (code != 0) return errno = code, -1;
  *gid = entry.gid;
  return 0;
}

int _ibv_query_gid_ex(verbs::Context* context, std::uint32_t port, std::uint32_t index, verbs::GidEntry* entry,
                      std::uint32_t flags, std::size_t entry_size) {
  if (const int fault = faults().hit(Point::query_gid)) return fault;
  if (port != port_count || index >= gid_count || flags != 0 || entry_size < sizeof *entry) return EINVAL;
  const Settings& settings = device_of(context).settings;
  const PortIdentity identity = identity_of(settings, device_of(context).number);
  if (identity.gids[index] == verbs::Gid{}) return ENODATA;
  *entry = {.gid = identity.gids[index], .gid_index = index, .port_num = port, .gid_type = type_of(settings, index)};
  return 0;
}

int ibv_get_async_event(verbs::Context* context, verbs::AsyncEvent* event) {
  auto& open = *static_cast<OpenContext*>(context);
  for (;;) {
    std::uint64_t one = 0;
    if (::read(open.async_fd, &one, sizeof one) != sizeof one) return -1;
    const std::lock_guard guard(open.lock);
    if (open.events.empty()) continue;  // of a queue that is gone
    *event = open.events.front();
    open.events.pop_front();
    return 0;
  }
}

void ibv_ack_async_event(verbs::AsyncEvent*) {}

int ibv_fork_init() {
  return 0;
}

int ibv_is_fork_initialized() {
  return 2;  // not needed
}
}
