// The port that an id names: there for the starts that need it, and no longer.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "support/call.h"
#include "support/free_port.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

/// The ports at which this process listens. A line of the tables has, among others, the local address and port as its
/// second word, the state (0A: it listens) as its fourth and the inode of the socket as its tenth.
std::vector<int> listening_ports() {
  std::vector<std::string> own;
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // that of the iterator itself
    own.push_back(std::filesystem::read_symlink(fd, gone));
  }
  std::vector<int> ports;
  for (const char* const table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      const std::vector<std::string> column{std::istream_iterator<std::string>(words), {}};
      if (column.size() < 10 || column[3] != "0A") continue;
      if (std::ranges::find(own, "socket:[" + column[9] + "]") == own.end()) continue;
      ports.push_back(std::stoi(column[1].substr(column[1].find(':') + 1), nullptr, 16));
    }
  }
  return ports;
}

/// What becomes of a call of this host's port: 0 or errno.
int call_port(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  const int outcome = ::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 ? 0 : errno;
  ::close(fd);
  return outcome;
}

void expect_refuses_soon(int port) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  int outcome = call_port(port);
  for (; outcome == 0 && std::chrono::steady_clock::now() < limit; outcome = call_port(port)) ::poll(nullptr, 0, 5);
  EXPECT_EQ(outcome, ECONNREFUSED) << "at port " << port;
}

/// All ids of a process have the same, as long as one of their starts is still to come. Communicators need none.
TEST(IdListener, ClosesWhenNoStartNeedsItAnyMore) {
  launch_ranks({.ranks = 2, .environment = {"TUTTI_DEBUG=NONE", "TUTTI_SOCKET_IFNAME=lo"}}, [](Seat& seat) {
    const std::vector ids = {seat.next_id(), seat.next_id()};
    const std::vector<int> ports = listening_ports();
    ASSERT_EQ(ports.size(), seat.rank() == 0 ? 1u : 0u);
    std::vector<tuttiComm_t> comms;
    for (const auto& id : ids) {
      for (const int port : ports) EXPECT_EQ(call_port(port), 0) << "before start " << comms.size();
      ASSERT_TRUE(seat.meet());
      ASSERT_TRUE(ok(tuttiCommInitRank(&comms.emplace_back(), 2, id, seat.rank())));
    }
    for (const int port : ports) expect_refuses_soon(port);
    ASSERT_TRUE(seat.meet());
    for (const auto comm : comms) EXPECT_EQ(run_call({.count = 10, .seed = 1}, seat.here(), 2, {comm}), "");
    for (const auto comm : comms) EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

/// Where the ranks' environment says at which port.
TEST(IdListener, ClosesThoughItsPortIsGiven) {
  const int port = free_port(2);
  Team team{.ranks = 2, .environment = {"TUTTI_DEBUG=NONE", "TUTTI_NRANKS=2"}};
  team.environment.push_back("TUTTI_COMM_ID=127.0.0.1:" + std::to_string(port));
  team.environment.push_back("TUTTI_COMM_SECRET=correct horse battery");
  team.environment_of = [](int rank) { return std::vector{"TUTTI_RANK=" + std::to_string(rank)}; };
  launch_ranks(team, [port](Seat& seat) {
    tuttiComm_t comm = nullptr;
    ASSERT_TRUE(ok(tuttiCommInitFromEnv(&comm, nullptr)));
    expect_refuses_soon(port);
    ASSERT_TRUE(seat.meet());
    EXPECT_EQ(run_call({.count = 10, .seed = 1}, seat.here(), 2, {comm}), "");
    EXPECT_TRUE(ok(tuttiCommDestroy(comm)));
  });
}

}  // namespace
}  // namespace tutti::testing
