// What was measured is kept and found again; what is damaged or foreign is measured anew.
#include "tune/tune.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/file.h"
#include "support/folder.h"
#include "support/hogs.h"
#include "tune/machine_file.h"
#include "tune/measure.h"
#include "tune/workers.h"

namespace tutti {
namespace {

constexpr int version = 7;
constexpr std::int64_t today_s = 1795564800, hour_s = 3600;  // 2026-11-25

cpu_set_t cpus(int count) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int i = 0; i < count; ++i) CPU_SET(i, &set);
  return set;
}

Machine other_machine() {
  Machine machine;
  machine.hop_us = 0.4321;
  machine.far.write.gbps[2] = 5.25;
  return machine;
}

/// What a process would know, and how often it measured.
struct Known {
  Machine machine;
  int measured = 0;
};
Known known(const std::string& folder, int cores = 2, double hop_us = other_machine().hop_us) {
  Known result;
  const auto machine = [&](const cpu_set_t&) {
    ++result.measured;
    Machine measured = other_machine();
    measured.hop_us = hop_us;
    return MeasuredNumbers{measured};
  };
  Tune tune(folder, version, {.machine = machine, .hop_us = [&](const cpu_set_t&) { return hop_us; }});
  Log log(LogLevel::none, 0, "");
  result.machine = tune.machine(cpus(cores), log);
  EXPECT_EQ(tune.machine(cpus(cores), log), result.machine) << "asked again";
  return result;
}

void write(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

TEST(Tune, MeasuresOnceForAMachine) {
  const Folder folder;
  const std::string at = folder / "made/on/demand";
  const Known first = known(at);
  EXPECT_EQ(first.measured, 1);
  EXPECT_EQ(first.machine, other_machine());
  const Known second = known(at);
  EXPECT_EQ(second.measured, 0);
  EXPECT_EQ(second.machine, other_machine());
  EXPECT_EQ(known(at, 3).measured, 1) << "another number of cores";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(at)) files += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(files, 2) << "nothing half-written is left";
}

