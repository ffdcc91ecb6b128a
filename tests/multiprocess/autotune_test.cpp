// TUTTI_AUTOTUNE: in the first calls of a kind algorithms take turns, then all ranks use the same one of them; results
// are right throughout.
#include <set>

#include "support/call.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

constexpr int trials = 2;
constexpr int candidates = 3;
constexpr int tuning_calls = trials * candidates;
constexpr int calls = tuning_calls + 4;
constexpr int kinds = 2;

struct Place {
  Layout layout;
  int ranks;
  const char* transport;
  bool deterministic = false;
};

void PrintTo(const Place& place, std::ostream* out) {
  *out << name(place.layout) << ' ' << place.ranks << ' ' << place.transport;
}

/// Two kinds of calls are tuned at the same time.
Call call_of(int kind) {
  Call call{.kind = kind == 0 ? Kind::all_reduce : Kind::all_gather, .memory = Mix::heap, .seed = 5};
  if (kind == 0) call.values = Values::random;
  call.count = kind == 0 ? 20'000 : 9'000;
  return call;
}

std::size_t word_of(int kind, int call, int rank, int ranks) {
  return static_cast<std::size_t>((kind * calls + call) * ranks + rank);
}

std::uint64_t hash_of(const char* text) {
  std::uint64_t hash = 1;
  for (; *text != '\0'; ++text) hash = mix(hash, static_cast<unsigned char>(*text));
  return hash;
}

std::string explanation(tuttiComm_t comm, const Call& call) {
  std::size_t length = 0;
  std::string text(1 << 14, '\0');
  EXPECT_TRUE(ok(tuttiCommExplain(comm, name(call.kind), call.count, call.type, text.data(), text.size(), &length)));
  return text.substr(0, length);
}

/// Words of the board: which algorithm each call used, then hashes of the all-reduces' results.
void run_rank(Seat& seat, const Place& place) {
  tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
  config.deterministic = place.deterministic ? 1 : 0;
  const auto comm = seat.init_one(&config);
  ASSERT_NE(comm, nullptr);
  for (int i = 0; i < calls; ++i)
    for (int kind = 0; kind < kinds; ++kind) {
      const Call call = call_of(kind);
      std::uint64_t hash = 0;
      ASSERT_EQ(run_call(call, seat.here(), seat.ranks(), {comm}, 1, &hash), "") << call.text() << ", call " << i;
      const char* algorithm = nullptr;
      const char* transport = nullptr;
      ASSERT_TRUE(ok(tuttiCommLastAlgorithm(comm, &algorithm, &transport)));
      EXPECT_STREQ(transport, place.transport);
      seat.board().word(word_of(kind, i, seat.rank(), seat.ranks())).store(hash_of(algorithm));
      if (kind == 0) seat.board().word(word_of(kinds, i, seat.rank(), seat.ranks())).store(hash);
      const std::string text = explanation(comm, call);
      const char* const said = i + 1 < tuning_calls   ? "6 trial calls, "
                               : i + 1 > tuning_calls ? "fastest in 6 trial calls: "
                                                      : "trial calls";
      EXPECT_NE(text.find(said), text.npos) << "call " << i << ": " << text;
      if (i + 1 <= tuning_calls) continue;
      EXPECT_NE(text.find(std::string("used: ") + algorithm + ", the fastest"), text.npos) << algorithm << ": " << text;
    }
  EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
}

class Tuning : public ::testing::TestWithParam<Place> {};

TEST_P(Tuning, EndsAlikeOnAllRanks) {
  const Place place = GetParam();
  Workers workers(
      {.ranks = place.ranks,
       .layout = place.layout,
       .environment = {"TUTTI_AUTOTUNE=" + std::to_string(trials), std::string("TUTTI_TRANSPORT=") + place.transport},
       .words = static_cast<std::size_t>((kinds + 1) * calls * place.ranks)},
      [&](Seat& seat) { run_rank(seat, place); });
  ASSERT_TRUE(workers.finish());
  for (int kind = 0; kind < kinds; ++kind) {
    std::vector<std::uint64_t> used;
    for (int call = 0; call < calls; ++call) {
      used.push_back(workers.board().word(word_of(kind, call, 0, place.ranks)));
      for (int rank = 1; rank < place.ranks; ++rank)
        EXPECT_EQ(workers.board().word(word_of(kind, call, rank, place.ranks)), used.back())
            << "rank " << rank << ", call " << call << " of kind " << kind;
    }
    const std::set<std::uint64_t> tuned(used.begin(), used.begin() + candidates);
    EXPECT_EQ(tuned.size(), static_cast<std::size_t>(candidates)) << "each has its turn";
    for (int call = candidates; call < tuning_calls; ++call)
      EXPECT_EQ(used[static_cast<std::size_t>(call)], used[static_cast<std::size_t>(call - candidates)]);
    for (int call = tuning_calls; call < calls; ++call)
      EXPECT_EQ(used[static_cast<std::size_t>(call)], used[tuning_calls]) << "after the race";
    EXPECT_TRUE(tuned.contains(used[tuning_calls]));
  }
  if (!place.deterministic) return;
  const std::uint64_t first = workers.board().word(word_of(kinds, 0, 0, place.ranks));
  for (int call = 0; call < calls; ++call)
    EXPECT_EQ(workers.board().word(word_of(kinds, call, 0, place.ranks)), first)
        << "who races keeps to one order of sums";
}

INSTANTIATE_TEST_SUITE_P(Places, Tuning,
                         ::testing::Values(Place{Layout::threads, 3, "slots"}, Place{Layout::threads, 4, "mapped"},
                                           Place{Layout::processes, 3, "slots"}, Place{Layout::processes, 3, "cma"},
                                           Place{Layout::processes, 5, "slots", true}),
                         [](const auto& test) {
                           const Place& place = test.param;
                           return std::string(name(place.layout)) + "_" + std::to_string(place.ranks) + "_" +
                                  place.transport + (place.deterministic ? "_deterministic" : "");
                         });

}  // namespace
}  // namespace tutti::testing
