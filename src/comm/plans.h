// Chooses the algorithm of a call and keeps this rank's plans, each made on first use.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "call/access.h"
#include "choice/access_table.h"
#include "choice/choice.h"
#include "choice/rank_order.h"
#include "comm/channels.h"
#include "comm/membership.h"
#include "comm/prediction_check.h"
#include "plan/cache.h"

namespace tutti {

/// Used only by the call whose turn it is. All ranks of a communicator make the same choices.
class Plans {
 public:
  /// `process`, `members` and `channels` must outlive this object. `payload_bytes`: of a call descriptor.
  Plans(Process& process, const Membership& members, const Channels& channels, std::size_t payload_bytes);

  /// A plan, and the name of its algorithm. Both live as long as the communicator.
  struct Planned {
    const Plan& plan;
    const char* algorithm;
  };
  /// The plan of a call whose largest buffer has `bytes`. `counts`: its groups differ in size, and the largest group
  /// has `bytes`.
  Planned of(const Shape& shape, Access access, std::size_t bytes, bool counts);
  /// The plan of TUTTI_PLAN_FILE, which must serve the shape and support `access`.
  Planned from_file(const Shape& shape, Access access);

  /// The algorithm that a call uses.
  const Algorithm& algorithm(const Shape& shape, Access access, std::size_t bytes, bool counts);
  /// The time predicted for a call that `of` has planned, in µs; 0: none, as without a choice.
  double predicted_us(const Shape& shape, Access access, std::size_t bytes) const;
  /// Which access to use, by size. Predicted on first use, which takes milliseconds; `ordinary`: also for buffers that
  /// are not mapped. Only for ranks that share memory.
  const AccessTable& access_table(Collective collective, bool ordinary);
  /// The algorithm filter: TUTTI_ALGO; in a deterministic communicator, the algorithms that reduce in the order of
  /// ranks.
  std::string filter(Collective collective, Access access);
  /// Whether the access can serve the collective as the communicator promises: a deterministic one sums in one order,
  /// and no scan of that order serves windows.
  bool may_use(Collective collective, Access access);
  /// Checks that a deterministic communicator may use the algorithms and the plan that the settings ask for. Errors:
  /// invalid_usage.
  Result<void> check_settings();
  /// The value of TUTTI_ALGO.
  const std::string& forced() const { return forced_; }

  /// Input of the choice besides the shape; equal on all ranks.
  const Conditions& conditions() const { return conditions_; }
  const AccessFacts& access_facts() const { return access_facts_; }
  /// Where calls' times are compared with their predictions; null: they are not.
  PredictionCheck* prediction_check() { return prediction_check_ ? &*prediction_check_ : nullptr; }

 private:
  const Plan& insert(const PlanKey& key, Plan plan, const std::string& algorithm);

  Process& process_;
  const Membership& members_;
  const Channels& channels_;
  const Conditions conditions_;
  const AccessFacts access_facts_;
  std::optional<PredictionCheck> prediction_check_;
  const std::string forced_;
  RankOrder rank_order_;
  LruCache<PlanKey, Plan, PlanKeyHash> plans_;
  /// By collective, access and whether groups differ in size; made on first use.
  std::array<std::array<std::array<std::shared_ptr<const Envelope>, 2>, 4>, collective_count> envelopes_;
  struct KnownAccessTable {
    AccessTable access_table;
    bool known = false;
    bool ordinary = false;
  };
  std::array<KnownAccessTable, collective_count> access_tables_;
};

}  // namespace tutti
