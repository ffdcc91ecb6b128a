// Choices that one process makes and the next one finds: the same to the last bit, and none where anything differs or
// is damaged.
#include "tune/choice_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/build_id.h"
#include "choice/choice.h"
#include "choice/select.h"
#include "support/folder.h"

namespace tutti {
namespace {

constexpr Access accesses[] = {Access::mapped, Access::cma, Access::slots};

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::filesystem::path only_file(const Folder& folder) {
  std::filesystem::path found;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "")) found = entry.path();
  return found;
}

/// Counts what it is asked.
struct Asked {
  int found = 0, missed = 0, kept = 0;
};
EnvelopeStore store_in(ChoiceCache& kept, Asked& asked) {
  return {.find =
              [&](std::string_view grounds) {
                auto text = kept.find(grounds);
                ++(text ? asked.found : asked.missed);
                return text;
              },
          .keep =
              [&](std::string_view grounds, std::string_view text) {
                ++asked.kept;
                EXPECT_TRUE(kept.keep(grounds, text));
              }};
}

TEST(BuildId, IsThatOfThisProgram) {
  EXPECT_GE(build_id().size(), 16U) << "the compiler's default on the systems that are tested";
  EXPECT_EQ(build_id(), build_id());
}

TEST(ChoiceCache, AreTheSameInTheNextProcess) {
  const Folder folder;
  ChoiceCache kept(folder / "kept", "this build");
  Asked asked;
  Envelopes first, next;
  first.use(store_in(kept, asked));
  next.use(store_in(kept, asked));
  int made = 0;
  for (const Collective collective : {Collective::all_reduce, Collective::broadcast, Collective::all_to_all})
    for (const Access access : accesses)
      for (const int ranks : {2, 5, 40}) {
        const Shape shape{.collective = collective, .ranks = ranks};
        const auto one = first.of(shape, access, "", Machine{}, Conditions{});
        EXPECT_EQ(asked.kept, ++made);
        const auto other = next.of(shape, access, "", Machine{}, Conditions{});
        EXPECT_EQ(asked.found, made);
        for (std::size_t bytes = 0; bytes < std::size_t{1} << 33; bytes = 2 * bytes + 1) {
          EXPECT_EQ(&one->at(bytes), &other->at(bytes)) << bytes;
          EXPECT_EQ(one->us(bytes), other->us(bytes)) << bytes;
        }
      }
}

TEST(ChoiceCache, AreFoundForTheSameGroundsOnly) {
  const Folder folder;
  ChoiceCache kept(folder / "kept", "this build");
  const Shape shape{.collective = Collective::all_reduce, .ranks = 4};
  const auto misses = [&](ChoiceCache& in, const Shape& of, Access access, std::string_view forced,
                          const Machine& machine, const Conditions& conditions, bool counts) {
    Asked asked;
    Envelopes envelopes;
    envelopes.use(store_in(in, asked));
    (void)envelopes.of(of, access, forced, machine, conditions, counts);
    return asked.missed;
  };
  EXPECT_EQ(misses(kept, shape, Access::slots, "", {}, {}, false), 1);
  EXPECT_EQ(misses(kept, shape, Access::slots, "", {}, {}, false), 0);
  Shape root = shape;
  root.root = 3;
  EXPECT_EQ(misses(kept, root, Access::slots, "", {}, {}, false), 0) << "choices are the same for all roots";

  Shape more = shape, ordered = shape, grouped = shape;
  more.ranks = 5;
  ordered.order = {1, 0, 2, 3};
  grouped.levels = {{0, 0, 1, 1}};
  for (const Shape& other : {more, ordered, grouped})
    EXPECT_EQ(misses(kept, other, Access::slots, "", {}, {}, false), 1);
  Machine slower;
  slower.hop_us = std::nextafter(slower.hop_us, 1);
  Conditions crowded;
  ++crowded.cores;
  EXPECT_EQ(misses(kept, shape, Access::cma, "", {}, {}, false), 1);
  EXPECT_EQ(misses(kept, shape, Access::slots, "ring", {}, {}, false), 1);
  EXPECT_EQ(misses(kept, shape, Access::slots, "", slower, {}, false), 1);
  EXPECT_EQ(misses(kept, shape, Access::slots, "", {}, crowded, false), 1);
  EXPECT_EQ(misses(kept, shape, Access::slots, "", {}, {}, true), 1);
  ChoiceCache of_another(folder / "kept", "another build");
  EXPECT_EQ(misses(of_another, shape, Access::slots, "", {}, {}, false), 1);
}

