// Two copies of the library in one process, as where a program and what it loads bring one each: each keeps to itself,
// their ranks make up communicators with each other, and what they complete stands although the process ends at once.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "support/folder.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

/// A copy's functions, as far as they are used here.
struct Copy {
  decltype(&tuttiGetUniqueId) get_unique_id = tuttiGetUniqueId;
  decltype(&tuttiCommInitRank) init_rank = tuttiCommInitRank;
  decltype(&tuttiCommDestroy) destroy = tuttiCommDestroy;
  decltype(&tuttiGetLastError) last_error = tuttiGetLastError;
  decltype(&tuttiAllReduce) all_reduce = tuttiAllReduce;
  decltype(&tuttiBarrier) barrier = tuttiBarrier;
  decltype(&tuttiIsend) isend = tuttiIsend;
  decltype(&tuttiIrecv) irecv = tuttiIrecv;
  decltype(&tuttiWait) wait = tuttiWait;

  ::testing::AssertionResult ok(tuttiResult_t result) const {
    if (result == tuttiSuccess) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "got " << result << ": " << last_error(nullptr);
  }
};

/// The one that this program is linked with, whose functions every other library in the process would find first.
const Copy linked;

/// Another one, of another file; never closed.
Copy load(const std::string& file) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    ADD_FAILURE() << ::dlerror();
    return {};
  }
  Copy copy;
  const auto find = [library](auto& function, const char* name) {
    const auto linked_one = function;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    EXPECT_TRUE(function != nullptr && function != linked_one) << name;
  };
  find(copy.get_unique_id, "tuttiGetUniqueId");
  find(copy.init_rank, "tuttiCommInitRank");
  find(copy.destroy, "tuttiCommDestroy");
  find(copy.last_error, "tuttiGetLastError");
  find(copy.all_reduce, "tuttiAllReduce");
  find(copy.barrier, "tuttiBarrier");
  find(copy.isend, "tuttiIsend");
  find(copy.irecv, "tuttiIrecv");
  find(copy.wait, "tuttiWait");
  return copy;
}

/// By one of the ranks that take part, through memory that they share.
tuttiUniqueId share_id(Seat& seat, const Copy& copy, std::size_t first_word, bool mine) {
  constexpr std::size_t words = sizeof(tuttiUniqueId) / sizeof(std::uint64_t);
  std::uint64_t parts[words] = {};
  tuttiUniqueId id{};
  if (mine) {
    EXPECT_TRUE(copy.ok(copy.get_unique_id(&id)));
    std::memcpy(parts, &id, sizeof id);
    for (std::size_t i = 0; i < words; ++i) seat.board().word(first_word + 1 + i).store(parts[i]);
    seat.board().raise(first_word, 1);
  }
  EXPECT_TRUE(seat.board().wait_for(first_word, 1));
  for (std::size_t i = 0; i < words; ++i) parts[i] = seat.board().word(first_word + 1 + i).load();
  std::memcpy(&id, parts, sizeof id);
  return id;
}

void reduce(const Copy& copy, tuttiComm_t comm, int ranks, std::size_t count) {
  std::vector<float> in(count), out(count);
  std::iota(in.begin(), in.end(), 1.0F);
  ASSERT_TRUE(copy.ok(copy.all_reduce(in.data(), out.data(), count, tuttiFloat32, tuttiSum, comm, nullptr)));
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], in[i] * static_cast<float>(ranks)) << "at " << i;
}

void pass_on(const Copy& copy, tuttiComm_t comm, int rank, int ranks, std::size_t count) {
  const std::vector<int> sent(count, rank);
  std::vector<int> got(count, -1);
  tuttiRequest_t out = nullptr, in = nullptr;
  ASSERT_TRUE(copy.ok(copy.isend(sent.data(), count, tuttiInt32, (rank + 1) % ranks, 3, comm, &out)));
  ASSERT_TRUE(copy.ok(copy.irecv(got.data(), count, tuttiInt32, TUTTI_ANY_SOURCE, 3, comm, &in)));
  ASSERT_TRUE(copy.ok(copy.wait(&in, nullptr)));
  ASSERT_TRUE(copy.ok(copy.wait(&out, nullptr)));
  EXPECT_EQ(got, std::vector<int>(count, (rank + ranks - 1) % ranks));
}

