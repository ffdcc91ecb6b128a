"""Messages between ranks of one process through queues on its heap."""
NAME = "heap"
TARGETS = ["all_reduce_perf", "alltoall_perf", "sendrecv_perf", "api_point_to_point_test", "api_messages_test"]
# Threads of one process, and processes of two threads each, which need the next transport of the list too. Sends and
# receives are told by how they reach memory, whatever the transport.
COMMANDS = [
    f"TUTTI_TRANSPORT=slots build/perf/{perf}_perf {how} -b 1 -e 3M -f 7 -n 2 -w 1 -c 1 --csv {perf}.csv && "
    f"awk -F, 'NR > 1 && ($2 !~ /{name}/ || $NF != 0) {{ wrong = 1 }} END {{ exit wrong || NR < 5 }}' {perf}.csv"
    for perf, names in (("all_reduce", ("heap", "slots")), ("alltoall", ("heap", "slots")), ("sendrecv", ("", "")))
    for how, name in zip(("--procs 1 -t 4", "--procs 2 -t 2"), names)
] + ["build/tests/api_point_to_point_test", "build/tests/api_messages_test"]

SOURCE = """// Messages between ranks of one process, through queues on its heap.
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "comm/transports/transport.h"

namespace tutti {
namespace {

/// The messages of one direction.
struct Queue {
  std::mutex mutex;
  std::deque<std::vector<std::byte>> messages;
  bool refused_last = false;
};

/// The same one for both ends, which name it by the receiver's area.
std::shared_ptr<Queue> queue_of(const AreaHeader& receiver, Rank from, int channel) {
  static std::mutex mutex;
  static std::map<std::tuple<const AreaHeader*, Rank, int>, std::weak_ptr<Queue>> all;
  const std::lock_guard lock(mutex);
  std::weak_ptr<Queue>& known = all[{&receiver, from, channel}];
  auto queue = known.lock();
  if (!queue) known = queue = std::make_shared<Queue>();
  return queue;
}

/// What both ends know: their queue, and how the other one is woken.
struct End {
  System& system;
  std::shared_ptr<Queue> queue;
  AreaHeader& peer;
  bool oversubscribed;
  void wake() const { peer.doorbell.ring(system, oversubscribed); }
};

class HeapSender final : public Sender {
 public:
  HeapSender(End end, std::size_t slots, std::size_t slot_bytes)
      : end_(std::move(end)), slots_(slots), slot_(slot_bytes) {}

  Result<std::span<std::byte>> acquire() override {
    const std::lock_guard lock(end_.queue->mutex);
    if (end_.queue->messages.size() >= slots_) return std::span<std::byte>();
    return std::span(slot_);
  }
  Result<void> commit(std::size_t bytes) override {
    {
      const std::lock_guard lock(end_.queue->mutex);
      std::vector<std::byte> message(bytes + 1);  // an empty one has an address too
      std::memcpy(message.data(), slot_.data(), bytes);
      end_.queue->messages.push_back(std::move(message));
      end_.queue->refused_last = false;
    }
    end_.wake();
    return {};
  }
  Result<Settled> settled() override {
    const std::lock_guard lock(end_.queue->mutex);
    if (!end_.queue->messages.empty()) return Settled::not_yet;
    return end_.queue->refused_last ? Settled::refused_last : Settled::all;
  }
  std::size_t slot_bytes() const override { return slot_.size(); }

 private:
  End end_;
  std::size_t slots_;
  std::vector<std::byte> slot_;
};

class HeapReceiver final : public Receiver {
 public:
  explicit HeapReceiver(End end) : end_(std::move(end)) {}

  Result<std::span<const std::byte>> peek(std::size_t) override {
    const std::lock_guard lock(end_.queue->mutex);
    if (end_.queue->messages.empty()) return std::span<const std::byte>();
    const auto& first = end_.queue->messages.front();
    return std::span<const std::byte>(first.data(), first.size() - 1);
  }
  Result<void> release() override { return end(false); }
  Result<void> refuse() override { return end(true); }

 private:
  Result<void> end(bool refused) {
    {
      const std::lock_guard lock(end_.queue->mutex);
      end_.queue->messages.pop_front();
      end_.queue->refused_last = refused;
    }
    end_.wake();
    return {};
  }

  End end_;
};

class HeapTransport final : public Transport {
 public:
  explicit HeapTransport(const Membership& members) : members_(members) {}
  std::string_view name() const override { return "heap"; }
  bool connects(Rank peer) const override { return members_.peers[static_cast<std::size_t>(peer)].same_process; }
  Ends open(const PairOfRanks& pair) override {
    const RankArea& mine = members_.area->area;
    const RankArea& theirs = members_.peers[static_cast<std::size_t>(pair.peer)].area;
    const auto end = [&](std::shared_ptr<Queue> queue) {
      return End{pair.process.system, std::move(queue), theirs.header(), members_.oversubscribed};
    };
    return {.sender = std::make_unique<HeapSender>(end(queue_of(theirs.header(), members_.rank, pair.channel)),
                                                   static_cast<std::size_t>(mine.shape().slots), pair.slot_bytes),
            .receiver = std::make_unique<HeapReceiver>(end(queue_of(mine.header(), pair.peer, pair.channel))),
            .signal = Signal(theirs.flags(pair.channel, members_.rank).signal,
                             mine.flags(pair.channel, pair.peer).signal)};
  }

 private:
  const Membership& members_;
};

}  // namespace

constinit const TransportEntry transports::heap = {
    .usable = [](Process&) -> Result<bool> { return true; },
    .make = [](Process&, const Membership& members, std::uint32_t) -> std::unique_ptr<Transport> {
      return std::make_unique<HeapTransport>(members);
    }};

}  // namespace tutti
"""


def make(tree):
    tree.new("src/comm/transports/heap/transport.cpp", SOURCE)
    tree.change("src/comm/transports/list.inc", "TRANSPORT(shared_memory)", "TRANSPORT(heap)\n{}")
