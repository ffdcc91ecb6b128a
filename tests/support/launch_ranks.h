// Runs a function per rank: as threads, as processes, as both, or all ranks in one thread.
//
// The test program itself never calls tutti: a process that did refuses it to its forked children. So every team runs
// in children, which end with the test. A failed expectation in a child prints there and fails the test here.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/board.h"
#include "support/rdma.h"
#include "tutti/tutti.h"

namespace tutti::testing {

enum class Layout { threads, processes, pairs, one_thread };  ///< pairs: processes of two threads, or Team::threads
const char* name(Layout layout);

struct Team {
  int ranks = 2;
  Layout layout = Layout::processes;
  std::vector<std::string> environment = {};  ///< "TUTTI_TRANSPORT=slots": of the children
  std::chrono::seconds limit{60};             ///< stretched by patience(); then all are killed and the test has failed
  std::size_t words = 64;                     ///< of the board
  int threads = 2;                            ///< of a process, in Layout::pairs
  unsigned long namespaces = 0;  ///< CLONE_NEW…: each process gets its own; with NEWPID and NEWNS /proc too
  bool users = false;            ///< with CLONE_NEWUSER: each is another user to the kernel
  /// More of the environment, of the process whose first rank that is.
  std::function<std::vector<std::string>(int)> environment_of = {};
};

/// In a process with these CLONE_NEW… namespaces: mounts /proc for its own PID namespace, if it has one and may mount.
/// False: not possible, as in a chroot, whose / is no mount point.
bool mount_own_proc(unsigned long namespaces);

/// Where one thread of a team sits: it drives one rank, or all of them.
class Seat {
 public:
  Seat(const Team& team, Board& board, std::vector<int> here) : team_(team), board_(board), here_(std::move(here)) {}

  const std::vector<int>& here() const { return here_; }
  int rank() const;  ///< of a thread that drives one
  int ranks() const { return team_.ranks; }
  Board& board() { return board_; }

  /// Waits until all threads of the team are here; not by means of tutti.
  bool meet();
  /// A new communicator of all ranks: one handle per rank of here(). Fails the test, and gives none, on an error.
  std::vector<tuttiComm_t> init(const tuttiConfig_t* config = nullptr);
  tuttiComm_t init_one(const tuttiConfig_t* config = nullptr);
  /// An id that all seats get alike: the n-th call of one seat meets the n-th of the others.
  tuttiUniqueId next_id();
  void doing(const std::string& what);

 private:
  const Team& team_;
  Board& board_;
  std::vector<int> here_;
  std::size_t ids_ = 0;
};

/// A team at work.
class Workers {
 public:
  Workers(Team team, const std::function<void(Seat&)>& body);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  Board& board() { return *board_; }
  pid_t pid_of(int rank) const;
  /// SIGKILL; how this process ends is no failure any more.
  void kill(int rank);

  /// Waits for all. False, and the test has failed, when one failed, crashed or was late.
  bool finish();

 private:
  struct Child {
    pid_t pid = -1;
    int pidfd = -1;
    std::vector<std::vector<int>> seats;
    bool killed = false;
    bool ended = false;
  };
  void fork_one(Child& child, const std::function<void(Seat&)>& body);
  void name_users(const Child& child) const;
  [[noreturn]] void run_child(const Child& child, const std::function<void(Seat&)>& body);
  void wait_until(std::chrono::steady_clock::time_point deadline);
  void reap(Child& child);
  bool all_ended() const;
  std::string who(const Child& child) const;

  Team team_;
  Board* board_;
  std::optional<RdmaFabric> fabric_;
  std::vector<Child> children_;
  Board::Look look_;  // for waits of the test itself, which are in vain once all have ended
  bool failed_ = false;
  bool finished_ = false;
};

/// Runs `body` once per seat and waits.
bool launch_ranks(const Team& team, const std::function<void(Seat&)>& body);

/// Success, or the code's and the library's words.
::testing::AssertionResult ok(tuttiResult_t result);
/// The code expected, and words that hold `part`; `comm`: whose last error to ask for, or NULL.
::testing::AssertionResult fails(tuttiResult_t result, tuttiResult_t expected, const std::string& part,
                                 tuttiComm_t comm = nullptr);

/// By how much limits of time are to be stretched: how many runnable threads each core has, what sanitizers cost, and
/// TUTTI_TEST_PATIENCE.
double patience();

}  // namespace tutti::testing
