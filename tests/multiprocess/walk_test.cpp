// Is the walk of a call in docs/architecture.md the one that the code takes? From the C function to the first byte.
#include <gtest/gtest.h>

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

constexpr std::size_t page = 4096;

/// What is mapped of ranks' areas, but for their headers, which other threads write to.
struct Range {
  std::uintptr_t begin = 0, end = 0;
};
std::array<Range, 16> guarded;
std::size_t guarded_count = 0;
std::array<void*, 64> frames;
volatile int frame_count = 0;

void protect(int how) {
  for (std::size_t i = 0; i < guarded_count; ++i)
    ::mprotect(reinterpret_cast<void*>(guarded[i].begin), guarded[i].end - guarded[i].begin, how);
}

/// The first store: who makes it. All may be written from now on.
void first_store(int, siginfo_t*, void*) {
  if (frame_count == 0) frame_count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  protect(PROT_READ | PROT_WRITE);
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
  void* warm[2];
  (void)::backtrace(warm, 2);  // which loads what it needs
  struct sigaction action {};
  action.sa_sigaction = first_store;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, nullptr);
  protect(PROT_READ);
}

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

/// The list under "## A call, from tuttiAllReduce to bytes": "1. `name` (`file`): what it does".
struct Step {
  std::string name, file;
};
std::vector<Step> documented() {
  std::ifstream page_of(TUTTI_SOURCE_DIR "/docs/architecture.md");
  std::vector<Step> steps;
  bool inside = false;
  for (std::string line; std::getline(page_of, line);) {
    if (line.starts_with("## ")) inside = line.find("from `tuttiAllReduce` to bytes") != std::string::npos;
    if (!inside || line.empty() || !std::isdigit(static_cast<unsigned char>(line[0]))) continue;
    std::array<std::size_t, 4> ticks{};
    std::size_t at = 0;
    for (auto& tick : ticks) at = (tick = line.find('`', at)) + 1;
    steps.push_back(
        {line.substr(ticks[0] + 1, ticks[1] - ticks[0] - 1), line.substr(ticks[2] + 1, ticks[3] - ticks[2] - 1)});
  }
  return steps;
}

TEST(Walk, TheDocumentedFunctionsAreWhereTheySay) {
  const auto steps = documented();
  ASSERT_GE(steps.size(), 3u);
  EXPECT_LE(steps.size(), 10u);
  for (const Step& step : steps) {
    std::ifstream file(std::string(TUTTI_SOURCE_DIR "/") + step.file);
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_NE(text.str().find(step.name + "("), std::string::npos) << step.name << " in " << step.file;
  }
}

/// What the compiler inlined without saying so is not seen; what is seen must be in the list, in its order.
TEST(Walk, TheFirstStoreIsReachedAsDocumented) {
  launch_ranks({.ranks = 2, .layout = Layout::threads, .environment = {"TUTTI_DEBUG=NONE"}}, [](Seat& seat) {
    const auto comm = seat.init_one();
    ASSERT_NE(comm, nullptr);
    ASSERT_TRUE(seat.meet());
    if (seat.rank() == 0) guard_areas();
    ASSERT_TRUE(seat.meet());
    float x = 1;
    EXPECT_EQ(tuttiAllReduce(&x, &x, 1, tuttiFloat32, tuttiSum, comm, nullptr), tuttiSuccess);
    EXPECT_EQ(x, 2);
    ASSERT_TRUE(seat.meet());
    if (seat.rank() == 0) {
      std::vector<std::string> seen;
      for (int i = frame_count - 1; i >= 0; --i) {
        auto names = functions_at(frames[static_cast<std::size_t>(i)]);
        std::ranges::reverse(names);
        for (const std::string& one : names)
          if (std::string name = short_name(one); !name.empty() && (!seen.empty() || name == "tuttiAllReduce"))
            seen.push_back(name);
      }
      std::string all;
      for (const std::string& name : seen) all += name + " ";
      EXPECT_GE(seen.size(), 2u) << "no names at all: " << frame_count << " frames";
      const auto steps = documented();
      auto step = steps.begin();
      for (const std::string& name : seen) {
        step = std::find_if(step, steps.end(), [&](const Step& one) { return one.name == name; });
        ASSERT_NE(step, steps.end()) << name << " is not next in docs/architecture.md; seen: " << all;
      }
    }
    EXPECT_EQ(tuttiCommDestroy(comm), tuttiSuccess);
  });
}

}  // namespace
}  // namespace tutti::testing
