#include "init/join.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <new>

#include <fmt/format.h>

#include "base/build_id.h"
#include "comm/peer_watch.h"
#include "gpu/gpu_context.h"
#include "init/phases/phases.h"
#include "init/refused_start.h"
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
  const auto& plan = process.choices.plan_file;
  return {.rank = options.rank,
          .ranks = options.ranks,
          .settings = process.config.shared_hash() + deterministic + (plan ? plan->digest() : 0),
          .settings_text = process.config.shared_text() + (deterministic ? " deterministic=1" : "") +
                           (plan ? fmt::format(" TUTTI_PLAN_FILE=digest:{:016x}", plan->digest()) : ""),
          .version = library_version,
          .source = source_digest};
}

/// What a communicator needs besides its members.
Result<void> get_ready(const std::shared_ptr<Communicator>& made, GpuStart gpu) {
  Process& process = made->process();
  TUTTI_TRY(make_gpu_context(*made, std::move(gpu)));
  // All ranks have the same settings at this point, so all of them refuse.
  TUTTI_TRY(made->plans().check_settings());
  const auto& m = made->members();
  if (m.spans_hosts()) {
    m.arrivals->wakes({m.area, &m.area->area.header().doorbell});
    TUTTI_TRY(process.service.add(m.control));
  }
  const auto watch = std::make_shared<PeerWatch>(made);
  made->beside_calls().watched_by(watch);
  TUTTI_TRY(process.service.add(watch));
  process.log.info(LogTopic::init, m.who, "{} ranks ready, {}, other processes' memory can{} be copied from", m.ranks,
                   m.oversubscribed ? "more ranks than cores" : "a core for each rank", m.pulls ? "" : "not");
  process.log.info(LogTopic::topo, m.who, "levels: {}", text_of(m.map));
  return {};
}

}  // namespace

Join::Join(Process& process, JoinOptions options, Exchange* exchange)
    : pid_(::getpid()),
      joining_(process.pending_closes),
      deadline_ns_(deadline_of(process, options)),
      bootstrap_(exchange != nullptr ? nullptr
                                     : std::make_unique<Bootstrap>(process.system, options.id, who_of(process, options),
                                                                   limits_of(process, deadline_ns_))),
      facts_{.process = process,
             .options = std::move(options),
             .deadline_ns = deadline_ns_,
             .exchange = exchange != nullptr ? *exchange : *bootstrap_},
      phases_(start::phases()) {}

Join::~Join() {
  if (state_ != State::not_begun || !bootstrap_ || ::getpid() != pid_) return;
  try {
    cannot_join({.code = Code::invalid_usage, .what = "its process has given the start up before it began"});
  } catch (const std::bad_alloc&) {  // the others reach their limit
  }
}

Result<Progress> Join::advance() {
  if (state_ == State::not_begun) return begin();
  assert(state_ == State::under_way);
  auto progress = phases_[phase_]->advance(facts_);
  if (!progress) {
    const bool for_its_own_reason = progress.error().sys_errno != 0;
    if (for_its_own_reason && phase_ == 0 && bootstrap_ && !bootstrap_->met())
      return cannot_join(std::move(progress).error());
    return progress;
  }
  return *progress == Progress::done ? next_phase() : *progress;
}

/// The first thing that needs descriptors gets all that are left but one, by which the root is called. Without any, the
/// call fails with a reason as good as that of the first phase.
Result<Progress> Join::begin() {
  if (facts_.options.refused) return cannot_join(*facts_.options.refused);
  Result<Socket> kept{Socket()};
  if (bootstrap_) kept = facts_.process.system.listen({.host = "127.0.0.1"});
  auto begun = phases_.front()->begin(facts_);
  kept = Socket();
  if (!begun) return cannot_join(std::move(begun).error());
  state_ = State::under_way;
  return Progress::moved;
}

Result<Progress> Join::next_phase() {
  do {
    ++phase_;
  } while (phase_ < phases_.size() && !phases_[phase_]->applies(facts_));
  if (phase_ < phases_.size()) {
    TUTTI_TRY(phases_[phase_]->begin(facts_));
    return Progress::moved;
  }
  state_ = State::over;
  TUTTI_TRY(finish());
  return Progress::done;
}

/// The root does not know this rank yet: it is told why it will not come. What this rank has is given up first, as the
/// call needs a descriptor.
Error Join::cannot_join(Error why) {
  state_ = State::over;
  if (!bootstrap_) return why;
  facts_.gpus = {};
  facts_.members = {};
  const JoinOptions& options = facts_.options;
  refuse_start(facts_.process, options.id, {.rank = options.rank, .ranks = options.ranks}, why, deadline_ns_);
  return why;
}

void Join::give_up(const Error& why) {
  if (!bootstrap_) return;
  state_ = State::over;
  const JoinOptions& options = facts_.options;
  const bool root_is_here = facts_.process.pending_closes.root_of(options.id.secret) != nullptr;
  if (!root_is_here && bootstrap_->placed())
    bootstrap_->fail(
        {.code = why.code, .what = fmt::format("rank {} gave up: {}", options.rank, why.text()), .peer = options.rank});
  if (root_is_here || !bootstrap_->met())
    refuse_start(facts_.process, options.id, {.rank = options.rank, .ranks = options.ranks}, why, deadline_ns_,
                 Hold::no);
}

std::int64_t Join::poll_set(std::vector<PollItem>& items) const {
  return state_ == State::under_way ? phases_[phase_]->poll_set(facts_, items) : facts_.exchange.poll_set(items);
}

Result<void> Join::finish() {
  facts_.members.area->stop_sharing();
  GpuStart gpu = facts_.gpus.keep(facts_.members.gpus_reach, facts_.kernels_sync);
  made_ = std::make_shared<Communicator>(facts_.process, std::move(facts_.members));
  auto ready = get_ready(made_, std::move(gpu));
  // The others have a communicator by now, whose first call tells them.
  if (!ready) made_->fail(ready.error());
  return ready;
}

}  // namespace tutti
