#include "support/fake_pmi.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace tutti::testing {
namespace {

void pair(UniqueFd& client, UniqueFd& server) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  client = UniqueFd(ends[0]);
  server = UniqueFd(ends[1]);
}

/// "value" of "cmd=put key=name value=x", up to `separator`.
std::string word(const std::string& request, const std::string& name, char separator) {
  const auto at = request.find(name + "=");
  if (at == std::string::npos) return "";
  const auto from = at + name.size() + 1;
  return request.substr(from, std::min(request.find(separator, from), request.size()) - from);
}

void write_all(int fd, const std::string& text) {
  (void)::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
}

}  // namespace

FakePmi::FakePmi(Speaks speaks, int ranks)
    : speaks_(speaks),
      clients_(static_cast<std::size_t>(ranks)),
      servers_(clients_.size()),
      received_(clients_.size()),
      begun_(clients_.size()) {
  for (std::size_t i = 0; i < clients_.size(); ++i) pair(clients_[i], servers_[i]);
  thread_ = std::thread([this] { serve(); });
}

FakePmi::~FakePmi() {
  for (auto& client : clients_)
    if (client) ::shutdown(client.get(), SHUT_RDWR);
  thread_.join();
}

void FakePmi::serve() {
  while (true) {
    std::vector<pollfd> polled;
    for (const auto& server : servers_) polled.push_back({.fd = server.get(), .events = POLLIN, .revents = 0});
    if (std::ranges::all_of(polled, [](const pollfd& one) { return one.fd < 0; })) return;
    ::poll(polled.data(), polled.size(), -1);
    for (std::size_t rank = 0; rank < polled.size(); ++rank)
      if (polled[rank].revents != 0 && !read_from(rank)) servers_[rank] = UniqueFd();
  }
}

bool FakePmi::read_from(std::size_t rank) {
  std::array<char, 512> buffer;
  const ssize_t got = ::recv(servers_[rank].get(), buffer.data(), buffer.size(), 0);
  if (got <= 0) return false;
  received_[rank].append(buffer.data(), static_cast<std::size_t>(got));
  for (std::string request; !(request = take_request(rank)).empty();) obey(rank, request);
  return true;
}

/// The next whole one, or nothing.
std::string FakePmi::take_request(std::size_t rank) {
  std::string& text = received_[rank];
  std::size_t from = 0;
  std::size_t bytes = 0;
  if (speaks_ == Speaks::pmi2 && begun_[rank]) {
    if (text.size() < 6) return "";
    from = 6;
    bytes = std::stoul(text.substr(0, 6));
    if (text.size() < from + bytes) return "";
  } else {
    const auto end = text.find('\n');
    if (end == std::string::npos) return "";
    bytes = end + 1;
  }
  std::string request = text.substr(from, bytes);
  text.erase(0, from + bytes);
  return request;
}

void FakePmi::say(std::size_t rank, const std::string& words) {
  const bool framed = speaks_ == Speaks::pmi2 && begun_[rank];
  write_all(servers_[rank].get(), framed ? fmt::format("{:<6}{}", words.size(), words) : words + "\n");
}

void FakePmi::obey(std::size_t rank, const std::string& request) {
  if (!begun_[rank]) {
    const int version = speaks_ == Speaks::pmi1 ? 1 : 2;
    EXPECT_EQ(request, fmt::format("cmd=init pmi_version={} pmi_subversion={}\n", version, 2 - version));
    say(rank, fmt::format("cmd=response_to_init rc=0 pmi_version={} pmi_subversion={}", version, 2 - version));
    begun_[rank] = true;
  } else if (speaks_ == Speaks::pmi1) {
    obey1(rank, request.substr(0, request.size() - 1));
  } else {
    obey2(rank, request);
  }
}

bool FakePmi::fence_is_complete() {
  if (++oversubscribed_ < servers_.size()) return false;
  oversubscribed_ = 0;
  return true;
}

void FakePmi::obey1(std::size_t rank, const std::string& request) {
  const std::string command = word(request, "cmd", ' ');
  const std::string key = word(request, "key", ' ');
  if (command == "get_maxes") {
    say(rank, "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024");
  } else if (command == "get_my_kvsname") {
    say(rank, "cmd=my_kvsname kvsname=kvs_1_0");
  } else if (command == "put") {
    EXPECT_EQ(word(request, "kvsname", ' '), "kvs_1_0");
    values_[key] = word(request, "value", ' ');
    say(rank, "cmd=put_result rc=0 msg=success");
  } else if (command == "barrier_in") {
    if (!fence_is_complete()) return;
    for (std::size_t i = 0; i < servers_.size(); ++i) say(i, "cmd=barrier_out");
  } else if (command == "get") {
    say(rank, values_.contains(key) ? "cmd=get_result rc=0 msg=success value=" + values_[key]
                                    : "cmd=get_result rc=-1 msg=key_" + key + "_not_found value=unknown");
  } else if (command == "finalize") {
    ++finalized_;
    say(rank, "cmd=finalize_ack");
  } else {
    ADD_FAILURE() << request;
  }
}

void FakePmi::obey2(std::size_t rank, const std::string& request) {
  EXPECT_TRUE(request.ends_with(';')) << request;
  const std::string command = word(request, "cmd", ';');
  const std::string key = word(request, "key", ';');
  if (command == "fullinit") {
    EXPECT_EQ(word(request, "pmijobid", ';'), "7.0");
    EXPECT_EQ(word(request, "pmirank", ';'), std::to_string(rank));
    say(rank, fmt::format("cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank={};size={};appnum=-1;", rank,
                          servers_.size()));
  } else if (command == "kvs-put") {
    values_[key] = word(request, "value", ';');
    say(rank, "cmd=kvs-put-response;rc=0;");
  } else if (command == "kvs-fence") {
    if (!fence_is_complete()) return;
    for (std::size_t i = 0; i < servers_.size(); ++i) say(i, "cmd=kvs-fence-response;rc=0;");
  } else if (command == "kvs-get") {
    say(rank, values_.contains(key) ? "cmd=kvs-get-response;rc=0;found=TRUE;value=" + values_[key] + ";"
                                    : "cmd=kvs-get-response;rc=0;found=FALSE;");
  } else if (command == "finalize") {
    ++finalized_;
    say(rank, "cmd=finalize-response;rc=0;");
  } else {
    ADD_FAILURE() << request;
  }
}

ScriptedPmi::ScriptedPmi(std::vector<std::string> answers, bool close_at_end) {
  pair(client_, server_);
  thread_ = std::thread([this, answers = std::move(answers), close_at_end] {
    std::array<char, 4096> buffer;
    for (const auto& answer : answers) {
      if (::recv(server_.get(), buffer.data(), buffer.size(), 0) <= 0) return;
      write_all(server_.get(), answer);
    }
    if (close_at_end) ::shutdown(server_.get(), SHUT_RDWR);
    while (::recv(server_.get(), buffer.data(), buffer.size(), 0) > 0) {
    }
  });
}

ScriptedPmi::~ScriptedPmi() {
  ::shutdown(client_.get(), SHUT_RDWR);
  thread_.join();
}

}  // namespace tutti::testing
