#include "init/phases/machine_exchange.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "place/locator.h"

namespace tutti {
namespace {

constexpr std::size_t part_bytes_max = BootstrapLimits{}.blob_bytes_max;

/// By the first rank of a host: the rank that speaks for it.
std::map<int, Rank> speakers_of(std::span<const PeerInfo> infos, std::span<const int> hosts) {
  std::map<int, Rank> speakers;
  for (std::size_t rank = 0; rank < infos.size(); ++rank) {
    const auto [speaker, is_new] = speakers.try_emplace(hosts[rank], static_cast<Rank>(rank));
    const bool asked_drivers = !get_text(infos[static_cast<std::size_t>(speaker->second)].location.gpu).empty();
    if (!is_new && !asked_drivers && !get_text(infos[rank].location.gpu).empty())
      speaker->second = static_cast<Rank>(rank);
  }
  return speakers;
}

}  // namespace

MachineExchange::MachineExchange(std::span<const PeerInfo> infos, std::span<const int> hosts) {
  const std::map<int, Rank> speakers = speakers_of(infos, hosts);
  for (const int host : hosts) digests_.push_back(infos[static_cast<std::size_t>(speakers.at(host))].machine);
  own_digest_ = infos.front().machine;
  if (infos.front().machine_bytes == 0) return;  // rank 0 does not look at machines
  std::vector<Rank> in_turn;
  for (const auto& [host, rank] : speakers) in_turn.push_back(rank);
  std::ranges::sort(in_turn);
  for (const Rank rank : in_turn) {
    const PeerInfo& info = infos[static_cast<std::size_t>(rank)];
    const bool is_known =
        info.machine == infos.front().machine || std::ranges::find(told_, info.machine, &Told::digest) != told_.end();
    if (is_known || info.machine_bytes == 0 || info.machine_bytes > text_bytes_max) continue;
    if (told_.size() == machines_max) break;
    told_.push_back({.by = rank, .digest = info.machine, .bytes = info.machine_bytes});
    longest_ = std::max(longest_, told_.back().bytes);
  }
}

std::size_t MachineExchange::next_bytes(const Told& told) const {
  return std::min(part_bytes_max, told.bytes - std::min(told.bytes, sent_bytes_));
}

Blob MachineExchange::part(Rank rank, const std::string& own_text) const {
  const auto own = std::ranges::find(told_, rank, &Told::by);
  if (own == told_.end()) return {};
  const auto bytes = std::as_bytes(std::span(own_text)).subspan(std::min(sent_bytes_, own_text.size()));
  const auto now = bytes.first(std::min(bytes.size(), next_bytes(*own)));
  return {now.begin(), now.end()};
}

Result<void> MachineExchange::take(Rank rank, std::span<const Blob> gathered) {
  auto kept = rank == 0 ? keep(gathered) : Result<void>();
  sent_bytes_ += part_bytes_max;  // also after an error: all ranks make as many exchanges
  return kept;
}

Result<void> MachineExchange::keep(std::span<const Blob> gathered) {
  for (Told& told : told_) {
    const Blob& blob = gathered[static_cast<std::size_t>(told.by)];
    if (blob.size() != next_bytes(told))
      return Error{.code = Code::remote,
                   .what = fmt::format("{} bytes of its machine where {} were expected", blob.size(), next_bytes(told))}
          .at_peer(told.by);
    told.text.append(reinterpret_cast<const char*>(blob.data()), blob.size());
  }
  return {};
}

Result<std::vector<SharedMachine>> MachineExchange::machines(const SharedMachine& own) const {
  std::map<Digest, SharedMachine> known;
  for (const Told& told : told_) {
    const auto digest = sha256(std::as_bytes(std::span(told.text)));
    if (!digest) return digest.error();
    if (*digest != told.digest)
      return Error{.code = Code::remote, .what = "its machine is not the one that it announced"}.at_peer(told.by);
    auto machine = read_machine_text(told.text);
    if (!machine) return std::move(machine).error().at_peer(told.by);
    known[told.digest] = *std::move(machine);
  }
  std::vector<SharedMachine> machines;
  for (const Digest& digest : digests_) {
    const auto described = known.find(digest);
    machines.push_back(described != known.end() ? described->second : digest == own_digest_ ? own : nullptr);
  }
  return machines;
}

}  // namespace tutti
