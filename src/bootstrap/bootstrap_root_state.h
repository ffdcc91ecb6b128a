// The state of the root of a start: its members, their tree, and how the start ends.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "bootstrap/bootstrap.h"
#include "bootstrap/bootstrap_acceptor.h"
#include "bootstrap/bootstrap_messages.h"
#include "bootstrap/bootstrap_tree.h"
#include "bootstrap/failed_start.h"
#include "bootstrap/roster.h"
#include "bootstrap/start_report.h"
#include "net/wire.h"

namespace tutti {
namespace bootstrap {

/// A connection that has proved the secret.
struct RootMember {
  enum class State {
    connection,  ///< has not yet said which rank it is
    waiting,     ///< for its place
    moving,      ///< to a place below another rank
    seated,      ///< as a child of the root
  };
  Wire wire;
  int rank;  ///< as claimed; trusted once it has joined
  std::string host = {};
  State state = State::connection;
  bool here = false;    ///< in this process
  bool listen = false;  ///< is to have children
  bool told = false;    ///< the failure is being sent; only the end of the connection is awaited
  std::uint32_t confirmed = 0;
  std::uint64_t refused = 0;     ///< connections refused by the ranks below
  std::int64_t deadline_ns = 0;  ///< of the farewell, or of waiting for its place

  bool joined() const { return state != State::connection; }
};

}  // namespace bootstrap

struct BootstrapRoot::State {
  using Member = bootstrap::RootMember;

  State(System& system_in, const bootstrap::SharedListener::Registration& registration, const Secret& secret_in,
        const BootstrapLimits& limits_in, BootstrapLog log_in)
      : system(system_in),
        at(registration.shared_listener->at()),
        secret(secret_in),
        limits(limits_in),
        acceptor(system_in, registration, secret),
        tree(limits_in.fan_out),
        roster(limits_in.blob_bytes_max),
        report(std::move(log_in), limits_in.missing_report_ms) {}

  void let_in();
  void serve_members();
  void serve(Member& member);
  void obey(Member& member, const Frame& frame);
  void obey_joined(Member& member, const Frame& frame);
  void join(Member& member, const Bytes& body);
  void take_excuse(Member& member, const Bytes& body);
  void excuse(const bootstrap::Excused& excuse);
  void give_places();
  void welcome(Member& member, int parent);
  void take_contribution(Member& member, const Bytes& body);
  void take_gone(Member& member, const Bytes& body);
  void take_confirmation(Member& member, const Bytes& body);
  void lose(Member& member, const std::string& reason, bool left = false);
  void lose_rank(int rank, const std::string& reason, bool left);
  void fail(Error error);
  void tell(Member& member, const Error& error);
  void publish_complete_rounds();
  void send_answer(const std::shared_ptr<const Bytes>& answer, bool here);
  void answer_those_here();
  void report_start();
  void keep_limits();
  bool accepting() const;

  std::int64_t limit_ns() const {
    return roster.give_up_ns().value_or(roster.waiting_since_ns() + limits.init_ms * 1'000'000);
  }

  System& system;
  SocketAddress at;
  Secret secret;
  BootstrapLimits limits;
  bootstrap::Acceptor acceptor;
  std::list<Member> members;
  bootstrap::Tree tree;
  bootstrap::Roster roster;
  bootstrap::FailedStart failed;
  bootstrap::LocalExcuses from_here;
  bootstrap::StartReport report;
  std::uint32_t rounds = 0;
  std::shared_ptr<const Bytes> for_those_here;  ///< the last answer, until the ranks of this process have it
  std::uint64_t refused_below = 0;              ///< connections refused by ranks that have gone
};

}  // namespace tutti
