// Are the walks of calls in docs/architecture.md those that the code takes? From the C function to the first byte.
#include <gtest/gtest.h>

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/gpu_meeting.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

constexpr std::size_t page = 4096;

// ---- Who moves the first byte ----

std::array<void*, 64> frames;
volatile int frame_count = 0;
thread_local bool armed = false;  // of the thread that makes the call

void note_first_byte() {
  if (frame_count == 0) frame_count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  armed = false;
}

/// What is mapped of ranks' areas, but for their headers, which other threads write to.
struct Range {
  std::uintptr_t begin = 0, end = 0;
};
std::array<Range, 16> guarded;
std::size_t guarded_count = 0;

void protect(int how) {
  for (std::size_t i = 0; i < guarded_count; ++i)
    ::mprotect(reinterpret_cast<void*>(guarded[i].begin), guarded[i].end - guarded[i].begin, how);
}

/// All may be written from the first store on.
void first_store(int, siginfo_t*, void*) {
  note_first_byte();
  protect(PROT_READ | PROT_WRITE);
}

void arm() {
  void* warm[2];
  (void)::backtrace(warm, 2);  // which loads what it needs
  armed = true;
}

void guard_areas() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:tutti") == std::string::npos || line.find("rw-s") == std::string::npos) continue;
    Range range;
    if (std::sscanf(line.c_str(), "%lx-%lx", &range.begin, &range.end) != 2) continue;
    range.begin += page;
    if (range.begin < range.end && guarded_count < guarded.size()) guarded[guarded_count++] = range;
  }
  struct sigaction action {};
  action.sa_sigaction = first_store;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, nullptr);
  protect(PROT_READ);
}

// ---- Names ----

/// The functions of one frame, those that were inlined first; as addr2line says, innermost first.
std::vector<std::string> functions_at(void* address) {
  Dl_info where{};
  if (::dladdr(address, &where) == 0) return {};
  const auto offset = static_cast<char*>(address) - static_cast<char*>(where.dli_fbase) - 1;
  const std::string ask = fmt::format("addr2line -Cfi -e '{}' {:#x} 2>/dev/null", where.dli_fname, offset);
  const std::unique_ptr<FILE, int (*)(FILE*)> answer(::popen(ask.c_str(), "r"), ::pclose);
  std::vector<std::string> names;
  std::array<char, 4096> line;
  for (bool name = true; answer && std::fgets(line.data(), line.size(), answer.get()) != nullptr; name = !name)
    if (name) names.emplace_back(line.data());
  return names;
}

/// "tutti::CollectiveInsideHost::enter()" → "enter"; empty: neither ours nor on the way (a wrapper, a lambda, a
/// template of the standard library).
std::string short_name(std::string name) {
  if (name.find("{lambda") != std::string::npos || name.find("::guarded") != std::string::npos) return {};
  if (!name.starts_with("tutti") || name.starts_with("tutti::testing")) return {};
  constexpr std::string_view unnamed = "(anonymous namespace)::";
  if (const auto at = name.find(unnamed); at != std::string::npos) name.erase(at, unnamed.size());
  name = name.substr(0, name.find('('));
  name = name.substr(0, name.find('['));
  const auto at = name.rfind("::");
  name = at == std::string::npos ? name : name.substr(at + 2);
  while (!name.empty() && std::isspace(static_cast<unsigned char>(name.back()))) name.pop_back();
  return name;
}

/// From the C function on.
std::vector<std::string> seen_functions() {
  std::vector<std::string> seen;
  for (int i = frame_count - 1; i >= 0; --i) {
    auto names = functions_at(frames[static_cast<std::size_t>(i)]);
    std::ranges::reverse(names);
    for (const std::string& one : names)
      if (std::string name = short_name(one); !name.empty() && (!seen.empty() || name == "tuttiAllReduce"))
        seen.push_back(name);
  }
  return seen;
}

// ---- What the documentation says ----

