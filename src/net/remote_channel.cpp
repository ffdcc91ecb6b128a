#include "net/remote_channel.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "transport/socket_tuning.h"

namespace tutti {
namespace {

constexpr std::int64_t news_limit_ns = 1'000'000'000;  // for the cause of a broken connection to arrive

}  // namespace

RemoteChannel::RemoteChannel(System& system, std::shared_ptr<Arrivals> arrivals, RemoteChannelConfig place)
    : system_(system), arrivals_(std::move(arrivals)), place_(std::move(place)), presence_(std::move(place_.life)) {}

Result<bool> RemoteChannel::open() {
  if (is_open()) return true;
  wanted_ = true;
  if (broken_) return judge_again();
  // Read before gathering: connections that the peer opened before it left have then arrived, or are on their way.
  const bool left = place_.header->state_now() == RankState::closed;
  auto gathered = gather_sockets();
  if (!gathered && gathered.error().lacks_descriptor()) return own_lack(gathered.error());
  if (!gathered) return judge(std::move(gathered).error().during("connect to " + place_.who).at_peer(place_.peer));
  if (!*gathered) {
    // A peer that has left sends nothing on a channel that is not open. But it may have sent its data and left before
    // the last message of the handshake arrived here.
    if (!left && !connects() && presence_.gone(system_))
      return remote_error(fmt::format("{} has left the communicator, or its process has ended: nobody answers for it "
                                      "any more",
                                      place_.who),
                          place_.peer);
    if (!left || (connector_ && connector_->proven())) return false;
    if (arrivals_->is_coming(place_.peer, place_.channel)) return false;  // its upgrade is being agreed on
    return judge(Error{});
  }
  auto upgraded = upgrade();
  if (!upgraded) return judge(std::move(upgraded).error());
  if (!*upgraded) return false;
  if (!is_open())
    ends_.use(system_, std::move(sockets_),
              {.rank = place_.rank, .peer = place_.peer, .channel = place_.channel, .peer_name = place_.who},
              place_.slots, place_.slot_bytes, place_.unacknowledged);
  return true;
}

bool RemoteChannel::opened() {
  if (is_open() || broken()) return true;
  const auto opened = open();
  return !opened || *opened;
}

/// It is this rank that fails, for a reason that the others have to hear in words.
Error RemoteChannel::own_lack(const Error& error) const {
  return {.code = error.code,
          .what = fmt::format("rank {} has no connection to {}: {}", place_.rank, place_.who, error.words()),
          .peer = place_.rank};
}

/// True once it is decided how the channel's data travels. At the end that was connected to, it was decided before the
/// connection could be taken.
Result<bool> RemoteChannel::upgrade() {
  if (!upgrade_begun_ && place_.upgrade) {
    upgrade_begun_ = true;
    upgrade_ = place_.upgrade(greeting(0), sockets_.front());
  }
  if (!upgrade_) return true;
  if (place_.rank > place_.peer && !upgrade_->advance()) return false;
  auto outcome = upgrade_->take();
  upgrade_.reset();
  sockets_.front() = std::move(outcome.socket);
  ends_.use(outcome);
  if (outcome.failure) return std::move(*outcome.failure).during("connect to " + place_.who).at_peer(place_.peer);
  if (place_.decided) place_.decided(is_open(), outcome.why);
  lacks_upgrade_ = !is_open() && place_.upgrade_required;
  if (!lacks_upgrade_) return true;
  return Error{.code = Code::system,
               .what = fmt::format("rank {} and {} cannot use RDMA on channel {}, as TUTTI_TRANSPORT=rdma demands: {}",
                                   place_.rank, place_.who, place_.channel, outcome.why),
               .peer = place_.peer};
}

Greeting RemoteChannel::greeting(std::size_t index) const {
  return {.communicator = arrivals_->key().communicator,
          .from = std::max(place_.rank, place_.peer),
          .to = std::min(place_.rank, place_.peer),
          .purpose = Purpose::data,
          .channel = static_cast<std::uint8_t>(place_.channel),
          .index = static_cast<std::uint8_t>(index)};
}

/// True once all connections are open; they are in the order of their indices.
Result<bool> RemoteChannel::gather_sockets() {
  while (sockets_.size() < static_cast<std::size_t>(place_.sockets)) {
    auto next = TUTTI_TRY(next_socket(sockets_.size()));
    if (!next) return false;
    Arrivals::Arrival arrival = *std::move(next);
    system_.set_patience(arrival.socket, place_.patience_ns, System::Reader::may_be_slow);
    if (arrival.upgrade) {
      upgrade_ = std::move(arrival.upgrade);
      upgrade_begun_ = true;
    } else {
      choose_congestion(system_, arrival.socket, place_.congestion);
    }
    sockets_.push_back(std::move(arrival.socket));
  }
  return true;
}

Result<std::optional<Arrivals::Arrival>> RemoteChannel::next_socket(std::size_t index) {
  if (place_.rank < place_.peer) {
    auto arrival = arrivals_->take(Purpose::data, place_.peer, place_.channel, static_cast<int>(index));
    if (arrival) return arrival;
    if (auto why = arrivals_->held_up()) return *std::move(why);
    return arrival;
  }
  if (!connector_)
    connector_.emplace(system_, addresses_in_turn(place_.addresses, place_.channel + static_cast<int>(index)),
                       greeting(index), arrivals_->key(), place_.connect_limit_ns);
  auto connected = TUTTI_TRY(connector_->advance());
  if (!connected) return std::optional<Arrivals::Arrival>();
  connector_.reset();
  return std::optional(Arrivals::Arrival{.socket = *std::move(connected)});
}

ChannelRemains RemoteChannel::take_remains() {
  ends_.unwatch();
  if (broken_) return {};
  ChannelRemains remains = ends_.take_remains();
  if (is_open() && !ends_.over_sockets()) remains.sockets = std::move(sockets_);
  return remains;
}

Result<bool> RemoteChannel::judge(Error error) {
  const std::int64_t now = system_.now_ns();
  if (!broken_) {
    broken_ = std::move(error);
    broken_ns_ = now;
  }
  if (broken_->peer == place_.rank) return *broken_;  // nobody else knows more
  const auto state = place_.header->state_now();
  if (state == RankState::closed)
    return Error{.code = Code::remote,
                 .what = fmt::format("{} left the communicator{}{}", place_.who, broken_->what.empty() ? "" : ": ",
                                     broken_->what),
                 .sys_errno = broken_->sys_errno,
                 .peer = place_.peer};
  const bool known = has_failed(state);
  if (!known && now - broken_ns_ < news_limit_ns) return false;
  // What a rank that has ended does not finish is a consequence of that. Otherwise both ends name the same one.
  if (known)
    broken_->code = Code::remote;
  else if (lacks_upgrade_)
    broken_->peer = std::max(place_.rank, place_.peer);
  return *broken_;
}

void RemoteChannel::poll_set(std::vector<PollItem>& items) const {
  if (is_open() || broken_) return;
  if (connector_) (void)connector_->poll_set(items);
  if (upgrade_ && place_.rank > place_.peer) (void)upgrade_->poll_set(items);
  presence_.poll_set(items);
}

Result<std::span<std::byte>> RemoteSender::acquire() {
  if (!channel_->is_open() && !TUTTI_TRY(channel_->open())) return std::span<std::byte>();
  if (!channel_->broken()) {
    auto slot = channel_->sender().acquire();
    if (slot) return slot;
    (void)channel_->judge(std::move(slot).error());
  }
  TUTTI_TRY(channel_->judge_again());
  return std::span<std::byte>();
}

/// If the connection breaks after this call, the next flush reports it.
Result<void> RemoteSender::commit(std::size_t bytes) {
  auto committed = channel_->sender().commit(bytes);
  if (committed) return committed;
  TUTTI_TRY(channel_->judge(std::move(committed).error()));
  return {};
}

Result<bool> RemoteSender::flush() {
  if (!channel_->is_open()) return true;
  if (!channel_->broken()) {
    auto flushed = channel_->sender().flush();
    if (flushed) return flushed;
    (void)channel_->judge(std::move(flushed).error());
  }
  return channel_->judge_again();
}

void RemoteSender::poll_set(std::vector<PollItem>& items) const {
  if (!channel_->is_open()) return channel_->poll_set(items);
  if (!channel_->broken()) channel_->sender().poll_set(items);
}

/// Calls the receiver. Returns an empty T while the channel is not open, or broken with the cause still unknown.
template <class T, class Call>
Result<T> RemoteReceiver::ask(Call call) {
  if (!channel_->is_open() && !TUTTI_TRY(channel_->open())) return T();
  if (channel_->is_open() && !channel_->read_out()) {
    Result<T> answer = call(channel_->receiver());
    if (answer) return answer;
    channel_->note_read_out();
    (void)channel_->judge(std::move(answer).error());
  }
  TUTTI_TRY(channel_->judge_again());
  return T();
}

Result<std::span<const std::byte>> RemoteReceiver::peek(std::size_t bytes) {
  return ask<std::span<const std::byte>>([&](Receiver& receiver) { return receiver.peek(bytes); });
}

Result<std::span<const std::byte>> RemoteReceiver::expect(std::size_t bytes) {
  return ask<std::span<const std::byte>>([&](Receiver& receiver) { return receiver.landing()->expect(bytes); });
}

Result<std::size_t> RemoteReceiver::arrived(std::size_t at, std::size_t bytes) {
  return ask<std::size_t>([&](Receiver& receiver) { return receiver.landing()->arrived(at, bytes); });
}

Result<std::size_t> RemoteReceiver::land(std::size_t at, std::span<std::byte> into) {
  return ask<std::size_t>([&](Receiver& receiver) { return receiver.landing()->land(at, into); });
}

Invited RemoteReceiver::invite(std::size_t ahead, std::span<std::byte> memory) {
  if (!channel_->is_open()) return Invited::later;
  return channel_->broken() || channel_->read_out() ? Invited::no : channel_->landing().invite(ahead, memory);
}

Result<bool> RemoteReceiver::drained() {
  if (!channel_->is_open() || channel_->read_out()) return true;
  auto drained = channel_->receiver().drained();
  if (!drained) channel_->note_read_out();
  return drained;
}

void RemoteReceiver::poll_set(std::vector<PollItem>& items) const {
  if (!channel_->is_open()) return channel_->poll_set(items);
  if (!channel_->read_out()) channel_->receiver().poll_set(items);
}

}  // namespace tutti
