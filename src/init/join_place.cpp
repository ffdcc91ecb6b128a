// The part of the start in which ranks tell where they are, and rank 0 draws the map of the job.
#include <algorithm>
#include <span>

#include "base/host.h"
#include "init/join.h"

namespace tutti {

Result<void> Join::tell_place(PeerInfo& info) {
  info.cpus = own_cpus();
  const auto& gpu = members_.gpu;
  auto located =
      TUTTI_TRY(process_.locator.locate(info.cpus, gpu ? gpu->driver().bus_id(gpu->ordinal()) : std::string()));
  whereabouts_ = std::move(located);
  info.seat = whereabouts_.seat;
  members_.nearest_nic = get_text(whereabouts_.seat.nic);
  if (!whereabouts_.text) return {};
  info.machine = TUTTI_TRY(sha256(std::as_bytes(std::span(*whereabouts_.text))));
  const std::size_t bytes = whereabouts_.text->size();
  info.machine_bytes = bytes <= MachineExchange::text_bytes_max ? static_cast<std::uint32_t>(bytes) : 0;
  return {};
}

/// Begins one more exchange as long as rank 0 lacks a part of a machine.
Result<Progress> Join::describe() {
  // Greetings that cannot be read are the same for all ranks.
  if (peer_infos_.size() != static_cast<std::size_t>(options_.ranks)) return greeted();
  if (!machines_) machines_.emplace(peer_infos_, members_.hosts);
  if (!machines_->more()) return greeted();
  exchange_->exchange(machines_->part(options_.rank, whereabouts_.text ? *whereabouts_.text : std::string()));
  state_ = State::describe;
  return Progress::moved;
}

/// Nothing of other ranks than 0.
Blob Join::next_map_part(std::size_t bytes_max) {
  if (!map_told_) return {};
  const auto part = map_told_->part(std::min(bytes_max, options_.map_part_bytes));
  return {part.begin(), part.end()};
}

/// Begins one more exchange as long as a part of the map is missing. All ranks have heard the same, so all end here
/// alike.
Result<Progress> Join::take_map(std::span<const std::byte> part) {
  if (auto taken = map_heard_->take(part); !taken) return std::move(taken).error().at_peer(0);
  if (map_heard_->more()) {
    exchange_->exchange(next_map_part(options_.map_part_bytes));
    state_ = State::map;
    return Progress::moved;
  }
  auto map = map_heard_->map(options_.ranks);
  if (!map) return std::move(map).error().at_peer(0);
  members_.map = *std::move(map);
  map_told_.reset();
  map_heard_.reset();
  TUTTI_TRY(finish());
  state_ = State::made;
  return Progress::done;
}

Result<JobMap> Join::map_of_job() const {
  std::vector<OwnSeat> seats;
  std::vector<std::string> names;
  for (const PeerInfo& info : peer_infos_) {
    seats.push_back(info.seat);
    names.emplace_back(get_text(info.host));
  }
  auto machines = machines_->machines(whereabouts_.machine);
  if (!machines) return std::move(machines).error();
  if (machines_->told() > 0)
    process_.log.info(LogTopic::topo, members_.name, "{} kinds of machines", machines_->told() + 1);
  return process_.locator.map({.seats = seats,
                               .hosts = members_.hosts,
                               .names = names,
                               .machines = *std::move(machines),
                               .by_number = options_.deterministic,  // sums are to be in the order of the ranks
                               .dump = process_.config.text("TUTTI_JOB_DUMP_FILE")});
}

}  // namespace tutti
