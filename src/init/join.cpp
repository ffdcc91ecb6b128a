#include "init/join.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "comm/peer_watch.h"
#include "gpu/gpu_context.h"
#include "init/host_identity.h"
#include "init/source_digest.h"

namespace tutti {
namespace {

constexpr std::int64_t ms = 1'000'000;

std::int64_t deadline_of(const Process& process, const JoinOptions& options) {
  if (options.deadline_ns != 0) return options.deadline_ns;
  const std::int64_t limit_ms =
      options.init_limit_ms > 0 ? options.init_limit_ms : process.config.integer("TUTTI_INIT_TIMEOUT_MS");
  return process.system.now_ns() + limit_ms * ms;
}

/// The time that is left for the whole start.
BootstrapLimits limits_of(const Process& process, std::int64_t deadline_ns) {
  BootstrapLimits limits;
  limits.init_ms = std::max<std::int64_t>(1, (deadline_ns - process.system.now_ns()) / ms);
  limits.handshake_ms = std::min(limits.handshake_ms, limits.init_ms);
  limits.deadline_ns = deadline_ns;
  return limits;
}

Bootstrap::Who who_of(const Process& process, const JoinOptions& options) {
  // Whether reductions have one order: ranks must agree on it as on a setting, though it comes from the call.
  const bool deterministic = options.deterministic;
  const auto& plan = process.plan_file;
  return {.rank = options.rank,
          .ranks = options.ranks,
          .settings = process.config.shared_hash() + deterministic + (plan ? plan->digest() : 0),
          .settings_text = process.config.shared_text() + (deterministic ? " deterministic=1" : "") +
                           (plan ? fmt::format(" TUTTI_PLAN_FILE=digest:{:016x}", plan->digest()) : ""),
          .version = library_version,
          .source = source_digest};
}

}  // namespace

Join::Join(Process& process, JoinOptions options, Exchange* exchange)
    : process_(process),
      options_(std::move(options)),
      deadline_ns_(deadline_of(process, options_)),
      pid_(::getpid()),
      joining_(process.pending_closes),
      bootstrap_(exchange != nullptr
                     ? nullptr
                     : std::make_unique<Bootstrap>(process.system, options_.id, who_of(process, options_),
                                                   limits_of(process, deadline_ns_))),
      exchange_(exchange != nullptr ? exchange : bootstrap_.get()) {}

AreaShape Join::area_shape() const {
  AreaShape shape;
  shape.ranks = options_.ranks;
  shape.channels = static_cast<int>(process_.config.integer("TUTTI_NCHANNELS")) + 2;
  shape.slot_bytes = static_cast<std::size_t>(process_.config.integer("TUTTI_BUFFSIZE"));
  return shape;
}

Result<Progress> Join::advance() {
  if (state_ == State::begin) return start();
  if (state_ == State::meet || state_ == State::carrier || state_ == State::prove || state_ == State::reach) {
    TUTTI_TRY(exchange_->look());
    if (is_late()) return late();
  }
  if (state_ == State::meet) return advance_meeting();
  if (state_ == State::carrier) {
    if (!process_.interfaces.settled(process_.system, process_.config, process_.log)) return Progress::blocked;
    note(locate());
    return Progress::moved;
  }
  if (state_ == State::prove) {
    const bool proven = proof_->advance();
    // Without descriptors it reaches nobody, or nobody reaches it.
    auto lacked = proof_->lacked();
    if (!lacked) lacked = members_.arrivals->held_up();
    if (!proven && !lacked) return Progress::blocked;
    if (lacked) return end_at_once(*std::move(lacked));
    compare();
    return Progress::moved;
  }
  if (state_ == State::reach) return advance_reach();
  auto complete = exchange_->advance();
  if (!complete) {
    const bool for_its_own_reason = complete.error().sys_errno != 0;
    if (for_its_own_reason && state_ == State::greet && bootstrap_ && !bootstrap_->met())
      return cannot_come(std::move(complete).error());
    return std::move(complete).error();
  }
  if (!*complete) return Progress::blocked;
  return next();
}

/// The last exchange sends it to all ranks.
void Join::note(Result<void> done) {
  if (!done && !trouble_) trouble_ = std::move(done).error();
}

/// Called when an exchange is complete.
Result<Progress> Join::next() {
  if (state_ == State::greet) {
    note(read_hellos());
    if (!several_users()) return describe();
    try_sharing();
    return Progress::moved;
  }
  if (state_ == State::share) note(separate());
  if (state_ == State::describe) note(machines_->take(options_.rank, exchange_->gathered()));
  if (state_ == State::share || state_ == State::describe) return describe();
  if (state_ == State::locate) {
    note(take_addresses());
    prove();
    return Progress::moved;
  }
  if (state_ == State::compare) {
    note(keep_proven());
    reach();
    return Progress::moved;
  }
  if (state_ == State::map) return take_map(exchange_->gathered()[0]);
  TUTTI_TRY(agreed());
  return take_map(behind_first_init_result(exchange_->gathered()[0]));
}

/// A host with one network needs no proof. A rank that has failed says so when the others send what they reached.
void Join::prove() {
  const auto differs = [this](int network) { return network != networks_.front(); };
  if (std::ranges::none_of(networks_, differs)) {
    reach();
  } else if (trouble_ || given_up_) {
    compare();
  } else {
    proof_.emplace(process_, members_, networks_);
    state_ = State::prove;
  }
}

/// Begins one more exchange, of what was reached: a byte that says whether this rank has had no error, then the map.
void Join::compare() {
  Blob blob(1, static_cast<std::byte>(proof_ ? 1 : 0));
  if (proof_) {
    const Blob map = proof_->told();
    blob.insert(blob.end(), map.begin(), map.end());
  }
  exchange_->exchange(std::move(blob));
  state_ = State::compare;
}

Result<void> Join::keep_proven() {
  std::vector<Blob> maps = exchange_->gathered();
  for (Blob& map : maps) {
    given_up_ = given_up_ || map.empty() || map.front() == std::byte{0};
    if (!map.empty()) map.erase(map.begin());
  }
  if (given_up_) return {};
  return proof_->keep_proven(maps, members_.peers);
}

void Join::reach() {
  proof_.reset();
  if (trouble_ || given_up_) return state_verdict();
  setup_.emplace(process_.system, members_, deadline_ns_);
  state_ = State::reach;
}

Progress Join::advance_reach() {
  auto linked = setup_->advance();
  if (linked && !*linked)
    if (auto stuck = cannot_accept()) linked = *std::move(stuck);
  if (linked && !*linked) return Progress::blocked;
  if (linked) {
    members_.control = setup_->take(process_.config.integer("TUTTI_SILENCE_MS") * 1'000'000);
  } else {
    trouble_ = std::move(linked).error();
    // Other ranks may be waiting for ranks that wait for this one; all of them may now get the error.
    Error told = *trouble_;
    told.what = fmt::format("rank {} could not join: {}", options_.rank, trouble_->text());
    told.sys_errno = 0;  // the text has it
    exchange_->fail(told);
  }
  setup_.reset();
  state_verdict();
  return Progress::moved;
}

std::uint32_t Join::common_transports() const {
  std::uint32_t common = ~0u;
  for (const Peer& peer : members_.peers) common &= peer.transports;
  return common;
}

/// The last exchange: every rank takes part in it, also a rank that has failed.
void Join::state_verdict() {
  InitResult result;
  if (trouble_) {
    result.code = static_cast<std::uint32_t>(trouble_->code);
    put_text(result.what, trouble_->text());
  }
  result.pulls = pulls_;
  result.reaches_gpus = reaches_gpus_ && gpu_proof_ ? 1 : 0;
  result.gpus_meet = result.reaches_gpus != 0 && gpus_meeting_ ? 1 : 0;
  if (options_.rank == 0 && !trouble_) {
    Machine machine = options_.machine ? *options_.machine : process_.tune->machine(cpus_, process_.log);
    if (spans_hosts_)
      if (const auto rates = wire_rates(process_, common_transports())) machine.wire = *rates;
    map_told_.emplace(members_.map);
    Blob verdict = to_blob(FirstInitResult{
        .result = result, .map_bytes = static_cast<std::uint32_t>(map_told_->bytes()), .machine = machine.numbers()});
    const Blob part = next_map_part(BootstrapLimits{}.blob_bytes_max - verdict.size());
    verdict.insert(verdict.end(), part.begin(), part.end());
    exchange_->exchange(std::move(verdict));
  } else {
    exchange_->exchange(to_blob(result));
  }
  state_ = State::agree;
}

std::int64_t Join::poll_set(std::vector<PollItem>& items) const {
  if (state_ == State::meet) return std::min(deadline_ns_, next_look_at_meeting_ns());
  if (state_ == State::carrier) return std::min(deadline_ns_, process_.interfaces.next_look_ns());
  if (state_ == State::prove) return std::min(deadline_ns_, proof_->poll_set(items));
  if (state_ == State::reach) return std::min(deadline_ns_, setup_->poll_set(items));
  return exchange_->poll_set(items);
}

Result<void> Join::begin() {
  TUTTI_TRY(process_.serve());
  auto area = process_.make_area(area_shape());
  if (!area) return std::move(area).error();
  members_.area = *std::move(area);
  members_.rank = options_.rank;
  members_.ranks = options_.ranks;
  members_.deterministic = options_.deterministic;
  members_.while_waiting = options_.while_waiting;
  members_.call_limit = options_.call_limit.value_or(
      CallLimit{.ms = process_.config.integer("TUTTI_TIMEOUT_MS"), .from = "TUTTI_TIMEOUT_MS"});
  members_.gpu = options_.gpu;
  if (members_.gpu)
    members_.area->area.header().gpu.store(static_cast<std::uint32_t>(members_.gpu->ordinal()) + 1,
                                           std::memory_order_relaxed);
  members_.name = options_.name.empty() ? "comm " + options_.id.fingerprint() : options_.name;

  PeerInfo info;
  info.pid = ::getpid();
  info.token = process_.token;
  info.area = members_.area->name;
  info.area_bytes = RankArea::bytes(area_shape());
  info.area_address = reinterpret_cast<std::uint64_t>(members_.area->base);
  info.key = process_.key;
  put_text(info.host, process_.host);
  put_text(info.boot_id, process_.boot_id);
  const std::string host = host_identity(process_.config);
  info.host_identity = TUTTI_TRY(sha256(std::as_bytes(std::span(host))));
  const std::string user = user_identity();
  info.user = TUTTI_TRY(sha256(std::as_bytes(std::span(user))));
  put_text(info.fd_server, process_.fd_server_name());
  auto transports = usable_transports(process_);
  if (!transports) return std::move(transports).error();
  info.transports = *transports;
  offer_gpu(info);
  TUTTI_TRY(tell_place(info));
  exchange_->exchange(to_blob(info));
  return {};
}

Result<Progress> Join::greeted() {
  note(connect());
  if (!spans_hosts_) {
    await_meeting();
  } else {
    state_ = State::carrier;
  }
  return Progress::moved;
}

/// Begins to listen, and sends the others the addresses. A rank that has failed sends none.
Result<void> Join::locate() {
  state_ = State::locate;
  PeerAddresses located;
  if (trouble_) {
    exchange_->exchange(to_blob(located));
    return {};
  }
  auto begin = [&]() -> Result<void> {
    auto key = TUTTI_TRY(ConnectionKey::of(options_.id.secret));
    const AreaShape shape = area_shape();
    members_.sockets = static_cast<int>(process_.config.integer("TUTTI_SOCKET_NSOCKS"));
    members_.arrivals = std::make_shared<Arrivals>(
        process_.system, key,
        Arrivals::Bounds{
            .rank = options_.rank, .ranks = options_.ranks, .channels = shape.channels, .sockets = members_.sockets});
    auto server = TUTTI_TRY(process_.connections());
    server->expect(members_.arrivals);
    auto own = TUTTI_TRY(process_.interfaces.get(process_.system, process_.config, process_.log));
    for (std::size_t i = 0; i < server->addresses().size() && i < PeerAddresses::addresses_max; ++i) {
      const SocketAddress& at = server->addresses()[i];
      auto& told = located.addresses[i];
      put_text(told.host, at.host);
      told.port = at.port;
      const auto known = std::ranges::find(own, at.host, &OwnAddress::host);
      if (known == own.end()) continue;
      told.nic = static_cast<std::uint16_t>(known->nic);
      told.mbps = known->mbps;
      told.mtu = mtu_of(known->interface);
      put_text(told.interface, known->interface);
    }
    return {};
  };
  auto begun = begin();
  exchange_->exchange(to_blob(located));
  return begun;
}

Result<void> Join::take_addresses() {
  for (Rank rank = 0; rank < options_.ranks; ++rank) {
    auto addresses = read_peer_addresses(exchange_->gathered()[rank]);
    if (!addresses) return std::move(addresses).error().at_peer(rank);
    // That rank has failed. Its result gives the reason, and no rank should end the start with less information before
    // that.
    given_up_ = given_up_ || addresses->empty();
    if (!members_.peers.empty()) members_.peers[rank].addresses = *std::move(addresses);
  }
  return {};
}

Result<void> Join::agreed() {
  members_.pulls = true;
  members_.gpus_reach = true;
  bool gpus_meet = true;
  for (Rank rank = 0; rank < options_.ranks; ++rank) {
    auto result = read_init_result(exchange_->gathered()[rank]);
    if (!result) return std::move(result).error().at_peer(rank);
    if (result->code != 0) {
      std::string why = get_text(result->what, Lines::several);
      if (trouble_ && trouble_->text().starts_with(why)) why = trouble_->text();  // the exchanged text is truncated
      return Error{.code = code_told(result->code), .what = fmt::format("rank {} could not join: {}", rank, why)};
    }
    members_.pulls = members_.pulls && result->pulls != 0;
    members_.gpus_reach = members_.gpus_reach && result->reaches_gpus != 0;
    gpus_meet = gpus_meet && result->gpus_meet != 0;
    if (rank > 0) continue;
    auto first = read_first_init_result(exchange_->gathered()[rank]);
    if (!first) return std::move(first).error().at_peer(rank);
    auto machine = Machine::of(first->machine);
    if (!machine) return std::move(machine).error().at_peer(rank);
    members_.machine = *machine;
    auto announced = MapExchange::announced(first->map_bytes, options_.ranks);
    if (!announced) return std::move(announced).error().at_peer(rank);
    map_heard_.emplace(*std::move(announced));
  }
  if (given_up_) return Error{.code = Code::remote, .what = "a rank failed, and no rank reported which"};
  keep_gpus(gpus_meet);
  return {};
}

Result<void> Join::finish() {
  members_.area->stop_sharing();
  made_ = std::make_shared<Communicator>(process_, std::move(members_));
  auto ready = get_ready();
  // The others have a communicator by now, whose first call tells them.
  if (!ready) made_->fail(ready.error());
  return ready;
}

Result<void> Join::get_ready() {
  TUTTI_TRY(make_gpu_context(*made_, std::move(gpu_start_)));
  // All ranks have the same settings at this point, so all of them refuse.
  TUTTI_TRY(made_->plans().check_settings());
  const auto& m = made_->members();
  if (made_->spans_hosts()) {
    m.arrivals->wakes({m.area, &m.area->area.header().doorbell});
    TUTTI_TRY(process_.service.add(m.control));
  }
  const auto watch = std::make_shared<PeerWatch>(made_);
  made_->watched_by(watch);
  TUTTI_TRY(process_.service.add(watch));
  process_.log.info(LogTopic::init, made_->who(), "{} ranks ready, {}, other processes' memory can{} be copied from",
                    m.ranks, m.oversubscribed ? "more ranks than cores" : "a core for each rank", m.pulls ? "" : "not");
  process_.log.info(LogTopic::topo, made_->who(), "levels: {}", text_of(m.map));
  return {};
}

}  // namespace tutti
