#include "bootstrap/roster.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "base/config.h"
#include "base/limits.h"
#include "bootstrap/bootstrap_messages.h"

namespace tutti::bootstrap {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::size_t claims_max = 64;
constexpr int named_max = 16;  // at most this many missing ranks are named; longer lists are not read

std::string dotted(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::map<std::string, std::string> parse_settings(std::string_view text) {
  std::map<std::string, std::string> values;
  while (!text.empty()) {
    const auto entry = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
    const auto equals = entry.find('=');
    if (equals != std::string_view::npos) values.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return values;
}

/// The text lacks settings at their default and settings beyond its length limit.
std::string has(const Bootstrap::Who& who, const std::string& name, const std::map<std::string, std::string>& values) {
  if (const auto at = values.find(name); at != values.end())
    return fmt::format("rank {} has {}={}", who.rank, name, at->second);
  if (who.settings_text.size() >= settings_text_bytes_max) return fmt::format("rank {} another value", who.rank);
  const auto known = std::ranges::find(settings(), name, &Setting::name);
  if (known == settings().end() || known->default_value.empty()) return fmt::format("rank {} has not set it", who.rank);
  return fmt::format("rank {} has the default, {}={}", who.rank, name, known->default_value);
}

}  // namespace

void Refusals::add(const std::string& host) {
  ++count_;
  last_host_ = host;
}

void Refusals::add_claim(int rank, const std::string& host, std::string_view what) {
  if (claims_.contains(rank) || claims_.size() < claims_max) claims_[rank] = fmt::format("{}: {}", host, what);
}

std::string Refusals::words_for(int rank) const {
  const auto at = claims_.find(rank);
  return at == claims_.end() ? "never seen" : at->second;
}

std::string Refusals::words(std::uint64_t elsewhere) const {
  const std::uint64_t all = count_ + elsewhere;
  std::string words;
  if (all > 0)
    words = fmt::format("Refused so far: {} connection{} without a valid greeting{}{}.", all, all == 1 ? "" : "s",
                        count_ == 0 ? "" : ", the last from ", last_host_);
  if (silent_ > 0)
    words += fmt::format("{}{} connection{} said nothing.", all > 0 ? " " : "", silent_, silent_ == 1 ? "" : "s");
  return words;
}

std::string settings_difference(const Bootstrap::Who& a, const Bootstrap::Who& b) {
  const auto values_a = parse_settings(a.settings_text);
  const auto values_b = parse_settings(b.settings_text);
  auto names = values_a;
  names.insert(values_b.begin(), values_b.end());
  std::string text;
  for (const auto& [name, unused] : names) {
    const auto in_a = values_a.find(name);
    const auto in_b = values_b.find(name);
    if (in_a != values_a.end() && in_b != values_b.end() && in_a->second == in_b->second) continue;
    // The rank that has the setting comes first, so that the setting is named before another rank "has not set it".
    const bool a_first = in_a != values_a.end();
    text += text.empty() ? "" : "; ";
    text += a_first ? has(a, name, values_a) + ", " + has(b, name, values_b)
                    : has(b, name, values_b) + ", " + has(a, name, values_a);
  }
  return text.empty() ? fmt::format("shared settings of rank {} and rank {} differ", a.rank, b.rank) : text;
}

Result<void> Roster::check_agrees(const Bootstrap::Who& who) const {
  const Bootstrap::Who& first = *entries_[index(first_rank_)].who;
  if (who.ranks != first.ranks)
    return invalid_usage(fmt::format("rank {} ({}) was told of {} ranks, rank {} ({}) of {}", who.rank, who.process,
                                     who.ranks, first.rank, first.process, first.ranks));
  if (who.rank >= ranks() || who.rank < 0)
    return invalid_usage(fmt::format("{} claims to be rank {} of {}", who.process, who.rank, who.ranks));
  if (who.version != first.version)
    return invalid_usage(fmt::format("rank {} ({}) has tutti {}, rank {} ({}) has tutti {}", who.rank, who.process,
                                     dotted(who.version), first.rank, first.process, dotted(first.version)));
  if (who.source != first.source)
    return invalid_usage(
        fmt::format("rank {} ({}) has another build of tutti {} than rank {} ({}): their code differs "
                    "({:016x}, {:016x}). All ranks must use builds of the same source",
                    who.rank, who.process, dotted(who.version), first.rank, first.process, who.source, first.source));
  if (const auto& taken = entries_[index(who.rank)].who)
    return invalid_usage(fmt::format("rank {} is claimed by two processes: {} and {}{}{}", who.rank, taken->process,
                                     who.process, advice_.empty() ? "" : "; ", advice_));
  if (who.settings != first.settings) return invalid_usage(settings_difference(who, first));
  return {};
}

Result<void> Roster::admit(const Bootstrap::Who& who, std::int64_t now_ns) {
  if (entries_.empty()) {
    if (who.ranks < 1 || who.ranks > limits::ranks_max || who.rank < 0 || who.rank >= who.ranks)
      return invalid_usage(fmt::format("{} claims to be rank {} of {}", who.process, who.rank, who.ranks));
    entries_.resize(index(who.ranks));
    first_rank_ = who.rank;
    waiting_since_ns_ = now_ns;
  } else if (auto agrees = check_agrees(who); !agrees) {
    return agrees;
  }
  entries_[index(who.rank)].who = who;
  ++here_;
  if (who.limit_ms > 0) {
    const std::int64_t gives_up_ns = now_ns + who.limit_ms * ms;
    give_up_ns_ = give_up_ns_ ? std::min(*give_up_ns_, gives_up_ns) : gives_up_ns;
  }
  return {};
}

std::string Roster::words_for(int rank) const {
  assert(admitted(rank));
  return fmt::format("rank {} ({})", rank, entries_[index(rank)].who->process);
}

Result<void> Roster::contribute(int rank, Contribution contribution, std::int64_t now_ns) {
  assert(admitted(rank));
  Entry& entry = entries_[index(rank)];
  if (entry.blob || contribution.round != round_ || contribution.blob.size() > blob_bytes_max_)
    return remote_error(fmt::format("{} sent its contribution out of turn at the start", words_for(rank)), rank);
  const auto gone = std::ranges::find_if(entries_, [](const Entry& other) { return !other.gone.empty(); });
  if (gone != entries_.end()) {
    const int lost = static_cast<int>(gone - entries_.begin());
    return remote_error(fmt::format("{} is gone: {}", words_for(lost), gone->gone), lost);
  }
  if (contributed_ == 0 && round_ > 0) waiting_since_ns_ = now_ns;
  entry.blob = std::move(contribution.blob);
  ++contributed_;
  return {};
}

/// Between exchanges other ranks may wait for this rank in other ways, and nothing else would tell them.
Result<void> Roster::leave(int rank, const std::string& reason, bool said_so) {
  assert(admitted(rank));
  entries_[index(rank)].gone = reason;
  if (!waiting() && said_so) return {};
  return remote_error(fmt::format("{} was lost at the start: {}", words_for(rank), reason), rank);
}

/// The rank may have contributed: its parent, which would pass the contribution on, has not been heard itself.
bool Roster::behind_another(int rank) const {
  const Entry& entry = entries_[index(rank)];
  return entry.who && entry.gone.empty() && entry.parent >= 0 && !entries_[index(entry.parent)].blob;
}

std::string Roster::absence(int rank, const Refusals& refusals) const {
  const Entry& entry = entries_[index(rank)];
  if (!entry.who) return refusals.words_for(rank);
  if (!entry.gone.empty()) return fmt::format("{}: {}", entry.who->process, entry.gone);
  if (behind_another(rank)) return fmt::format("{}: behind rank {}", entry.who->process, entry.parent);
  return entry.who->process + ": has joined, and is busy or stopped";
}

Error Roster::missing(const Refusals& refusals, std::int64_t now_ns) const {
  std::string names;
  int count = 0;
  int to_blame = 0;
  int last = -1;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (entries_[index(rank)].blob) continue;
    if (!behind_another(rank)) {
      last = rank;
      ++to_blame;
    }
    if (++count <= named_max)
      names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", rank, absence(rank, refusals));
  }
  if (count > named_max) names += fmt::format(" and {} more", count - named_max);
  const double seconds = static_cast<double>(now_ns - waiting_since_ns_) * 1e-9;
  const std::string step = round_ == 0 ? "init" : fmt::format("init, exchange {}", round_ + 1);
  std::string what =
      fmt::format("{}: {} of {} ranks after {:.3g} s; missing {}", step, ranks() - count, ranks(), seconds, names);
  return Error{.code = Code::timeout, .what = std::move(what), .peer = to_blame == 1 ? last : -1};
}

Bytes Roster::take_gathered() {
  assert(round_complete());
  std::vector<Blob> blobs;
  blobs.reserve(entries_.size());
  for (Entry& entry : entries_) {
    blobs.push_back(std::move(*entry.blob));
    entry.blob.reset();
  }
  contributed_ = 0;
  return write_gathered(round_++, blobs);
}

}  // namespace tutti::bootstrap