struct Step {
  std::string name, file;
};

std::vector<std::string> lines_of_architecture() {
  std::ifstream file(TUTTI_SOURCE_DIR "/docs/architecture.md");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> in_ticks(const std::string& line) {
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = line.find('`', at)) != std::string::npos;) {
    const std::size_t end = line.find('`', at + 1);
    if (end == std::string::npos) break;
    words.push_back(line.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return words;
}

/// By heading ("### ...") under "## A call, from `tuttiAllReduce` to bytes": lines "1. `name` (`file`): what it does".
std::map<std::string, std::vector<Step>> documented_walks() {
  std::map<std::string, std::vector<Step>> walks;
  bool inside = false;
  std::string walk;
  for (const std::string& line : lines_of_architecture()) {
    if (line.starts_with("## ")) inside = line.find("from `tuttiAllReduce` to bytes") != std::string::npos;
    if (line.starts_with("### ")) walk = line.substr(4);
    if (!inside || line.empty() || !std::isdigit(static_cast<unsigned char>(line[0]))) continue;
    const auto words = in_ticks(line);
    EXPECT_GE(words.size(), 2u) << line;
    if (words.size() >= 2) walks[walk].push_back({words[0], words[1]});
  }
  return walks;
}

/// Of the table of rooms, top to bottom.
std::vector<std::string> rooms() {
  std::vector<std::string> all;
  bool inside = false;
  for (const std::string& line : lines_of_architecture()) {
    if (line.starts_with("## ")) inside = line == "## Rooms";
    if (inside && line.starts_with("| `")) all.push_back(in_ticks(line).front());
  }
  return all;
}

/// The index of the room that a file belongs to: the one with the longest name.
std::size_t room_of(const std::vector<std::string>& all, const std::string& file) {
  std::size_t best = all.size();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (file.starts_with(all[i] + "/") && (best == all.size() || all[i].size() > all[best].size())) best = i;
  return best;
}

TEST(Walks, TheDocumentedFunctionsAreWhereTheySay) {
  const auto walks = documented_walks();
  EXPECT_EQ(walks.size(), 4u);
  for (const auto& [walk, steps] : walks)
    for (const Step& step : steps) {
      std::ifstream file(std::string(TUTTI_SOURCE_DIR "/") + step.file);
      std::stringstream text;
      text << file.rdbuf();
      EXPECT_NE(text.str().find(step.name + "("), std::string::npos)
          << walk << ": " << step.name << " in " << step.file;
    }
}

/// At most 12 functions below the C API, and none calls one of a room that stands above its own.
TEST(Walks, AreShortAndGoDown) {
  const auto all = rooms();
  ASSERT_GT(all.size(), 20u);
  for (const auto& [walk, steps] : documented_walks()) {
    EXPECT_LE(steps.size(), 1u + (walk.find("4 bytes") != std::string::npos ? 9 : 12)) << walk;
    std::size_t room = 0;
    for (const Step& step : steps) {
      const std::size_t own = room_of(all, step.file);
      ASSERT_LT(own, all.size()) << step.file;
      EXPECT_GE(own, room) << walk << ": " << step.name << " is in " << all[own] << ", called from " << all[room];
      room = own;
    }
  }
}

// ---- What the code does ----

/// What the compiler inlined without saying so is not seen; what is seen must be in the list, in its order.
void expect_walk(const std::string& walk) {
  const auto seen = seen_functions();
  std::string all;
  for (const std::string& name : seen) all += name + " ";
  EXPECT_GE(seen.size(), 2u) << walk << ": no names at all: " << frame_count << " frames";
  const auto steps = documented_walks()[walk];
  auto step = steps.begin();
  for (const std::string& name : seen) {
    // A lambda may bear the name of the function that contains it.
    const bool again = step != steps.begin() && std::prev(step)->name == name;
    const auto next = std::find_if(step, steps.end(), [&](const Step& one) { return one.name == name; });
    if (again && next == steps.end()) continue;
    step = next;
    ASSERT_NE(step, steps.end()) << walk << ": " << name << " is not next in docs/architecture.md; seen: " << all;
    ++step;
  }
}

/// Makes calls of `count` floats on both ranks; rank 0's second one is looked at. `guard` prepares for it.
void expect_walk_of(const Team& team, const std::string& walk, std::size_t count, void (*guard)()) {
  launch_ranks(team, [=](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    void* memory = nullptr;
    ASSERT_EQ(tuttiMemAlloc(&memory, count * sizeof(float)), tuttiSuccess);
    auto* const x = static_cast<float*>(memory);
    std::fill_n(x, count, 1.0F);
    const auto call = [&] { return tuttiAllReduce(x, x, count, tuttiFloat32, tuttiSum, comm, nullptr); };
    if (count > 1) (void)call();  // opens connections, maps windows
    ASSERT_TRUE(seat.meet());
    if (seat.rank() == 0) {
      arm();
      if (guard != nullptr) guard();
    }
    ASSERT_TRUE(seat.meet());
    ASSERT_EQ(call(), tuttiSuccess);
    EXPECT_EQ(x[count - 1], count > 1 ? 4 : 2);
    ASSERT_TRUE(seat.meet());
    if (seat.rank() == 0) expect_walk(walk);
    EXPECT_EQ(tuttiCommDestroy(comm), tuttiSuccess);
    EXPECT_EQ(tuttiMemFree(memory), tuttiSuccess);
  });
}

constexpr std::size_t megabyte = std::size_t{1} << 20;
const std::vector<std::string> silent{"TUTTI_DEBUG=NONE"};

TEST(Walks, FourBytesThroughSharedMemory) {
  expect_walk_of({.ranks = 2, .layout = Layout::threads, .environment = silent}, "4 bytes through shared memory", 1,
                 guard_areas);
}

TEST(Walks, AMegabyteThroughWindows) {
  expect_walk_of({.ranks = 2, .layout = Layout::threads, .environment = silent}, "1 MB through windows",
                 megabyte / sizeof(float), guard_areas);
}

TEST(Walks, AMegabyteOverSockets) {
  Team team{.ranks = 2, .layout = Layout::processes, .environment = {"TUTTI_DEBUG=NONE", "TUTTI_ALGO=ring"}};
  team.environment_of = [](int rank) { return std::vector{fmt::format("TUTTI_HOSTID=host {}", rank)}; };
  expect_walk_of(team, "1 MB over sockets", megabyte / sizeof(float), nullptr);
}

/// The first launch of a kernel, which is all that the host does.
TEST(Walks, AMegabyteOfDeviceMemory) {
  in_seats(team_of(2, Seating::apart), Seating::apart, [](Seat& seat, CudaUser& user, tuttiComm_t comm) {
    const OneRank one(user, comm, seat.rank(), megabyte / sizeof(std::int32_t));
    for (int round = 0; round < 2; ++round) {
      ASSERT_TRUE(seat.meet());
      if (seat.rank() == 0 && round == 1) {
        fake_cuda(library).at_launch([] {
          if (armed) note_first_byte();
        });
        arm();
      }
      ASSERT_TRUE(ok(one.all_reduce()));
      user.synchronize(one.stream);
    }
    EXPECT_EQ(user.get(one.output, one.count), sums(one.count, 2));
    if (seat.rank() == 0) expect_walk("1 MB of device memory by kernels");
  });
}

}  // namespace
}  // namespace tutti::testing

// In place of the C library's, also for libtutti.so.

extern "C" [[gnu::visibility("default")]] ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  if (tutti::testing::armed) tutti::testing::note_first_byte();
  static auto* const next = reinterpret_cast<decltype(&::sendmsg)>(::dlsym(RTLD_NEXT, "sendmsg"));
  return next(fd, message, flags);
}
