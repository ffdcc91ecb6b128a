// What the processes of a test share besides tutti: words, a meeting point, ids, and what each rank is doing.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tutti/tutti.h"

namespace tutti::testing {

/// Lives in memory that is shared before the first fork; trivially constructible from zeros.
class Board {
 public:
  static constexpr int ranks_max = 256;
  static constexpr int ids_max = 256;

  static Board* make(std::size_t words);
  static void free(Board* board);

  /// For the test's own use; 0 at first.
  std::atomic<std::uint64_t>& word(std::size_t index);
  std::size_t words() const { return words_; }

  /// Returns once `ranks` calls more than were answered before have come: all of one team. False: the test is over.
  bool meet(int ranks);

  /// Returns once the word is at least `value`. False: the test is over, or the limit has passed.
  bool wait_for(std::size_t index, std::uint64_t value, std::chrono::milliseconds limit = std::chrono::hours(1));
  void raise(std::size_t index, std::uint64_t value);

  /// The `nth` id of this test, made by whoever calls with `mine`; the others wait for it.
  tuttiUniqueId share_id(std::size_t nth, bool mine);

  /// Shown when time runs out.
  void doing(int rank, const std::string& what);
  std::string doing(int rank) const;

  /// Called now and then by waits of this process, which end the board when there is nobody left to wait for.
  using Look = std::function<void()>;
  static std::vector<const Look*>& looks();

  void end() { over_.store(1, std::memory_order_release); }
  bool over() const { return over_.load(std::memory_order_acquire) != 0; }

 private:
  struct Id {
    std::atomic<std::uint32_t> there;
    tuttiUniqueId id;
  };
  static void pause(std::atomic<std::uint32_t>& bell, std::uint32_t seen);

  std::atomic<std::uint32_t> over_;
  std::atomic<std::uint32_t> bell_;  // moved on and rung whenever somebody may go on
  std::atomic<std::uint64_t> met_;
  std::array<Id, ids_max> ids_;
  std::array<std::array<char, 200>, ranks_max> doing_;
  std::size_t words_;
};

}  // namespace tutti::testing
