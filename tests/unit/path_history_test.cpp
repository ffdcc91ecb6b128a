// Do ranks notice that they make a call by different paths, and never where they do not? And do the signatures that
// kernels compare hold all that they stand for?
#include "gpu/path_comparison.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "call/packed_signature.h"
#include "support/random.h"

namespace tutti {
namespace {

TEST(PathHistory, DifferencesAmongTheLastCallsAreFound) {
  testing::Random random(testing::test_seed());
  for (int round = 0; round < 2000; ++round) {
    const auto first = std::make_unique<PathHistory>(), second = std::make_unique<PathHistory>();
    const int calls = random.between(1, 100), ahead = random.between(0, 40);
    const int differs = random.between(0, calls);  // 0: none does
    for (int call = 1; call <= calls + ahead; ++call) {
      const bool by_host = random.chance(50);
      first->add(by_host);
      if (call <= calls) second->add(by_host != (call == differs));
    }
    const auto found = PathHistory::difference(*first, *second);
    EXPECT_EQ(found, PathHistory::difference(*second, *first));
    // The rank that is ahead remembers its last 32 calls alone.
    if (differs > 0 && differs + 32 > calls + ahead)
      EXPECT_EQ(found, static_cast<std::uint32_t>(differs));
    else
      EXPECT_FALSE(found) << *found << " of " << calls << " and " << ahead;
    second->stop();
    EXPECT_FALSE(PathHistory::difference(*first, *second));
  }
}

TEST(PackedSignature, HoldsAllOfACall) {
  std::set<std::uint64_t> seen;
  for (int collective = 0; collective < collective_count; ++collective)
    for (int type = 0; type < data_type_count; ++type)
      for (int op = 0; op < reduce_op_count; ++op)
        for (const auto form : {static_cast<std::uint8_t>(Form::plain), static_cast<std::uint8_t>(Form::counts)})
          for (const std::uint32_t root : {0u, 63u})
            for (const std::uint32_t channels : {1u, 8u, 63u})
              for (const std::uint64_t count :
                   {std::uint64_t{1}, std::uint64_t{65'535}, (std::uint64_t{1} << 38) - 1}) {
                const Signature signature{.collective = static_cast<std::uint8_t>(collective),
                                          .type = static_cast<std::uint8_t>(type),
                                          .op = static_cast<std::uint8_t>(op),
                                          .form = form,
                                          .root = root,
                                          .count = count};
                const std::uint64_t packed = PackedSignature{.signature = signature, .channels = channels}.pack();
                EXPECT_TRUE(seen.insert(packed).second);
                const auto again = PackedSignature::unpack(packed);
                EXPECT_TRUE(again.signature == signature && again.channels == channels);
              }
}

}  // namespace
}  // namespace tutti
