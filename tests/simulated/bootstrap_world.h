// A root and its ranks in one thread, on a simulated network, driven in an order made from the seed.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "bootstrap/bootstrap_call.h"
#include "support/sim_system.h"

namespace tutti {

/// What became of a rank.
struct Outcome {
  int rounds = 0;  ///< completed
  std::optional<Error> error;
  std::int64_t at_ns = 0;
};

class BootstrapWorld {
 public:
  static constexpr std::int64_t ms = 1'000'000;
  static constexpr std::int64_t s = 1'000 * ms;

  BootstrapWorld(const SimOptions& options, int ranks, int rounds)
      : system(options), ranks_(ranks), rounds_(rounds), start_ns_(system.now_ns()) {
    secret.fill(std::byte{7});
    limits = {.handshake_ms = 1'000, .init_ms = 30'000, .missing_report_ms = 5'000, .blob_bytes_max = 4'096};
    // Of few ranks a star, a chain or what lies between.
    limits.fan_out = std::array{1, 2, 3, 16}[options.seed % 4];
  }

  Bootstrap::Who who(int rank) const {
    return {
        .rank = rank, .ranks = ranks_, .settings_text = "", .version = 100, .process = "pid " + std::to_string(rank)};
  }
  void open_root() {
    auto opened = BootstrapRoot::open(system, at, secret, limits,
                                      {.warn = [this](const std::string& text) { warnings.push_back(text); },
                                       .info = [this](const std::string& text) { notes.push_back(text); }});
    if (opened) root = *std::move(opened);
  }
  /// Returns its place in `outcomes`.
  std::size_t add(const Bootstrap::Who& who) { return add(who, secret); }
  std::size_t add(const Bootstrap::Who& who, const Secret& with) {
    actors_.push_back(
        {std::make_unique<Bootstrap>(
             system, UniqueId{.root = at, .secret = with, .root_may_come_later = root_may_come_later}, who, limits),
         who.rank});
    outcomes.emplace_back();
    contribute(actors_.size() - 1);
    return actors_.size() - 1;
  }
  void add_all() {
    for (int rank = 0; rank < ranks_; ++rank) add(who(rank));
  }
  /// A rank that cannot take part. Its outcome is none.
  void add_excuse(const Bootstrap::Who& who, const Error& why) {
    excuses_.push_back(std::make_unique<bootstrap::Excuse>(system, UniqueId{.root = at, .secret = secret}, who, why,
                                                           system.now_ns() + 30 * s));
  }
  bool all_excused() const { return excuses_.empty(); }
  /// A connection that says `bytes` and no more.
  void add_stranger(const Bytes& bytes) {
    auto socket = system.connect(at);
    if (socket) strangers_.push_back({*std::move(socket), bytes});
  }

  /// Like a kill: the kernel closes its sockets, nothing is said.
  void kill(std::size_t actor) {
    std::vector<PollItem> items;
    actors_[actor].bootstrap->poll_set(items);
    for (const PollItem& item : items) system.reset(item.handle);
    quit(actor);
  }
  /// The rank goes away, politely.
  void quit(std::size_t actor) {
    actors_[actor].bootstrap.reset();
    if (settled(actor)) return;
    outcomes[actor].error = Error{.code = Code::internal, .what = "gone"};
    outcomes[actor].at_ns = elapsed_ns();
  }

  /// It is not given a core for now.
  void hold(std::size_t actor) { actors_[actor].held = true; }
  void release(std::size_t actor) { actors_[actor].held = false; }

  bool settled(std::size_t actor) const { return outcomes[actor].error || outcomes[actor].rounds == rounds_; }
  bool all_settled() const {
    for (std::size_t i = 0; i < actors_.size(); ++i)
      if (!settled(i)) return false;
    return true;
  }
  std::int64_t elapsed_ns() { return system.now_ns() - start_ns_; }

  /// Everybody once, in random order; then time passes until somebody has something to do.
  void turn();
  void run_until_settled(std::int64_t limit_ns = 200 * s) {
    while (!all_settled() && elapsed_ns() < limit_ns) turn();
  }
  /// The ranks go, then the root should.
  bool root_ends_after_all_left(std::int64_t limit_ns);

  SimSystem system;
  SocketAddress at{.host = "10.0.0.1", .port = 4000};
  Secret secret;
  BootstrapLimits limits;
  bool root_may_come_later = false;  ///< of ranks that are added from now on
  std::unique_ptr<BootstrapRoot> root;
  bool root_ended = false;
  std::vector<Outcome> outcomes;
  std::vector<std::string> warnings;
  std::vector<std::string> notes;
  std::string wrong_blob;  ///< the first one seen

 private:
  struct Actor {
    std::unique_ptr<Bootstrap> bootstrap;
    int rank;
    bool held = false;
  };
  struct Stranger {
    Socket socket;
    Bytes bytes;
  };
  void contribute(std::size_t actor);
  void advance(std::size_t actor);
  void check_blobs(std::size_t actor);
  static Blob blob(int rank, int round) {
    Blob made(static_cast<std::size_t>(rank * 97 + round * 301 + 5));
    for (std::size_t i = 0; i < made.size(); ++i)
      made[i] = static_cast<std::byte>(i * 3 + static_cast<std::size_t>(rank));
    return made;
  }

  int ranks_;
  int rounds_;
  std::int64_t start_ns_;
  std::vector<Actor> actors_;
  std::vector<Stranger> strangers_;
  std::vector<std::unique_ptr<bootstrap::Excuse>> excuses_;
};

}  // namespace tutti