TEST(Tune, MeasuresAnewWhatIsDamagedOrForeign) {
  const Folder folder;
  const std::string at = folder / "kept";
  EXPECT_EQ(known(at).measured, 1);
  const std::string path = machine_file(at, fingerprint(2, version), 0);
  const auto good = read_file(path);
  ASSERT_TRUE(good);
  const std::string nan = "tutti machine 2\nfor " + fingerprint(2, version) + "\nhop_us nan\n";
  for (const std::string& bad :
       {std::string(), good->substr(0, good->size() / 2), *good + "1\n", "tutti machine 3" + good->substr(15), nan,
        to_text(other_machine(), "another machine", today_s),
        to_text(other_machine(), fingerprint(2, version + 1), today_s), std::string(100'000, 'x'),
        std::string(50, '\0')}) {
    write(path, bad);
    const Known after = known(at);
    EXPECT_EQ(after.measured, 1) << bad.substr(0, 200);
    EXPECT_EQ(after.machine, other_machine());
    EXPECT_EQ(known(at).measured, 0) << "and kept again";
  }
}

TEST(Tune, KeepsNumbersForSeveralDistancesOfTheCores) {
  const Folder folder;
  const std::string at = folder / "kept";
  for (const double hop_us : {0.1, 0.4, 0.02, 1.5}) EXPECT_EQ(known(at, 2, hop_us).measured, 1) << hop_us;
  for (const double hop_us : {0.12, 0.3, 0.028, 1.2}) {
    const Known again = known(at, 2, hop_us);
    EXPECT_EQ(again.measured, 0) << hop_us;
    EXPECT_LT(std::abs(std::log(again.machine.hop_us / hop_us)), 0.5);
  }
  EXPECT_EQ(known(at, 2, 0.75).measured, 1) << "takes the place of the nearest";
  EXPECT_EQ(known(at, 2, 0.75).measured, 0);
  EXPECT_EQ(known(at, 2, 0.1).measured, 0);
}

TEST(MachineFile, GivesTheNumbersThatItNames) {
  const Folder folder;
  const std::string path = folder / "machine";
  write(path, "tutti machine 2\n# by hand\n\nhop_us 0.5\nloop_gbps_2to2_64M_nontemporal 99\n");
  const auto machine = read_machine_file(path);
  ASSERT_TRUE(machine) << machine.error().text();
  EXPECT_EQ(machine->hop_us, 0.5);
  EXPECT_EQ(machine->pass_us, Machine{}.pass_us);
  EXPECT_EQ(machine->loops.table().at(pass_class(2, 2, false), 2), Loop::nontemporal);
  write(path, to_text(other_machine(), "another machine", today_s));
  EXPECT_EQ(*read_machine_file(path), other_machine());
}

TEST(MachineFile, SaysWhatIsWrongAndWhere) {
  const Folder folder;
  const std::string path = folder / "machine";
  const auto refused = [&](std::string_view text, std::string_view why) {
    write(path, text);
    const auto machine = read_machine_file(path);
    ASSERT_FALSE(machine) << text;
    EXPECT_NE(machine.error().what.find(path), std::string::npos) << machine.error().what;
    EXPECT_NE(machine.error().what.find(why), std::string::npos) << machine.error().what;
  };
  refused("", "line 1");
  refused("tutti machine 1\nhop_us 1\n", "line 1");
  refused("tutti machine 2\nhop_us 1\nhip_us 1\n", "line 3: \"hip_us\"");
  refused("tutti machine 2\nhop_us 1x\n", "line 2: \"1x\" is not a value for hop_us");
  refused("tutti machine 2\nhop_us\n", "line 2");
  refused("tutti machine 2\nhop_us 1\nhop_us 1\n", "line 3: hop_us is given twice");
  refused("tutti machine 2\nhop_us -1\n", "-1 is not a possible");
  EXPECT_EQ(read_machine_file(folder / "none").error().sys_errno, ENOENT);
}

TEST(Tune, DoesWithoutAFolder) {
  EXPECT_EQ(known("").measured, 1);
  EXPECT_EQ(known("/proc/no/such").measured, 1);
  const Folder folder;
  write(folder / "file", "");
  EXPECT_EQ(known(folder / "file").measured, 1);
  // What lies there is not read if it is no file.
  const std::string at = folder / "kept";
  std::filesystem::create_directories(at);
  ASSERT_EQ(::mkfifo(machine_file(at, fingerprint(2, version), 0).c_str(), 0600), 0);
  EXPECT_EQ(known(at).measured, 1);
}

TEST(Tune, KeepsNothingOfADisturbedMeasurement) {
  const Folder folder;
  const std::string at = folder / "kept";
  Tune tune(at, version,
            {.machine = [](const cpu_set_t&) { return std::optional<MeasuredNumbers>(); },
             .hop_us = [](const cpu_set_t&) { return std::optional<double>(); }});
  Log log(LogLevel::none, 0, "");
  EXPECT_EQ(tune.machine(cpus(2), log), Machine{}) << "what is built in";
  EXPECT_FALSE(std::filesystem::exists(machine_file(at, fingerprint(2, version), 0)));
  const std::string mine = fingerprint(2, version);
  const std::string note = *read_file(tried_file(at, mine));
  EXPECT_EQ(known(at).measured, 0) << "nobody tries again within an hour";
  const std::int64_t tried_s = *tried_in(note, mine);
  EXPECT_EQ(tried_in(note, fingerprint(3, version)), std::nullopt);
  EXPECT_EQ(tried_in(note.substr(0, note.size() / 2), mine), std::nullopt);
  write(tried_file(at, mine), tried_text(mine, tried_s - 3600));
  EXPECT_EQ(known(at).measured, 1) << "an hour later the next process tries again";
}

TEST(Tune, UsesWhatIsMeasuredBesideOtherWorkAndKeepsItNot) {
  const Folder folder;
  const std::string at = folder / "kept";
  Tune tune(at, version,
            {.machine =
                 [](const cpu_set_t&) {
                   return std::optional(MeasuredNumbers{other_machine(), /*quiet=*/false});
                 },
             .hop_us = [](const cpu_set_t&) { return std::optional<double>(); }});
  Log log(LogLevel::none, 0, "");
  EXPECT_EQ(tune.machine(cpus(2), log), other_machine());
  EXPECT_FALSE(std::filesystem::exists(machine_file(at, fingerprint(2, version), 0)));
  EXPECT_EQ(known(at).measured, 1) << "the next job measures again";
}

TEST(Tune, WithoutMeasuringIsTheBuiltInMachine) {
  Log log(LogLevel::none, 0, "");
  EXPECT_EQ(Tune().machine(cpus(2), log), Machine{});
}

TEST(Tune, FollowsTheUsersFolders) {
  EXPECT_EQ(cache_folder("/mine", "/xdg", "/home/me"), "/mine");
  EXPECT_EQ(cache_folder("", "/xdg", "/home/me"), "/xdg/tutti");
  EXPECT_EQ(cache_folder("", "", "/home/me"), "/home/me/.cache/tutti");
  EXPECT_EQ(cache_folder("", "not/absolute", "/home/me"), "/home/me/.cache/tutti");
  EXPECT_EQ(cache_folder("", nullptr, nullptr), "");
}

TEST(Keep, ReadsWhatItWrote) {
  const auto back = from_text(to_text(other_machine(), "here", today_s), "here");
  ASSERT_TRUE(back);
  EXPECT_EQ(back->machine, other_machine());
  EXPECT_EQ(back->measured_s, today_s);
  EXPECT_FALSE(back->again);
  EXPECT_EQ(back->contradicted, "");
  EXPECT_FALSE(from_text(to_text(other_machine(), "here", today_s), "there"));
  const auto marked =
      from_text(with_contradiction(to_text(other_machine(), "here", today_s, /*again=*/true), today_s, "why"), "here");
  ASSERT_TRUE(marked);
  EXPECT_EQ(marked->measured_s, today_s);
  EXPECT_TRUE(marked->again);
  EXPECT_EQ(marked->contradicted, "2026-11-25T00:00:00Z: why");
}

TEST(Keep, SaysWhenNumbersMayBeContradicted) {
  EXPECT_FALSE(may_be_contradicted({.measured_s = today_s}, today_s + hour_s - 1));
  EXPECT_TRUE(may_be_contradicted({.measured_s = today_s}, today_s + hour_s));
  EXPECT_FALSE(may_be_contradicted({.measured_s = today_s, .again = true}, today_s + 167 * hour_s));
  EXPECT_TRUE(may_be_contradicted({.measured_s = today_s, .again = true}, today_s + 168 * hour_s));
  EXPECT_TRUE(may_be_contradicted({.measured_s = today_s}, today_s - 1)) << "the clock was wrong";
  EXPECT_TRUE(may_be_contradicted({}, today_s)) << "a time that nobody could read";
}

/// A process on another day, which knows what is kept in `at`.
struct Day {
  Day(const std::string& at, std::int64_t now_s)
      : tune(at, version,
             {.machine =
                  [this](const cpu_set_t&) {
                    ++measured;
                    return can_measure ? std::optional(MeasuredNumbers{*machine()}) : std::nullopt;
                  },
              .hop_us = [](const cpu_set_t&) { return other_machine().hop_us; },
              .now_s = [now_s] { return now_s; }}) {}
  std::optional<Machine> machine() const {
    Machine found = other_machine();
    found.far.write.gbps[2] += changed;
    return found;
  }
  Machine start() { return tune.machine(cpus(2), log); }

  int measured = 0;
  bool can_measure = true;
  double changed = 0;
  Log log{LogLevel::none, 0, ""};
  Tune tune;
};

TEST(Tune, MeasuresAgainWhatCallsContradicted) {
  const Folder folder;
  const std::string at = folder / "kept";
  Day first(at, today_s);
  const Machine machine = first.start();
  first.tune.contradict(machine, "too early", first.log);
  Day second(at, today_s + 2 * hour_s);
  EXPECT_EQ(second.start(), machine);
  EXPECT_EQ(second.measured, 0) << "what is an hour old is not contradicted";
  second.tune.contradict(other_machine(), "8 calls", second.log);
  EXPECT_EQ(second.start(), machine) << "a running process goes on";
  EXPECT_EQ(second.measured, 0);

  Day busy(at, today_s + 3 * hour_s);
  busy.can_measure = false;
  EXPECT_EQ(busy.start(), machine) << "better than what is built in";
  Day soon(at, today_s + 3 * hour_s + 60);
  EXPECT_EQ(soon.start(), machine);
  EXPECT_EQ(soon.measured, 0) << "the cores were in use a minute ago";
  Day third(at, today_s + 4 * hour_s);
  third.changed = 1;
  EXPECT_EQ(third.start(), *third.machine());
  EXPECT_EQ(third.measured, 1);
  third.tune.contradict(*third.machine(), "again", third.log);
  Day fourth(at, today_s + 100 * hour_s);
  EXPECT_EQ(fourth.start(), *third.machine());
  EXPECT_EQ(fourth.measured, 0);
  fourth.tune.contradict(*third.machine(), "again", fourth.log);
  Day fifth(at, today_s + 200 * hour_s);
  EXPECT_EQ(fifth.start(), *third.machine());
  EXPECT_EQ(fifth.measured, 0) << "within a week of a measurement that a contradiction caused";
  fifth.tune.contradict(*third.machine(), "again", fifth.log);
  Day sixth(at, today_s + 201 * hour_s);
  (void)sixth.start();
  EXPECT_EQ(sixth.measured, 1) << "a week later once more";
}

TEST(Tune, ContradictsOnlyWhatItUses) {
  const Folder folder;
  const std::string at = folder / "kept";
  (void)Day(at, today_s).start();
  Day old(at, today_s + 2 * hour_s);
  (void)old.start();
  old.tune.contradict(Machine{}, "numbers of another start", old.log);
  const std::string path = machine_file(at, fingerprint(2, version), 0);
  write(path, to_text(other_machine(), fingerprint(2, version), today_s + hour_s));
  old.tune.contradict(other_machine(), "measured by another process meanwhile", old.log);
  EXPECT_EQ(from_text(*read_file(path), fingerprint(2, version))->contradicted, "");
  Tune given(other_machine());
  given.contradict(other_machine(), "not measured", old.log);
}

// Whatever machine this is, and with however many cores: numbers that are possible, and the thread back where it was.
TEST(Measure, GivesAPossibleMachine) {
  cpu_set_t before, after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  const auto machine = measure(before);
  ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
  if (!machine) GTEST_SKIP() << "other work has the cores: nothing to be measured";
  EXPECT_TRUE(Machine::of(machine->machine.numbers()));
  EXPECT_NE(machine->machine.read, Machine{}.read) << "measured, not built in";
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  const auto alone = measure(one);
  EXPECT_EQ(alone.value_or(MeasuredNumbers{}).machine.hop_us, Machine{}.hop_us)
      << "one core cannot say how far it is to another";
}

/// Of the processor, by a process that measures while each core has programs that get nine times its time.
double busy_seconds_beside_others() {
  cpu_set_t cpus;
  EXPECT_EQ(::sched_getaffinity(0, sizeof cpus, &cpus), 0);
  const testing::Hogs hogs(2 * CPU_COUNT(&cpus));
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(::setpriority(PRIO_PROCESS, 0, 10) == 0 && (measure(cpus), true) ? 0 : 1);
  int status = -1;
  rusage used{};
  EXPECT_EQ(::wait4(pid, &status, 0, &used), pid);
  EXPECT_EQ(status, 0);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// All ranks of a start wait for it. The best of several: once in a while the cores look free at first.
TEST(Measure, GivesUpAtOnceWhereOthersHaveTheCores) {
  double least = busy_seconds_beside_others();
  for (int i = 0; i < 4; ++i) least = std::min(least, busy_seconds_beside_others());
  EXPECT_LT(least, 0.02);
}

TEST(Workers, LeaveSignalsToTheProgram) {
  cpu_set_t cpus;
  ASSERT_EQ(::sched_getaffinity(0, sizeof cpus, &cpus), 0);
  if (CPU_COUNT(&cpus) < 2) GTEST_SKIP() << "one core has no helper";
  sigset_t before, after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  std::array<bool, 2> takes{};
  {
    Workers workers(cpus, std::numeric_limits<std::int64_t>::max());
    ASSERT_EQ(workers.members(), 2);
    workers.run([&](int member) {
      sigset_t mask;
      ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
      takes[static_cast<std::size_t>(member)] = ::sigismember(&mask, SIGALRM) == 0;
    });
  }
  EXPECT_TRUE(takes[0]);
  EXPECT_FALSE(takes[1]) << "the helper would run the program's handlers";
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(::sigismember(&after, SIGALRM), ::sigismember(&before, SIGALRM));
}

}  // namespace
}  // namespace tutti
