#include "launch/pmi_wire.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>

#include <fmt/format.h>

#include "base/blocked_signal.h"
#include "base/dylib.h"
#include "base/printable.h"

namespace tutti {
namespace {

constexpr std::size_t words_max = 64;
constexpr std::size_t line_bytes_max = 4096;
constexpr std::size_t frame_bytes_max = 65536;
constexpr std::size_t length_digits = 6;
constexpr std::int64_t goodbye_ns = 1'000'000'000;

bool mpi_is_running() {
  using Ask = int(int*);
  auto* const initialized = reinterpret_cast<Ask*>(find_loaded("MPI_Initialized"));
  int is = 0;
  return initialized != nullptr && initialized(&is) == 0 && is != 0;
}

}  // namespace

Result<PmiWords> PmiWords::read(std::string_view text, char separator) {
  PmiWords words;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto end = std::min(rest.find(separator), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (word.empty()) continue;
    const auto equals = word.find('=');
    if (equals == std::string_view::npos || equals == 0 || words.words_.size() == words_max)
      return remote_error(fmt::format("the launcher's answer \"{}\" cannot be understood", printable(text, 24)));
    words.words_.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return words;
}

std::string_view PmiWords::value(std::string_view name) const {
  const auto found = std::ranges::find(words_, name, &std::pair<std::string, std::string>::first);
  return found == words_.end() ? std::string_view() : found->second;
}

Result<void> PmiWords::expect(std::string_view command) const {
  std::string said;
  for (const auto& [name, text] : words_)
    if (name != "value") said += fmt::format("{}{}={}", said.empty() ? "" : " ", name, text);
  if (value("cmd") != command)
    return remote_error(
        fmt::format("the launcher answered \"{}\" where {} was expected", printable(said, 120), command));
  if (const auto rc = value("rc"); !rc.empty() && rc != "0")
    return remote_error(fmt::format("the launcher refused: \"{}\"", printable(said, 120)));
  return {};
}

Result<PmiWire> PmiWire::open(System& system, int fd) {
  if (::fcntl(fd, F_GETFD) < 0)
    return invalid_usage(fmt::format("PMI_FD={} is not open in this process: was it closed on the way here?", fd));
  if (mpi_is_running()) return invalid_usage(fmt::format("PMI_FD={} is in use by this process's MPI library", fd));
  return PmiWire(system, fd);
}

Result<PmiWords> PmiWire::ask(PmiForm form, const std::string& words, std::string_view answer,
                              std::int64_t deadline_ns) {
  if (failure_) return *failure_;
  auto said = exchange(form, words, answer, deadline_ns);
  if (!said) failure_ = said.error();
  return said;
}

void PmiWire::say_goodbye(PmiForm form, const std::string& words, std::string_view answer) {
  (void)ask(form, words, answer, system_->now_ns() + goodbye_ns);
}

Result<PmiWords> PmiWire::exchange(PmiForm form, const std::string& words, std::string_view answer,
                                   std::int64_t deadline_ns) {
  const bool lines = form == PmiForm::line;
  TUTTI_TRY(send(lines ? words + "\n" : fmt::format("{:<6}{}", words.size(), words), deadline_ns));
  const std::string text = TUTTI_TRY(lines ? line(deadline_ns) : frame(deadline_ns));
  auto said = TUTTI_TRY(PmiWords::read(text, lines ? ' ' : ';'));
  TUTTI_TRY(said.expect(answer));
  return said;
}

Result<void> PmiWire::wait(bool to_write, std::int64_t deadline_ns) {
  while (true) {
    const std::int64_t left = deadline_ns - system_->now_ns();
    if (left <= 0)
      return Error{.code = Code::timeout,
                   .what = "the launcher did not answer in time (all ranks have to start for it to do so)"};
    PollItem item{.handle = fd_, .want_read = !to_write, .want_write = to_write};
    system_->poll({&item, 1}, left);
    if (item.ready) return {};
  }
}

Result<void> PmiWire::send(std::string_view text, std::int64_t deadline_ns) {
  while (!text.empty()) {
    TUTTI_TRY(wait(true, deadline_ns));
    ssize_t sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == ENOTSOCK) {
      const BlockedSignal broken_pipe(SIGPIPE);
      sent = ::write(fd_, text.data(), text.size());
    }
    if (sent < 0 && errno != EINTR && errno != EAGAIN) return system_error("send to the launcher", errno);
    if (sent > 0) text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<void> PmiWire::receive_some(std::int64_t deadline_ns) {
  std::array<char, 1024> buffer;
  while (true) {
    TUTTI_TRY(wait(false, deadline_ns));
    const ssize_t got = ::read(fd_, buffer.data(), buffer.size());
    if (got == 0) return remote_error("the launcher has closed its end");
    if (got < 0 && errno != EINTR && errno != EAGAIN) return system_error("receive from the launcher", errno);
    if (got <= 0) continue;
    received_.append(buffer.data(), static_cast<std::size_t>(got));
    return {};
  }
}

Result<std::string> PmiWire::line(std::int64_t deadline_ns) {
  while (true) {
    if (const auto end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    if (received_.size() >= line_bytes_max) return remote_error("the launcher's answer has no end");
    TUTTI_TRY(receive_some(deadline_ns));
  }
}

Result<std::string> PmiWire::frame(std::int64_t deadline_ns) {
  while (received_.size() < length_digits) TUTTI_TRY(receive_some(deadline_ns));
  std::string_view digits = std::string_view(received_).substr(0, length_digits);
  while (digits.starts_with(' ')) digits.remove_prefix(1);
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  std::size_t bytes = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
  if (failed != std::errc() || end != digits.data() + digits.size() || bytes > frame_bytes_max)
    return remote_error(fmt::format("the launcher's answer begins with \"{}\", which is not a length",
                                    printable(received_, length_digits)));
  while (received_.size() < length_digits + bytes) TUTTI_TRY(receive_some(deadline_ns));
  std::string body = received_.substr(length_digits, bytes);
  received_.erase(0, length_digits + bytes);
  return body;
}

}  // namespace tutti
