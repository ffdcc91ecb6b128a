#include "init/id_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/printable.h"
#include "net/digest.h"
#include "transport/abstract_socket.h"

namespace tutti {
namespace {

constexpr char good = 'i';
constexpr char bad = 'e';
constexpr std::size_t reason_bytes_max = 400;
constexpr std::size_t connections_max = 64;
constexpr int let_in_at_once = 256;  // further connections wait for the next turn: the service thread has other tasks
constexpr std::int64_t question_limit_ns = 2'000'000'000;
constexpr std::int64_t twin_linger_ns = 3'000'000'000;  // as the end of a process waits for it
constexpr std::int64_t accept_pause_ns = 10'000'000;
constexpr std::int64_t accept_limit_ns = 2'000'000'000;

constexpr std::uint32_t question_mark = 0x74757431;  // "tut1"

struct Question {
  std::uint32_t mark = question_mark;
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
};

}  // namespace

std::string write_answer(const Result<UniqueId>& id) {
  // One event has one code on all ranks.
  if (!id) return std::string{bad, static_cast<char>(id.error().code)} + id.error().words().substr(0, reason_bytes_max);
  const auto bytes = id->encode();
  std::string word;
  word.reserve(1 + bytes.size());  // in one place, which the server wipes
  word += good;
  word.append(bytes.data(), bytes.size());
  return word;
}

Result<UniqueId> read_answer(std::string_view packet) {
  if (packet.starts_with(bad) && packet.size() > 1)
    return Error{.code = received_code(static_cast<unsigned char>(packet[1])),
                 .what = "rank 0 could not open the meeting point: " + printable(packet.substr(2), reason_bytes_max)};
  if (!packet.starts_with(good) || packet.size() != 1 + sizeof(std::declval<UniqueId>().encode()))
    return Error{.code = Code::remote, .what = "rank 0's answer is not an id"};
  return UniqueId::decode(packet.data() + 1);
}

std::string write_question(int rank, int ranks) {
  const Question question{.rank = rank, .ranks = ranks};
  std::string bytes(sizeof question, '\0');
  std::memcpy(bytes.data(), &question, sizeof question);
  return bytes;
}

IdServer::IdServer(System& system, UniqueSocket listener, std::string word, int ranks, std::int64_t deadline_ns,
                   OnStuck on_stuck, OnTwin on_twin)
    : system_(system),
      listener_(std::move(listener)),
      word_(std::move(word)),
      answered_(static_cast<std::size_t>(ranks)),
      left_(static_cast<std::size_t>(ranks) - 1),
      deadline_ns_(deadline_ns),
      on_stuck_(std::move(on_stuck)),
      on_twin_(std::move(on_twin)),
      pause_(accept_pause_ns, accept_limit_ns) {}

IdServer::~IdServer() {
  wipe(std::as_writable_bytes(std::span(word_)));
}

bool IdServer::advance() {
  let_in();
  const std::int64_t now = system_.now_ns();
  std::erase_if(connections_,
                [&](const Connection& connection) { return !serve(connection) || now >= connection.deadline_ns; });
  if (connections_.empty()) spare_.take();
  return left_ > 0 && now < deadline_ns_;
}

void IdServer::let_in() {
  const std::int64_t now = system_.now_ns();
  for (int i = 0; i < let_in_at_once && now >= pause_.until_ns(); ++i) {
    UniqueSocket fd(
        above_stdio([&] { return ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); }));
    if (!fd) {
      if ((errno == EMFILE || errno == ENFILE) && spare_.give()) continue;
      if (errno != EAGAIN && errno != EINTR)
        cannot_accept({.code = Code::system, .what = "accept a rank that asks for the id", .sys_errno = errno});
      return;
    }
    pause_.worked();
    if (!is_this_user(other_end(fd))) continue;
    if (connections_.size() >= connections_max) connections_.pop_front();  // it has had its time, and may call again
    connections_.push_back({.fd = std::move(fd), .deadline_ns = now + question_limit_ns});
    if (!serve(connections_.back())) connections_.pop_back();
  }
}

/// The spare descriptor may have gone to whatever this process opened in the moment when it was free, and nothing gives
/// it back while this process waits for the rank that waits here.
void IdServer::cannot_accept(const Error& why) {
  if (pause_.failed(system_, listener_.get()) == AcceptPause::Waiter::too_long && on_stuck_)
    std::exchange(on_stuck_, {})(why);
}

/// Which of two ranks 0 the others belong to cannot be told, so nobody gets an id.
void IdServer::meet_twin() {
  if (!on_twin_) return;
  wipe(std::as_writable_bytes(std::span(word_)));
  word_ = write_answer(std::exchange(on_twin_, {})());
  left_ += answered_.size() - 1;  // those of the other one
  // Not for as long as ranks may come: a job that is started once more is not to find this one.
  deadline_ns_ = std::min(deadline_ns_, system_.now_ns() + twin_linger_ns);
}

bool IdServer::serve(const Connection& connection) {
  Question question;
  const auto got = ::recv(connection.fd.get(), &question, sizeof question, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  const auto rank = static_cast<std::size_t>(question.rank);
  if (got != sizeof question || question.mark != question_mark || question.rank < 0) return false;
  if (question.rank == 0) {
    meet_twin();
    return false;
  }
  // A packet of this size fits any socket buffer, so send neither blocks nor truncates.
  if (::send(connection.fd.get(), word_.data(), word_.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(word_.size()))
    return false;
  // One that was told of another number of ranks joins, and so all hear it. This server goes on for those.
  const bool disagrees = static_cast<std::size_t>(question.ranks) != answered_.size() || rank >= answered_.size();
  if (disagrees || answered_[rank]) return false;
  --left_;
  answered_[rank] = true;
  return false;
}

std::int64_t IdServer::poll_set(std::vector<PollItem>& items) {
  std::int64_t wake = deadline_ns_;
  if (system_.now_ns() < pause_.until_ns())
    wake = std::min(wake, pause_.until_ns());
  else
    items.push_back({.handle = listener_.get(), .want_read = true});
  for (const Connection& connection : connections_) {
    items.push_back({.handle = connection.fd.get(), .want_read = true});
    wake = std::min(wake, connection.deadline_ns);
  }
  return wake;
}

}  // namespace tutti