TEST(ChoiceCache, AreNotFoundWhereTheyAreDamaged) {
  const Folder folder;
  ChoiceCache kept(folder / "", "this build");
  ASSERT_TRUE(kept.keep("grounds", "the choice\nof two lines\n"));
  ASSERT_EQ(kept.find("grounds"), "the choice\nof two lines\n");
  const auto path = only_file(folder);
  const std::string whole = text_of(path);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string other = whole;
    other[at] ^= 1;
    std::ofstream(path, std::ios::binary) << other;
    EXPECT_EQ(kept.find("grounds"), std::nullopt) << at;
    std::ofstream(path, std::ios::binary) << whole.substr(0, at);
    EXPECT_EQ(kept.find("grounds"), std::nullopt) << at;
  }
  EXPECT_EQ(ChoiceCache(folder / "nowhere", "this build").find("grounds"), std::nullopt);
}

TEST(ChoiceCache, OfTextsThatDescribeNoChoiceAreMadeAnew) {
  const Shape shape{.collective = Collective::all_reduce, .ranks = 4};
  const auto all = candidates(shape, Access::slots, "");
  const std::string text = Envelope(shape, Access::slots, all, Machine{}, Conditions{}).text();
  ASSERT_TRUE(Envelope::read(text, shape, Access::slots));
  const auto without = [&](std::string_view what, std::string_view instead) {
    std::string other = text;
    return other.replace(other.find(what), what.size(), instead);
  };
  const std::string name(all[0]->name);
  for (const std::string& wrong :
       {std::string(), text.substr(0, text.size() / 2), text + "16 1 ring\n", without("16 ", "17 "),
        without("16 ", "16 x"), without("16 ", "16 nan "), without("\n", " of nobody\n"), without("\n", "")})
    EXPECT_FALSE(Envelope::read(wrong, shape, Access::slots)) << wrong;
  EXPECT_FALSE(Envelope::read(text, {.collective = Collective::broadcast, .ranks = 4}, Access::mapped))
      << "an all-reduce's algorithms";
}

/// Processes of a job need the same choice at the same time.
TEST(ChoiceCache, AreMadeOnceForAllThatWait) {
  const Folder folder;
  constexpr int processes = 6;
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;  // a lock belongs to a descriptor, so threads wait for each other like processes
  threads.reserve(processes);
  for (int i = 0; i < processes; ++i)
    threads.emplace_back([&] {
      ChoiceCache kept(folder / "", "this build", /*patience_ns=*/INT64_MAX / 2);
      if (const auto text = kept.find("grounds")) {
        EXPECT_EQ(*text, "text\n");
        return;
      }
      ++made;
      for (int turn = 0; turn < 1000; ++turn) std::this_thread::yield();
      EXPECT_TRUE(kept.keep("grounds", "text\n"));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
}

TEST(ChoiceCache, AreMadeByTheNextWhereAProcessDies) {
  const Folder folder;
  {
    ChoiceCache dies(folder / "", "this build");
    EXPECT_FALSE(dies.find("grounds"));
  }
  ChoiceCache next(folder / "", "this build"), patient(folder / "", "this build");
  EXPECT_FALSE(next.find("grounds"));
  EXPECT_FALSE(patient.find("grounds")) << "its patience has ended";
  EXPECT_TRUE(patient.keep("grounds", "text\n"));
  EXPECT_TRUE(next.keep("grounds", "text\n"));
  EXPECT_EQ(next.find("grounds"), "text\n");
}

TEST(ChoiceCache, LeaveRoomForOthers) {
  const Folder folder;
  ChoiceCache kept(folder / "", "this build");
  std::ofstream(folder / "machine-1") << "numbers";
  const int made = static_cast<int>(ChoiceCache::files_max) + 50;
  for (int i = 0; i < made; ++i) ASSERT_TRUE(kept.keep(std::to_string(i), "text\n"));
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "")) files += entry.is_regular_file() ? 1U : 0U;
  EXPECT_LE(files, ChoiceCache::files_max + 1);
  EXPECT_GE(files, ChoiceCache::files_max / 2);
  EXPECT_TRUE(std::filesystem::exists(folder / "machine-1"));
  EXPECT_TRUE(kept.find(std::to_string(made - 1))) << "the newest stays";
}

}  // namespace
}  // namespace tutti
