// A launcher's end of the descriptors that PMI goes over: one that works, and one that says what it is told to.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace tutti::testing {

/// Serves PMI-1 or PMI-2 to `ranks` clients from a thread, until all have left.
class FakePmi {
 public:
  enum class Speaks { pmi1, pmi2 };
  FakePmi(Speaks speaks, int ranks);
  ~FakePmi();

  int fd(int rank) const { return clients_[static_cast<std::size_t>(rank)].get(); }
  /// The rank's process has ended.
  void leave(int rank) { clients_[static_cast<std::size_t>(rank)] = UniqueFd(); }
  int finalized() const { return finalized_; }

 private:
  void serve();
  bool read_from(std::size_t rank);
  std::string take_request(std::size_t rank);
  void obey(std::size_t rank, const std::string& request);
  void obey1(std::size_t rank, const std::string& request);
  void obey2(std::size_t rank, const std::string& request);
  void say(std::size_t rank, const std::string& words);
  bool fence_is_complete();

  const Speaks speaks_;
  std::vector<UniqueFd> clients_;
  std::vector<UniqueFd> servers_;
  std::vector<std::string> received_;
  std::vector<bool> begun_;
  std::map<std::string, std::string> values_;
  std::size_t oversubscribed_ = 0;
  std::atomic<int> finalized_ = 0;
  std::thread thread_;
};

/// Answers each send with the next of `answers`, whatever it was; then closes, or says nothing any more.
class ScriptedPmi {
 public:
  ScriptedPmi(std::vector<std::string> answers, bool close_at_end);
  ~ScriptedPmi();
  int fd() const { return client_.get(); }

 private:
  UniqueFd client_;
  UniqueFd server_;
  std::thread thread_;
};

}  // namespace tutti::testing
