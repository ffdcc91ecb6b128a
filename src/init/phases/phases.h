// The phases of a start, in their order.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "init/phases/map_exchange.h"
#include "init/phases/phase.h"
#include "net/connector.h"

namespace tutti::start {

/// Exchange: who the ranks are, and what their processes can do.
struct Greeting final : ExchangePhase {
  Result<Blob> contribution(Facts& facts) override;
  Result<bool> take(Facts& facts, const std::vector<Blob>& gathered) override;
};

/// Exchange, where ranks of one host run as several users: whether they can share memory nevertheless.
struct Sharing final : ExchangePhase {
  bool applies(const Facts& facts) const override;
  Result<Blob> contribution(Facts& facts) override;
  Result<bool> take(Facts& facts, const std::vector<Blob>& gathered) override;
};

/// Exchanges, where hosts are not alike: rank 0 gets a part of the machines that it lacks in each.
struct Describing final : ExchangePhase {
  bool applies(const Facts& facts) const override { return facts.all_greeted() && facts.machines->more(); }
  Result<Blob> contribution(Facts& facts) override;
  Result<bool> take(Facts& facts, const std::vector<Blob>& gathered) override;
};

/// Maps the areas of the ranks of this host, tests access to their GPUs; rank 0 draws the map of the job.
struct Mapping final : WaitPhase {
  Result<void> begin(Facts& facts) override;
  Result<Progress> wait(Facts&) override { return Progress::done; }
  std::int64_t wait_set(const Facts& facts, std::vector<PollItem>&) const override { return facts.deadline_ns; }
  const char* while_waiting() const override { return "while memory of other ranks was mapped"; }
};

/// Waits until the kernels that test whether those of all GPUs run at the same time have ended.
struct Synchronizing final : WaitPhase {
  bool applies(const Facts& facts) const override { return facts.gpus.synchronizes(); }
  Result<void> begin(Facts&) override { return {}; }
  Result<Progress> wait(Facts& facts) override { return facts.gpus.advance(facts); }
  std::int64_t wait_set(const Facts& facts, std::vector<PollItem>&) const override {
    return GpuSetup::next_look_ns(facts);
  }
  const char* while_waiting() const override { return "while kernels waited for each other"; }
};

/// Of several hosts: waits until this host's interfaces have a carrier.
struct Carrier final : WaitPhase {
  bool applies(const Facts& facts) const override { return facts.several_hosts(); }
  Result<void> begin(Facts&) override { return {}; }
  Result<Progress> wait(Facts& facts) override;
  std::int64_t wait_set(const Facts& facts, std::vector<PollItem>&) const override {
    return facts.process.network.interfaces.next_look_ns();
  }
  const char* while_waiting() const override { return "while interfaces waited for a carrier"; }
};

/// Exchange, of several hosts: where each rank can be called. A rank that has failed tells no address.
struct Addresses final : ExchangePhase {
  bool applies(const Facts& facts) const override { return facts.several_hosts(); }
  Result<Blob> contribution(Facts& facts) override;
  Result<bool> take(Facts& facts, const std::vector<Blob>& gathered) override;
};

/// Where hosts have several networks: the first rank of each host tries all addresses of the others. A rank that has
/// failed tries none.
struct Proving final : WaitPhase {
  bool applies(const Facts& facts) const override { return facts.several_networks() && !facts.failed(); }
  Result<void> begin(Facts& facts) override;
  Result<Progress> wait(Facts& facts) override;
  std::int64_t wait_set(const Facts& facts, std::vector<PollItem>& items) const override {
    return facts.addresses->poll_set(items);
  }
  const char* while_waiting() const override { return "while addresses were tried"; }
  std::optional<Error> stuck(const Facts& facts) const override { return cannot_accept(facts); }
};

/// Exchange: which addresses were reached. A rank that has failed says so.
struct Comparing final : ExchangePhase {
  bool applies(const Facts& facts) const override { return facts.several_networks(); }
  Result<Blob> contribution(Facts& facts) override;
  Result<bool> take(Facts& facts, const std::vector<Blob>& gathered) override;
};

/// Of several hosts: opens the control connections.
class Reaching final : public WaitPhase {
 public:
  bool applies(const Facts& facts) const override { return facts.several_hosts() && !facts.failed(); }
  Result<void> begin(Facts& facts) override;

 private:
  Result<Progress> wait(Facts& facts) override;
  std::int64_t wait_set(const Facts& facts, std::vector<PollItem>& items) const override;
  const char* while_waiting() const override { return "while connections were opened"; }
  std::optional<Error> stuck(const Facts& facts) const override { return cannot_accept(facts); }

  struct Edge {
    Rank rank = 0;
    std::optional<Connector> connector = {};  ///< empty: the neighbour connects
    Socket socket = {};
  };
  /// True once all connections exist. Errors: timeout, remote (a neighbour that cannot be reached, or did not connect).
  Result<bool> open_all(const Facts& facts);
  std::shared_ptr<ControlLinks> take_links(const Facts& facts);

  std::vector<Edge> edges_;
};

/// Exchanges: how it went on each rank, which failed ranks take part in as well; and rank 0's numbers and map of the
/// job, of which there are as many exchanges as the map needs.
class Agreement final : public ExchangePhase {
  Result<Blob> contribution(Facts& facts) override;
  Result<bool> take(Facts& facts, const std::vector<Blob>& gathered) override;

  Blob result_of_this_rank(Facts& facts);
  Result<void> agree(Facts& facts, const std::vector<Blob>& gathered);
  Result<bool> take_map(Facts& facts, std::span<const std::byte> part);
  Blob next_map_part(const Facts& facts, std::size_t bytes_max);

  std::optional<MapExchange> told_;   ///< the map, of rank 0
  std::optional<MapExchange> heard_;  ///< empty before the first exchange
};

/// All of them.
std::vector<std::unique_ptr<Phase>> phases();

}  // namespace tutti::start
