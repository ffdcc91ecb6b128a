// Sends the other ranks of one host rank 0's result: the id, or the reason why there is none.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "base/descriptors.h"
#include "base/own_sockets.h"
#include "base/system.h"
#include "net/accept_pause.h"
#include "net/unique_id.h"

namespace tutti {

/// The answer as sent over the socket, in one packet.
std::string write_answer(const Result<UniqueId>& id);
/// Errors: rank 0's own error; remote (not an answer of rank 0).
Result<UniqueId> read_answer(std::string_view packet);

/// The packet that a rank sends to ask for the answer; that of a rank 0 tells that there is another one.
std::string write_question(int rank, int ranks);

/// Answers each of the other ranks, then ends, at the deadline at the latest. Refuses other users.
class IdServer final : public Task {
 public:
  /// Receives, once, why no rank could be let in for two seconds in which one waited.
  using OnStuck = std::function<void(const Error&)>;
  /// Called where another rank 0 of the same job has been started: the error that ranks hear from now on.
  using OnTwin = std::function<Error()>;
  IdServer(System& system, UniqueSocket listener, std::string word, int ranks, std::int64_t deadline_ns,
           OnStuck on_stuck = {}, OnTwin on_twin = {});
  ~IdServer() override;

  bool advance() override;
  std::int64_t poll_set(std::vector<PollItem>& items) override;

 private:
  struct Connection {
    UniqueSocket fd;
    std::int64_t deadline_ns;
  };
  void let_in();
  void cannot_accept(const Error& why);
  /// False: the connection is finished, answered or not.
  bool serve(const Connection& connection);
  void meet_twin();

  System& system_;
  UniqueSocket listener_;
  std::string word_;
  std::vector<bool> answered_;  ///< by rank
  std::size_t left_;
  std::int64_t deadline_ns_;
  OnStuck on_stuck_;
  OnTwin on_twin_;
  SpareDescriptor spare_;  ///< answers one rank after the other where there is no more
  AcceptPause pause_;
  std::list<Connection> connections_;
};

}  // namespace tutti
