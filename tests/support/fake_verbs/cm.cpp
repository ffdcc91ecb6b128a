// librdmacm's functions for the fake's iWARP devices: connections are made through TCP, over which both ends tell their
// queue pairs, and an end may only send once it has received, unless it has connected.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>

#include "base/unique_fd.h"
#include "exports.h"
#include "identity.h"
#include "objects.h"
#include "transport/verbs/cm_abi.h"

namespace tutti::testing::fake_verbs {
namespace {

using verbs::CmEventType;
namespace q = verbs::qp_attribute;

constexpr int patience_ms = 1000;

/// What each end tells the other.
struct Introduction {
  std::uint32_t number = 0;
  verbs::Gid gid{};
  std::uint32_t data_bytes = 0;
  std::array<std::byte, 56> data{};
};

struct ConnectionEvent : verbs::CmEvent {
  Introduction introduction;
  std::int64_t not_before_ns = 0;
};

struct EventChannel : verbs::CmChannel {
  UniqueFd epoll, bell;  // `bell` is readable while there are events
  std::deque<std::unique_ptr<ConnectionEvent>> events;
};

struct Identifier : verbs::CmId {
  Settings settings;
  FakeDevice own_device{};
  verbs::Context own_context{};
  sockaddr_in own{}, peer{};
  UniqueFd socket;
  bool listens = false, connects = false;
  std::uint32_t queue_pair = 0;
  Introduction asked;  // of a request that has not been accepted yet
};

EventChannel& channel_of(const verbs::CmId* id) {
  return *static_cast<EventChannel*>(id->channel);
}

void tell(EventChannel& channel, verbs::CmId* id, CmEventType type, const Introduction& introduction = {},
          verbs::CmId* listener = nullptr) {
  auto event = std::make_unique<ConnectionEvent>();
  event->id = id;
  event->listen_id = listener;
  event->event = type;
  event->introduction = introduction;
  event->param.conn = {.private_data = event->introduction.data.data(),
                       .private_data_len = static_cast<std::uint8_t>(introduction.data_bytes)};
  channel.events.push_back(std::move(event));
  epoll_event always{.events = EPOLLOUT, .data = {}};  // a socket that can be written to
  (void)::epoll_ctl(channel.epoll.get(), EPOLL_CTL_MOD, channel.bell.get(), &always);
}

bool introduce(Identifier& id, const verbs::CmParameters& parameters) {
  Introduction introduction{.number = parameters.qp_num};
  introduction.gid = identity_of(id.settings, id.own_device.number).gids[0];
  introduction.data_bytes = std::min<std::uint32_t>(parameters.private_data_len, introduction.data.size());
  if (introduction.data_bytes > 0)
    std::memcpy(introduction.data.data(), parameters.private_data, introduction.data_bytes);
  return ::send(id.socket.get(), &introduction, sizeof introduction, MSG_NOSIGNAL) == sizeof introduction;
}

bool hear(const UniqueFd& socket, Introduction& introduction) {
  pollfd one{.fd = socket.get(), .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, patience_ms) == 1 &&
         ::recv(socket.get(), &introduction, sizeof introduction, MSG_WAITALL) == sizeof introduction;
}

/// The queue pair with that number, if it is this process's.
QueuePair* find(std::uint32_t number) {
  Process* const process = Process::current();
  if (process == nullptr) return nullptr;
  const SharedQp& shared = *process->fabric().qp_of(number);
  if (shared.number.load() != number || !process->is_own(shared.process)) return nullptr;
  return reinterpret_cast<QueuePair*>(shared.owner);
}

bool start(std::uint32_t number, const Introduction& peer, bool listens) {
  QueuePair* const pair = find(number);
  if (pair == nullptr) return false;
  pair->speaks_second = listens;
  verbs::QpAttributes ready{.qp_state = verbs::QpState::ready_to_receive, .path_mtu = 1, .dest_qp_num = peer.number};
  ready.ah_attr.port_num = 1;
  ready.ah_attr.is_global = 1;
  ready.ah_attr.grh.dgid = peer.gid;
  if (ibv_modify_qp(
          pair, &ready,
          q::state | q::av | q::path_mtu | q::dest_qpn | q::rq_psn | q::max_dest_rd_atomic | q::min_rnr_timer) != 0)
    return false;
  verbs::QpAttributes sends{.qp_state = verbs::QpState::ready_to_send, .rnr_retry = 7};
  return ibv_modify_qp(pair, &sends,
                       q::state | q::timeout | q::retry_count | q::rnr_retry | q::sq_psn | q::max_rd_atomic) == 0;
}

void set_deaf(const Identifier& id, bool deaf) {
  if (QueuePair* const pair = find(id.queue_pair)) {
    const std::lock_guard guard(pair->shared().lock);
    pair->shared().deaf = deaf;
  }
}

void watch(Identifier& id) {
  epoll_event event{.events = EPOLLIN | EPOLLONESHOT, .data = {.ptr = &id}};
  (void)::epoll_ctl(channel_of(&id).epoll.get(), EPOLL_CTL_ADD, id.socket.get(), &event);
}

/// What a socket of the channel has to say.
void look(EventChannel& channel) {
  epoll_event ready{};
  if (::epoll_wait(channel.epoll.get(), &ready, 1, 0) != 1 || ready.data.ptr == nullptr) return;
  auto& id = *static_cast<Identifier*>(ready.data.ptr);
  Introduction introduction;
  if (id.listens) {
    auto next = std::make_unique<Identifier>();
    next->channel = id.channel;
    next->settings = id.settings;
    next->own_device = id.own_device;
    next->own = id.own;
    next->socket = UniqueFd(::accept4(id.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (next->socket && hear(next->socket, introduction)) {
      next->asked = introduction;
      tell(channel, next.release(), CmEventType::connect_request, introduction, &id);
    }
    epoll_event again{.events = EPOLLIN | EPOLLONESHOT, .data = {.ptr = &id}};
    (void)::epoll_ctl(channel.epoll.get(), EPOLL_CTL_MOD, id.socket.get(), &again);
    return;
  }
  if (!id.connects) return;
  if (!hear(id.socket, introduction)) return tell(channel, &id, CmEventType::rejected);
  tell(channel, &id, start(id.queue_pair, introduction, false) ? CmEventType::established : CmEventType::connect_error);
}

}  // namespace
}  // namespace tutti::testing::fake_verbs

using namespace tutti::testing::fake_verbs;
namespace verbs = tutti::verbs;

#pragma GCC visibility push(default)
extern "C" {

verbs::CmChannel* rdma_create_event_channel() {
  auto channel = std::make_unique<EventChannel>();
  channel->epoll = tutti::UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  channel->bell = tutti::UniqueFd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  epoll_event never{.events = 0, .data = {}};
  if (::epoll_ctl(channel->epoll.get(), EPOLL_CTL_ADD, channel->bell.get(), &never) != 0) return nullptr;
  channel->fd = channel->epoll.get();
  return channel.release();
}

void rdma_destroy_event_channel(verbs::CmChannel* channel) {
  delete static_cast<EventChannel*>(channel);
}

int rdma_create_id(verbs::CmChannel* channel, verbs::CmId** id, void* context, verbs::CmPortSpace) {
  auto* const made = new Identifier{};
  made->channel = channel;
  made->context = context;
  made->settings = read_settings();
  *id = made;
  return 0;
}

int rdma_destroy_id(verbs::CmId* id) {
  delete static_cast<Identifier*>(id);
  return 0;
}

int rdma_bind_addr(verbs::CmId* id, sockaddr* address) {
  auto& own = *static_cast<Identifier*>(id);
  if (address->sa_family != AF_INET) return errno = EADDRNOTAVAIL, -1;
  std::memcpy(&own.own, address, sizeof own.own);
  const std::uint32_t number = ntohl(own.own.sin_addr.s_addr) - own.settings.address;
  if (number >= static_cast<std::uint32_t>(own.settings.devices)) return errno = ENODEV, -1;
  own.own_device.number = static_cast<int>(number);
  std::snprintf(own.own_device.name, sizeof own.own_device.name, "fake%u", number);
  own.own_context.device = reinterpret_cast<verbs::Device*>(&own.own_device);
  own.verbs = &own.own_context;
  own.socket = tutti::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::bind(own.socket.get(), address, sizeof own.own);
}

int rdma_listen(verbs::CmId* id, int backlog) {
  auto& own = *static_cast<Identifier*>(id);
  if (::listen(own.socket.get(), backlog) != 0) return -1;
  own.listens = true;
  watch(own);
  return 0;
}

std::uint16_t rdma_get_src_port(verbs::CmId* id) {
  sockaddr_in bound{};
  socklen_t bytes = sizeof bound;
  (void)::getsockname(static_cast<Identifier*>(id)->socket.get(), reinterpret_cast<sockaddr*>(&bound), &bytes);
  return bound.sin_port;
}

int rdma_resolve_addr(verbs::CmId* id, sockaddr*, sockaddr* destination, int) {
  std::memcpy(&static_cast<Identifier*>(id)->peer, destination, sizeof(sockaddr_in));
  tell(channel_of(id), id, verbs::CmEventType::address_resolved);
  return 0;
}

int rdma_resolve_route(verbs::CmId* id, int) {
  tell(channel_of(id), id, verbs::CmEventType::route_resolved);
  return 0;
}

int rdma_connect(verbs::CmId* id, verbs::CmParameters* parameters) {
  auto& own = *static_cast<Identifier*>(id);
  own.queue_pair = parameters->qp_num;
  own.connects = true;
  if (::connect(own.socket.get(), reinterpret_cast<const sockaddr*>(&own.peer), sizeof own.peer) != 0 ||
      !introduce(own, *parameters)) {
    tell(channel_of(id), id, verbs::CmEventType::unreachable);
    return 0;
  }
  watch(own);
  return 0;
}

int rdma_accept(verbs::CmId* id, verbs::CmParameters* parameters) {
  auto& own = *static_cast<Identifier*>(id);
  own.queue_pair = parameters->qp_num;
  set_deaf(own, own.settings.deaf_ns > 0);
  if (!start(parameters->qp_num, own.asked, true) || !introduce(own, *parameters)) return errno = EINVAL, -1;
  tell(channel_of(id), id, verbs::CmEventType::established);
  channel_of(id).events.back()->not_before_ns = now_ns() + own.settings.deaf_ns;
  return 0;
}

int rdma_reject(verbs::CmId* id, const void*, std::uint8_t) {
  static_cast<Identifier*>(id)->socket = {};
  return 0;
}

int rdma_get_cm_event(verbs::CmChannel* channel, verbs::CmEvent** event) {
  auto& own = *static_cast<EventChannel*>(channel);
  if (own.events.empty()) look(own);
  if (own.events.empty() || own.events.front()->not_before_ns > now_ns()) return errno = EAGAIN, -1;
  if (own.events.front()->not_before_ns > 0) set_deaf(*static_cast<Identifier*>(own.events.front()->id), false);
  *event = own.events.front().release();
  own.events.pop_front();
  epoll_event never{.events = 0, .data = {}};
  if (own.events.empty()) (void)::epoll_ctl(own.epoll.get(), EPOLL_CTL_MOD, own.bell.get(), &never);
  return 0;
}

int rdma_ack_cm_event(verbs::CmEvent* event) {
  delete static_cast<ConnectionEvent*>(event);
  return 0;
}

const char* rdma_event_str(verbs::CmEventType event) {
  return event == verbs::CmEventType::rejected ? "rejected" : "an event of the fake";
}
}
#pragma GCC visibility pop
