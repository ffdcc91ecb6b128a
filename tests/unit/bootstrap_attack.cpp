// How long a start takes while somebody opens connections at its port, as fast as asked: garbage, silence, slow and
// huge greetings. Prints medians of starts left alone, with the same attack on another port, and under attack. Usage:
// bootstrap_attack [RANKS [STARTS [CONNECTIONS-PER-SECOND]]]     exit status 1 when a start fails
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "bootstrap/bootstrap.h"

namespace {

using namespace tutti;

/// One connection after the other to the port it is given, paced; the last few hundred stay open.
class Attack {
 public:
  explicit Attack(int per_second) : per_second_(per_second), thread_([this](std::stop_token stop) { loop(stop); }) {}
  void aim(std::uint16_t port) { port_ = port; }
  std::uint64_t made() const { return made_; }

 private:
  static std::string words(std::uint64_t nth) {
    switch (nth % 5) {
      case 0: return "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
      case 1: return "";         // silent
      case 2: return "ttihell";  // slow
      case 3: return std::string(4'096, '\xff');
      default: return "tthlello" + std::string(200, '\x7f');  // almost
    }
  }
  void call(std::uint16_t port) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const linger reset{.l_onoff = 1, .l_linger = 0};  // leaves no port in TIME_WAIT
    ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
    const std::string said = words(++made_);
    (void)!::send(fd.get(), said.data(), said.size(), MSG_NOSIGNAL);
    open_.push_back(std::move(fd));
    if (open_.size() > 300) open_.pop_front();
  }
  void loop(const std::stop_token& stop) {
    System& system = real_system();
    std::int64_t next = system.now_ns();
    while (!stop.stop_requested()) {
      const std::uint16_t port = port_;
      if (port == 0) next = system.now_ns();
      for (; port != 0 && next <= system.now_ns(); next += 1'000'000'000 / per_second_) call(port);
      system.poll({}, 200'000);
    }
  }
  int per_second_;
  std::atomic<std::uint16_t> port_ = 0;
  std::atomic<std::uint64_t> made_ = 0;
  std::deque<UniqueFd> open_;
  std::jthread thread_;
};

/// Drives a task until it ends or is stopped.
void serve(const std::stop_token& stop, Task& task) {
  System& system = real_system();
  while (!stop.stop_requested() && task.advance()) {
    std::vector<PollItem> items;
    const std::int64_t until = task.poll_set(items);
    system.poll(items, std::clamp<std::int64_t>(until - system.now_ns(), 0, 5'000'000));
  }
}

/// Two exchanges of all ranks, as a communicator's start makes; returns microseconds, or −1.
double start(int ranks, Attack& attack, bool aim) {
  System& system = real_system();
  const auto secret = fresh_secret();
  const std::int64_t begun = system.now_ns();
  auto root = BootstrapRoot::open(system, {.host = "127.0.0.1"}, *secret, {});
  if (!root) return -1;
  const UniqueId id{.root = (*root)->address(), .secret = *secret};
  if (aim) attack.aim(id.root.port);
  std::jthread service([&](std::stop_token stop) { serve(stop, **root); });
  std::vector<std::unique_ptr<Bootstrap>> all;
  for (int rank = 0; rank < ranks; ++rank)
    all.push_back(
        std::make_unique<Bootstrap>(system, id, Bootstrap::Who{.rank = rank, .ranks = ranks}, BootstrapLimits{}));
  for (int round = 0; round < 2; ++round) {
    for (auto& one : all) one->exchange(Blob(500));
    for (bool complete = false; !complete;) {
      complete = true;
      std::vector<PollItem> items;
      std::int64_t until = system.now_ns() + 1'000'000'000;
      for (auto& one : all) {
        const auto done = one->advance();
        if (!done) {
          std::fprintf(stderr, "%s\n", done.error().text().c_str());
          return -1;
        }
        complete = complete && *done;
        if (!*done) until = std::min(until, one->poll_set(items));
      }
      if (!complete) system.poll(items, std::max<std::int64_t>(until - system.now_ns(), 0));
    }
  }
  return static_cast<double>(system.now_ns() - begun) * 1e-3;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 16;
  const int starts = argc > 2 ? std::atoi(argv[2]) : 100;
  const int per_second = argc > 3 ? std::atoi(argv[3]) : 10'000;
  System& system = real_system();
  // A port where everybody is accepted and dropped: what the attack costs the machine, whoever is meant.
  Socket other = *system.listen({.host = "127.0.0.1"});
  const std::uint16_t other_port = (*system.address(other)).port;
  std::jthread dropper([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      PollItem item{.handle = other.handle(), .want_read = true};
      system.poll({&item, 1}, 5'000'000);
      for (auto one = system.accept(other); one && *one; one = system.accept(other)) {
      }
    }
  });
  Attack attack(per_second);
  std::vector<double> alone, beside, under;
  std::uint64_t connections = 0;
  // In turn, so that all have met the same states of the machine.
  for (int i = 0; i < starts; ++i) {
    attack.aim(0);
    alone.push_back(start(ranks, attack, false));
    attack.aim(other_port);
    beside.push_back(start(ranks, attack, false));
    const std::uint64_t before = attack.made();
    under.push_back(start(ranks, attack, true));
    connections += attack.made() - before;
    attack.aim(0);
  }
  const bool failed = std::ranges::min(alone) < 0 || std::ranges::min(beside) < 0 || std::ranges::min(under) < 0;
  std::printf(
      "%d ranks, %d starts, median µs: %.0f alone, %.0f with the attack on another port, %.0f under attack (%.2f); "
      "%.0f connections in a start\n",
      ranks, starts, median(alone), median(beside), median(under), median(under) / median(alone),
      static_cast<double>(connections) / starts);
  return failed || connections == 0 ? 1 : 0;
}
