#include "transport/verbs/cm_connection.h"

#include <arpa/inet.h>

#include <cerrno>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/descriptors.h"

namespace tutti::verbs {
namespace {

constexpr int backlog = 4;  // strangers may come before the peer does
constexpr int resolve_ms = 5000;

/// Takes as long for a wrong token as for the right one.
bool equal(const CmToken& token, std::span<const std::byte> shown) {
  if (shown.size() < token.size()) return false;  // what follows is padding
  std::byte difference{};
  for (std::size_t i = 0; i < token.size(); ++i) difference |= token[i] ^ shown[i];
  return difference == std::byte{};
}

}  // namespace

Result<void> CmConnection::open() {
  const HeldStdio held;
  channel_ = {library_->rdma_create_event_channel(), Destroy{library_}};
  if (!channel_ || !stop_blocking(channel_->fd)) return port_.failed("make a channel for rdma_cm", errno);
  CmId* id = nullptr;
  if (library_->rdma_create_id(channel_.get(), &id, nullptr, CmPortSpace::tcp) != 0)
    return port_.failed("make an identifier for rdma_cm", errno);
  id_ = {id, Destroy{library_}};
  sockaddr_storage own = socket_address(port_.gid, 0);
  if (library_->rdma_bind_addr(id_.get(), reinterpret_cast<sockaddr*>(&own)) != 0)
    return port_.failed("bind for rdma_cm", errno);
  return check_device();
}

/// rdma_cm finds devices by IP address, which may be that of several.
Result<void> CmConnection::check_device() const {
  const Context* const found = id_->verbs;
  const std::string name = found == nullptr ? "none" : port_.device->library->ibv_get_device_name(found->device);
  if (name == port_.device->name) return {};
  return Error{.code = Code::system, .what = fmt::format("rdma_cm finds {} where {} is", name, port_.text())};
}

Result<std::unique_ptr<CmConnection>> CmConnection::listen(const Port& port, std::uint32_t queue_pair,
                                                           const CmToken& token) {
  std::unique_ptr<CmConnection> connection(new CmConnection(port, queue_pair, token));
  TUTTI_TRY(connection->open());
  if (connection->library_->rdma_listen(connection->id_.get(), backlog) != 0)
    return connection->port_.failed("listen by rdma_cm", errno);
  return connection;
}

Result<std::unique_ptr<CmConnection>> CmConnection::connect(const Port& port, std::uint32_t queue_pair,
                                                            const CmToken& token, const CmAddress& peer) {
  std::unique_ptr<CmConnection> connection(new CmConnection(port, queue_pair, token));
  TUTTI_TRY(connection->open());
  sockaddr_storage to = socket_address(peer.address, peer.port);
  const HeldStdio held;  // rdma_cm opens the device itself
  if (connection->library_->rdma_resolve_addr(connection->id_.get(), nullptr, reinterpret_cast<sockaddr*>(&to),
                                              resolve_ms) != 0)
    return connection->port_.failed("find the peer by rdma_cm", errno);
  return connection;
}

CmAddress CmConnection::address() const {
  return {.address = port_.gid, .port = ntohs(library_->rdma_get_src_port(id_.get()))};
}

CmParameters CmConnection::parameters() const {
  return {.private_data = token_.data(),
          .private_data_len = static_cast<std::uint8_t>(token_.size()),
          .responder_resources = 1,
          .initiator_depth = 1,
          .flow_control = 0,
          .retry_count = 0,
          .rnr_retry_count = 0,
          .srq = 0,
          .qp_num = queue_pair_};
}

Result<bool> CmConnection::advance() {
  while (!connected_) {
    CmEvent* event = nullptr;
    const HeldStdio held;
    if (library_->rdma_get_cm_event(channel_.get(), &event) != 0) {
      if (errno == EAGAIN || errno == EINTR) return false;
      return port_.failed("read an event of rdma_cm", errno);
    }
    const CmEventType type = event->event;
    CmId* const stranger = type == CmEventType::connect_request ? event->id : nullptr;
    auto handled = handle(*event);
    (void)library_->rdma_ack_cm_event(event);  // before its identifier can be destroyed
    if (stranger != nullptr && stranger != accepted_.get()) (void)library_->rdma_destroy_id(stranger);
    if (!handled) return std::move(handled).error();
  }
  if (accepted_) id_.reset();  // nobody else is let in
  return true;
}

Result<void> CmConnection::handle(const CmEvent& event) {
  CmParameters own = parameters();
  switch (event.event) {
    case CmEventType::address_resolved:
      if (library_->rdma_resolve_route(id_.get(), resolve_ms) != 0)
        return port_.failed("find a route by rdma_cm", errno);
      return {};
    case CmEventType::route_resolved:
      if (library_->rdma_connect(id_.get(), &own) != 0) return port_.failed("connect by rdma_cm", errno);
      return {};
    case CmEventType::connect_request: return consider(event);
    case CmEventType::established: connected_ = true; return {};
    default:
      return Error{.code = Code::remote,
                   .what = fmt::format("rdma_cm on {}: {}", port_.text(), library_->rdma_event_str(event.event)),
                   .sys_errno = event.status < 0 ? -event.status : 0};
  }
}

/// Takes the first who has the token, and nobody after it.
Result<void> CmConnection::consider(const CmEvent& request) {
  const auto* const shown = static_cast<const std::byte*>(request.param.conn.private_data);
  const std::size_t bytes = shown == nullptr ? 0 : request.param.conn.private_data_len;
  if (accepted_ || !equal(token_, std::span(shown, bytes))) {
    (void)library_->rdma_reject(request.id, nullptr, 0);
    return {};
  }
  CmParameters own = parameters();
  own.private_data = nullptr;
  own.private_data_len = 0;
  accepted_ = {request.id, Destroy{library_}};
  if (library_->rdma_accept(request.id, &own) != 0) return port_.failed("accept a connection by rdma_cm", errno);
  return {};
}

}  // namespace tutti::verbs
