#include "base/log.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

#include "base/host.h"
#include "base/system.h"
#include "base/uncancelled.h"

namespace tutti {
namespace {

struct TopicName {
  std::string_view name;
  LogTopic topic;
};
constexpr std::array topic_names{
    TopicName{"INIT", LogTopic::init}, TopicName{"TOPO", LogTopic::topo},   TopicName{"NET", LogTopic::net},
    TopicName{"COLL", LogTopic::coll}, TopicName{"TUNE", LogTopic::tune},   TopicName{"ENV", LogTopic::env},
    TopicName{"ALL", LogTopic::all},   TopicName{"ALLOC", LogTopic::alloc},
};
constexpr unsigned default_topics = static_cast<unsigned>(LogTopic::init) | static_cast<unsigned>(LogTopic::env);

std::string_view level_name(LogLevel level) {
  constexpr std::array<std::string_view, 5> names{"", "VERSION", "WARN", "INFO", "TRACE"};
  return names[static_cast<std::size_t>(level)];
}

std::string file_name(const std::string& pattern) {
  std::string name;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'h')
      name += host_name();
    else if (next == 'p')
      name += std::to_string(::getpid());
    else
      name += pattern[i];
    if (next == 'h' || next == 'p' || next == '%') ++i;
  }
  return name;
}

std::string upper(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
  return result;
}

/// ctime's functions may allocate; a failure of this one does no harm.
std::array<char, 16> time_of_day() {
  constexpr std::int64_t ns_per_s = 1'000'000'000;
  const std::int64_t now_ns = wall_clock_ns();
  const auto now_s = static_cast<std::time_t>(now_ns / ns_per_s);
  std::tm parts{};
  ::localtime_r(&now_s, &parts);
  std::array<char, 16> text{};
  fmt::format_to_n(text.data(), text.size() - 1, "{:02}:{:02}:{:02}.{:03}", parts.tm_hour, parts.tm_min, parts.tm_sec,
                   now_ns % ns_per_s / 1'000'000);
  return text;
}

iovec part(std::string_view text) {
  return {.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
}

}  // namespace

Result<unsigned> log_topics(std::string_view text) {
  if (text.empty()) return default_topics;
  const bool inverted = text.starts_with('^');
  if (inverted) text.remove_prefix(1);
  unsigned topics = 0;
  while (!text.empty()) {
    const auto name = text.substr(0, text.find(','));
    text.remove_prefix(std::min(name.size() + 1, text.size()));
    const auto at = std::ranges::find(topic_names, std::string_view(upper(name)), &TopicName::name);
    if (at == topic_names.end())
      return Error{.code = Code::invalid_argument,
                   .what = fmt::format("TUTTI_DEBUG_SUBSYS: \"{}\" is not one of INIT, TOPO, NET, COLL, TUNE, ENV, "
                                       "ALLOC, ALL",
                                       name)};
    topics |= static_cast<unsigned>(at->topic);
  }
  return inverted ? ~topics : topics;
}

Log::Log(LogLevel level, unsigned topics, const std::string& file_pattern)
    : level_(level), topics_(topics), origin_(fmt::format("{}:{}", host_name(), ::getpid())) {
  if (level == LogLevel::none || file_pattern.empty()) return;
  const std::string name = file_name(file_pattern);
  // A pipe without a reader is refused at once. Later, writes wait for the reader, as no line should be lost.
  file_ = UniqueFd(::open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666));
  if (file_) ::fcntl(file_.get(), F_SETFL, O_APPEND);
  if (!file_)
    warn("log", "{}", Error{.code = Code::system, .what = "open TUTTI_DEBUG_FILE " + name, .sys_errno = errno}.text());
}

Log::Log(const Config& config)
    : Log(static_cast<LogLevel>(config.integer("TUTTI_DEBUG")), default_topics, config.text("TUTTI_DEBUG_FILE")) {
  if (auto topics = log_topics(config.text("TUTTI_DEBUG_SUBSYS")))
    topics_ = *topics;
  else
    warn("log", "{}", topics.error().what);
}

void Log::write(LogLevel level, std::string_view who, std::string_view text) noexcept {
  const auto time = time_of_day();
  const std::array parts{part(origin_), part(" "), part(time.data()), part(" tutti "), part(level_name(level)),
                         part(" "),     part(who), part(": "),        part(text),      part("\n")};
  const Uncancelled whole;
  while (::writev(file_ ? file_.get() : STDERR_FILENO, parts.data(), static_cast<int>(parts.size())) < 0 &&
         errno == EINTR) {
  }
}

}  // namespace tutti
