// Right plans of which some blocks are read in their sender's buffer, spoilt where that matters.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "support/random.h"

namespace tutti::testing {

enum class OfferChange {
  both_more,           ///< two ranks that exchange blocks offer them, though the same step changes them
  step_more,           ///< all ranks offer all blocks of a step in which they change
  all_more,            ///< all ranks offer all blocks
  leaf_more,           ///< blocks are offered as if no sum were pre-multiplied: what is copied need not be what is sent
  late_release,        ///< the receiver of an offered block releases its message after later actions
  late_commit,         ///< the message with an offered block leaves after the block has changed
  early_change,        ///< a pass that changes an offered block comes before the pass that offers it
  added_change,        ///< a pass more changes an offered block, while a peer may read it
  read_after_release,  ///< the receiver reads an offered block after it has released the message
  other_block,         ///< a pass copies another block, or stores its sum elsewhere, than the one that is offered
};
inline constexpr int offer_change_count = 10;
const char* name(OfferChange change);

/// The plans with one random change of this kind, between ranks of one host; nothing if there is no place for it.
/// Plan::outlasts is set. `hosts`: by rank.
std::vector<Plan> spoil_offer(std::vector<Plan> plans, const std::vector<int>& hosts, OfferChange change,
                              Random& random);

}  // namespace tutti::testing
