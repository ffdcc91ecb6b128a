// Which algorithm a call uses, and this rank's plan of it: made on first use, then kept.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "algorithms/choice.h"
#include "algorithms/rank_order.h"
#include "comm/autotune.h"
#include "comm/channels.h"
#include "comm/membership.h"
#include "plan/cache.h"
#include "plan/plan_key.h"

namespace tutti {

/// For the call whose turn it is. All ranks of a communicator choose alike.
class Plans {
 public:
  /// All three outlive it. `conditions`: what the choice goes by besides the shape, alike on all ranks. `who`: for the
  /// log.
  Plans(Process& process, const Membership& members, const Channels& channels, const Conditions& conditions,
        std::string who);

  /// A plan, and the name of its algorithm; both as long as the communicator.
  struct Planned {
    const Plan& plan;
    const char* algorithm;
  };
  /// For a call of `bytes` at most per buffer. `counts`: its groups differ in size, and the largest has so many bytes.
  Planned of(const Shape& shape, Access access, std::size_t bytes, bool counts);
  /// That of TUTTI_PLAN_FILE, which must serve the shape and be carried by `access`.
  Planned from_file(const Shape& shape, Access access);

  /// What a call would use if nothing was tuned.
  const Algorithm& algorithm(const Shape& shape, Access access, std::size_t bytes, bool counts);
  /// What TUTTI_ALGO says; of a deterministic communicator, those of the one order of reduction.
  std::string filter(Collective collective, Access access);
  /// Whether what settings ask for is what a deterministic communicator may use. Errors: invalid_usage.
  Result<void> check_settings();
  /// What TUTTI_ALGO says.
  const std::string& forced() const { return forced_; }

  Autotuner& autotuner() { return autotuner_; }
  const Conditions& conditions() const { return conditions_; }

 private:
  const Algorithm& algorithm_for_counts(const Shape& shape, Access access, std::size_t bytes);
  const Algorithm& tuned(const Shape& shape, Access access, std::size_t bytes);
  const Plan& insert(const PlanKey& key, const Schedule& schedule, const std::string& algorithm);

  Process& process_;
  const Membership& members_;
  const Channels& channels_;
  const Conditions conditions_;
  const std::string who_;
  const std::string forced_;
  RankOrder rank_order_;
  Autotuner autotuner_;
  LruCache<PlanKey, Plan, PlanKeyHash> plans_;
  /// By collective and access, made on first use.
  std::array<std::array<std::shared_ptr<const Envelope>, 4>, collective_count> envelopes_;
  /// For calls whose groups differ in size, once there was one: what select said, by the largest group's power of two.
  using Chosen = std::array<std::array<std::array<const Algorithm*, 65>, 4>, collective_count>;
  std::unique_ptr<Chosen> chosen_for_counts_;
};

}  // namespace tutti
