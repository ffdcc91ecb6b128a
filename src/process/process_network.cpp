#include "process/process_network.h"

#include "base/descriptors.h"

namespace tutti {

Result<std::shared_ptr<ConnectionServer>> ProcessNetwork::connections() {
  const std::lock_guard lock(mutex_);
  if (connections_) return connections_;
  const DescriptorLimit descriptors = raise_descriptor_limit();
  log_.info(LogTopic::init, "descriptors", "{} may be open, {} before the limit was raised", descriptors.now,
            descriptors.before);
  auto own = TUTTI_TRY(interfaces.get(system_, config_, log_));
  auto server = TUTTI_TRY(ConnectionServer::open(system_, hosts_of(own)));
  TUTTI_TRY(service_.add(server));
  connections_ = std::move(server);
  for (const SocketAddress& at : connections_->addresses())
    log_.info(LogTopic::net, "connections", "listening at {} port {}", at.host, at.port);
  return connections_;
}

Result<std::shared_ptr<bootstrap::SharedListener>> ProcessNetwork::shared_listener(const SocketAddress& at) {
  const std::lock_guard lock(mutex_);
  auto& listener = listeners_[{at.host, at.port}];
  if (auto known = listener.lock()) return known;
  auto opened = bootstrap::SharedListener::open(system_, at);
  if (opened) listener = *opened;
  return opened;
}

}  // namespace tutti