void call_all(const Copy& copy, tuttiComm_t comm, int rank, int ranks) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{3'000}, std::size_t{300'000}}) {
    reduce(copy, comm, ranks, count);
    pass_on(copy, comm, rank, ranks, count);
  }
  ASSERT_TRUE(copy.ok(copy.barrier(comm, nullptr)));
}

/// How a process ends whose threads have made their last calls: the last thread ends it.
void end_at_once(int threads) {
  static std::atomic<int> done = 0;  // each process of a test has its own
  std::fflush(nullptr);
  if (++done == threads) ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  for (;;) ::pause();
}

class TwoCopies : public ::testing::TestWithParam<const char*> {
 protected:
  static Team team(int ranks, Layout layout) {
    return {.ranks = ranks,
            .layout = layout,
            .environment = {std::string("TUTTI_TRANSPORT=") + GetParam(), "TUTTI_DEBUG=NONE"}};
  }
  /// A file of its own: the loader opens none twice.
  std::string another() const {
    Dl_info info{};
    EXPECT_NE(::dladdr(reinterpret_cast<void*>(tuttiCommDestroy), &info), 0);
    const std::string file = folder_ / "libanother.so";
    std::filesystem::copy_file(std::filesystem::canonical(info.dli_fname), file,
                               std::filesystem::copy_options::skip_existing);
    return file;
  }

 private:
  Folder folder_;
};

INSTANTIATE_TEST_SUITE_P(Transports, TwoCopies, ::testing::Values("auto", "slots", "cma", "mapped", "socket"),
                         [](const auto& tested) { return std::string(tested.param); });

/// Processes of two ranks, one by each copy.
void share_one(Seat& seat, const std::string& file, bool destroys) {
  const bool second = seat.rank() % 2 == 1;
  const Copy copy = second ? load(file) : linked;
  tuttiComm_t comm = nullptr;
  ASSERT_TRUE(copy.ok(copy.init_rank(&comm, seat.ranks(), seat.next_id(), seat.rank())));
  call_all(copy, comm, seat.rank(), seat.ranks());
  if (destroys) {
    EXPECT_TRUE(copy.ok(copy.destroy(comm)));
    return;
  }
  reduce(copy, comm, seat.ranks(), 1);
  end_at_once(2);
}

TEST_P(TwoCopies, ShareACommunicator) {
  const std::string file = another();
  for (const int ranks : {2, 4})
    launch_ranks(team(ranks, Layout::pairs), [&](Seat& seat) { share_one(seat, file, /*destroys=*/true); });
}

TEST_P(TwoCopies, ShareACommunicatorWhoseLastCallStands) {
  const std::string file = another();
  for (const int ranks : {2, 4})
    launch_ranks(team(ranks, Layout::pairs), [&](Seat& seat) { share_one(seat, file, /*destroys=*/false); });
}

/// One thread of each process has a communicator by each.
void have_one_each(Seat& seat, const std::string& file, bool destroys) {
  const Copy other = load(file);
  tuttiComm_t first = nullptr, second = nullptr;
  ASSERT_TRUE(linked.ok(linked.init_rank(&first, seat.ranks(), seat.next_id(), seat.rank())));
  const auto id = share_id(seat, other, 0, seat.rank() == 0);
  ASSERT_TRUE(other.ok(other.init_rank(&second, seat.ranks(), id, seat.rank())));
  call_all(linked, first, seat.rank(), seat.ranks());
  call_all(other, second, seat.rank(), seat.ranks());
  reduce(linked, first, seat.ranks(), 1);
  if (destroys) {
    EXPECT_TRUE(linked.ok(linked.destroy(first)));
  }
  call_all(other, second, seat.rank(), seat.ranks());  // it goes on
  if (!destroys) end_at_once(1);
  EXPECT_TRUE(other.ok(other.destroy(second)));
}

TEST_P(TwoCopies, HaveACommunicatorEach) {
  const std::string file = another();
  launch_ranks(team(2, Layout::processes), [&](Seat& seat) { have_one_each(seat, file, /*destroys=*/true); });
}

TEST_P(TwoCopies, HaveACommunicatorEachWhoseLastCallStands) {
  const std::string file = another();
  launch_ranks(team(2, Layout::processes), [&](Seat& seat) { have_one_each(seat, file, /*destroys=*/false); });
}

}  // namespace
}  // namespace tutti::testing
