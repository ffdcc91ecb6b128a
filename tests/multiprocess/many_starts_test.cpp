// Hundreds of starts, of all kinds and beside a load: none fails, and none has anything to warn of.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

enum class Way { id, address, torchrun, slurm, plain };
enum class Numbers {
  built_in,
  cold,
  warm
};  ///< cold: the machine is measured first, by rank 0; warm: by a start before

struct Kind {
  Way way;
  Layout layout;
  int ranks;
  Numbers numbers;
};

std::string text_of(const Kind& kind) {
  constexpr const char* ways[] = {"id", "address and secret", "torchrun", "Slurm", "TUTTI_RANK alone"};
  constexpr const char* numbers[] = {"", ", cold", ", warm"};
  return fmt::format("{} ranks, {}, by {}{}", kind.ranks, name(kind.layout), ways[static_cast<int>(kind.way)],
                     numbers[static_cast<int>(kind.numbers)]);
}

/// A folder for what all processes of a start log and keep.
class Place {
 public:
  explicit Place(int nth)
      : path_(std::filesystem::path(::testing::TempDir()) / fmt::format("tutti_starts_{}_{}", ::getpid(), nth)) {
    std::filesystem::create_directories(path_ / "log");
    std::filesystem::create_directories(path_ / "cache");
  }
  ~Place() { std::filesystem::remove_all(path_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  std::string log() const { return path_ / "log" / "%p"; }
  std::string cache() const { return path_ / "cache"; }
  std::string logged() const {
    std::string all;
    for (const auto& entry : std::filesystem::directory_iterator(path_ / "log")) {
      std::ifstream file(entry.path());
      all += std::string{std::istreambuf_iterator<char>(file), {}};
    }
    return all;
  }

 private:
  std::filesystem::path path_;
};

/// Keeps a core busy.
class Load {
 public:
  Load() : pid_(::fork()) {
    if (pid_ != 0) return;
    const pid_t parent = ::getppid();
    while (::getppid() == parent) {
    }
    ::_exit(0);
  }
  ~Load() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  pid_t pid_;
};

std::vector<std::string> variables(const Kind& kind, int rank, const std::string& job) {
  const std::string number = std::to_string(rank);
  const std::string ranks = std::to_string(kind.ranks);
  switch (kind.way) {
    case Way::id: return {};
    case Way::torchrun:
      return {"RANK=" + number, "WORLD_SIZE=" + ranks, "LOCAL_RANK=" + number, "LOCAL_WORLD_SIZE=" + ranks,
              "TORCHELASTIC_RUN_ID=" + job};
    case Way::slurm:
      return {"SLURM_JOB_ID=" + job,
              "SLURM_STEP_ID=0",
              "SLURM_PROCID=" + number,
              "SLURM_STEP_NUM_TASKS=" + ranks,
              "SLURM_LOCALID=" + number,
              "SLURM_NODEID=0",
              "SLURM_STEP_TASKS_PER_NODE=" + ranks,
              "SLURM_STEP_NODELIST=localhost"};
    case Way::address:
      return {"TUTTI_RANK=" + number, "TUTTI_NRANKS=" + ranks, "TUTTI_COMM_ID=" + job,
              "TUTTI_COMM_SECRET=a secret of many starts"};
    case Way::plain: return {"TUTTI_RANK=" + number, "TUTTI_NRANKS=" + ranks, "PMIX_NAMESPACE=" + job};
  }
  return {};
}

/// Ends right after the start, as a program that had nothing to do.
void start_and_leave(const Kind& kind, Seat& seat) {
  tuttiComm_t comm = nullptr;
  if (kind.way == Way::id) {
    ASSERT_TRUE(ok(tuttiCommInitRank(&comm, kind.ranks, seat.next_id(), seat.rank())));
  } else {
    ASSERT_TRUE(ok(tuttiCommInitFromEnv(&comm, nullptr)));
  }
  EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
}

/// A port of a loopback address that this program alone uses: of a /8 there is one for each start.
std::string job_of(const Kind& kind, int nth) {
  if (kind.way != Way::address) return fmt::format("starts-{}-{}", ::getpid(), nth);
  return fmt::format("127.{}.{}.{}:{}", 1 + ::getpid() % 250, 1 + nth / 250 % 250, 1 + nth % 250, 10000 + nth % 20000);
}

std::unique_ptr<Workers> begin(const Kind& kind, int nth, const Place& place, const Place& kept) {
  Team team{.ranks = kind.ranks, .layout = kind.layout};
  team.environment = {"TUTTI_DEBUG=WARN", "TUTTI_DEBUG_FILE=" + place.log(),
                      "TUTTI_CACHE_DIR=" + (kind.numbers == Numbers::warm ? kept : place).cache(),
                      std::string("TUTTI_TUNE=") + (kind.numbers == Numbers::built_in ? "off" : "on")};
  const std::string job = job_of(kind, nth);
  team.environment_of = [kind, job](int rank) { return variables(kind, rank, job); };
  return std::make_unique<Workers>(team, [kind](Seat& seat) { start_and_leave(kind, seat); });
}

/// Each property is drawn for itself, so that all of them meet.
Kind some_kind(std::mt19937& random) {
  const auto draw = [&random](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  constexpr int usual[] = {2, 2, 2, 2, 3, 3, 4, 4, 5, 8};
  Kind kind{.way = static_cast<Way>(draw(5)), .layout = Layout::processes, .ranks = 2, .numbers = Numbers::built_in};
  kind.ranks = draw(100) == 0 ? 16 : usual[draw(std::size(usual))];
  if (const int number = draw(12); number < 2) kind.numbers = number == 0 ? Numbers::cold : Numbers::warm;
  if (kind.numbers == Numbers::cold) kind.ranks = 4 + draw(5);
  constexpr Layout layouts[] = {Layout::processes, Layout::processes, Layout::threads, Layout::pairs};
  if (kind.way == Way::id) kind.layout = layouts[draw(std::size(layouts))];
  return kind;
}

int starts() {
  const char* const text = std::getenv("TUTTI_TEST_STARTS");
  return text == nullptr ? 500 : std::atoi(text);
}

/// Every fourth has another job beside it, of any other kind.
TEST(ManyStarts, NoneFailsAndNoneWarns) {
  const Load load;
  std::mt19937 random(1);
  const Place kept(-1);
  for (int nth = 0; nth < starts() && !::testing::Test::HasFailure(); ++nth) {
    const Place place(nth);
    const Kind kind = some_kind(random);
    std::string doing = fmt::format("start {}: {}", nth, text_of(kind));
    const auto workers = begin(kind, nth, place, kept);
    std::unique_ptr<Workers> beside;
    if (random() % 3 == 0 && nth + 1 < starts()) {
      const Kind other = some_kind(random);
      beside = begin(other, ++nth, place, kept);
      doing += "; beside it " + text_of(other);
    }
    EXPECT_TRUE(workers->finish()) << doing;
    if (beside) {
      EXPECT_TRUE(beside->finish()) << doing;
    }
    EXPECT_EQ(place.logged(), "") << doing;
  }
}

}  // namespace
}  // namespace tutti::testing
