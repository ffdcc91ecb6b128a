#include "init/split.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/fixed_text.h"
#include "collective/host_collective.h"
#include "comm/peer_failure.h"
#include "init/open_root.h"
#include "init/refused_start.h"

namespace tutti {
namespace {

constexpr std::int64_t look_again_ns = 10'000'000;

}  // namespace

Regroup::Regroup(std::shared_ptr<Communicator> parent, JoinOptions options)
    : options_(std::move(options)), parent_(std::move(parent)), loss_(parent_->process().system) {
  options_.machine = parent_->members().machine;  // measured for it; measuring again would keep all waiting
}

Regroup::~Regroup() {
  if (watch_) parent_->process().service.remove(watch_.get());
  leave();
}

Result<void> Regroup::watch(std::vector<Rank> members) {
  watch_ = std::make_shared<GroupWatch>(*parent_, std::move(members));
  return parent_->process().service.add(watch_);
}

void Regroup::meet_here(const UniqueId& id) {
  options_.id = id;
  meets_here_ = true;
}

Result<void> Regroup::look() const {
  if (parent_->failed()) return parent_->failure().error();
  return {};
}

Result<Progress> Regroup::advance() {
  if (exchange_) return join_by_exchange();
  if (join_) return join_by_root();
  auto arranged = arrange_in_turn();
  if (!arranged) {
    const Error& why = arranged.error();
    parent_->fail(why);  // what is under way on it may stay without its receiver
    Process& process = parent_->process();
    if (meets_here_)  // ranks that have the id already hear why
      refuse_start(process, options_.id, {.rank = options_.rank, .ranks = options_.ranks}, why, process.system.now_ns(),
                   Hold::no);
    leave();
    return arranged;
  }
  if (*arranged != Progress::done) return arranged;
  if (exchange_) {
    joined_ = outside_ || trouble_;
    if (joined_)
      exchange_->end(trouble_);
    else
      join_.emplace(parent_->process(), options_, &*exchange_);
    return Progress::moved;
  }
  leave();
  if (outside_) return Progress::done;
  if (trouble_) return *std::move(trouble_);
  join_.emplace(parent_->process(), options_);
  return Progress::moved;
}

Result<Progress> Regroup::arrange_in_turn() {
  TUTTI_TRY(look());
  if (!parent_->order().turn_of(ticket_)) return Progress::blocked;
  if (!loss_.noted()) {
    auto arranged = arrange();
    if (arranged || !watch_ || arranged.error().code != Code::remote) return arranged;
    loss_.note(arranged.error());
  }
  return loss_.name(watch_->look());
}

Result<Progress> Regroup::join_by_root() {
  if (loss_.noted()) return loss_.name(watch_->look());
  auto joined = join_->advance();
  if (!joined && joined.error().code == Code::remote) {
    loss_.note(joined.error());
    return loss_.name(watch_->look());
  }
  if (joined && *joined == Progress::done) made_ = join_->take();
  if (!joined || *joined != Progress::blocked) return joined;
  if (auto possible = watch_->check_patiently(); !possible) {
    join_->give_up(possible.error());
    return std::move(possible).error();
  }
  return Progress::blocked;
}

/// A rank that fails to join goes on telling the others so until all have heard it.
Result<Progress> Regroup::join_by_exchange() {
  if (parent_->failed()) {
    leave();
    return parent_->failure().error();
  }
  bool moved = false;
  if (!joined_) {
    auto on = join_->advance();
    if (!on) trouble_ = on.error();
    if (trouble_ || *on == Progress::done) {
      joined_ = true;
      exchange_->end(trouble_);
      if (!trouble_) made_ = join_->take();
    }
    moved = joined_ || *on == Progress::moved;
  }
  auto turned = exchange_->turn();
  if (!turned) {
    parent_->fail(turned.error());
    leave();
    return turned;
  }
  if (*turned != Progress::done) return moved ? Progress::moved : *turned;
  leave();
  if (trouble_) return *std::move(trouble_);
  return Progress::done;
}

Result<void> Regroup::poll_peers() {
  if (under_way() == nullptr) return {};
  auto looked = look_at_peers();
  if (!looked) parent_->fail(looked.error());
  return looked;
}

std::int64_t Regroup::poll_set(std::vector<PollItem>& items) const {
  if (loss_.noted()) return parent_->process().system.now_ns() + look_again_ns;
  if (join_ && !exchange_) return join_->poll_set(items);
  return under_way() != nullptr ? under_way()->poll_set(items) : 0;
}

std::string Regroup::where() const {
  const Rank rank = waits_for();
  return "making a communicator from another" + (rank < 0 ? "" : fmt::format(", waiting for rank {}", rank));
}

SplitByColor::SplitByColor(std::shared_ptr<Communicator> parent, int color, int key, JoinOptions options)
    : Regroup(std::move(parent), std::move(options)),
      mine_{.color = color, .key = key, .deterministic = options_.deterministic ? 1 : 0, .secret = {}} {}

SplitByColor::~SplitByColor() {
  wipe(mine_.secret);
  wipe(std::as_writable_bytes(std::span(choices_)));
  wipe(std::as_writable_bytes(std::span(ids_)));
}

void SplitByColor::gather(const void* mine, void* all, std::size_t bytes) {
  request_ = {.collective = Collective::all_gather,
              .input = static_cast<const std::byte*>(mine),
              .output = static_cast<std::byte*>(all),
              .count = bytes};
  make_host_collective(call_, parent(), request_);
  current_ = &*call_;
}

Result<Progress> SplitByColor::arrange() {
  if (!call_) {
    mine_.secret = TUTTI_TRY(fresh_secret());
    choices_.resize(parent().ranks());
    gather(&mine_, choices_.data(), sizeof mine_);
  }
  auto progress = call_->advance();
  if (!progress || *progress != Progress::done) return progress;
  if (stage_++ == 0) {
    TUTTI_TRY(choose_places());
    if (exchange_) return Progress::done;
    ids_.resize(id_.size() * parent().ranks());
    gather(id_.data(), ids_.data(), id_.size());
    return Progress::moved;
  }
  if (outside_) return Progress::done;
  auto id = UniqueId::decode(ids_.data() + static_cast<std::size_t>(leader_) * id_.size());
  if (!id) return std::move(id).error().at_peer(leader_);
  options_.id = *id;
  return Progress::done;
}

Result<void> SplitByColor::choose_places() {
  outside_ = mine_.color == no_color;
  if (!parent().members().spans_hosts()) exchange_.emplace(parent());
  if (outside_) return {};
  std::vector<Rank> members;
  for (Rank rank = 0; rank < parent().ranks(); ++rank)
    if (choices_[rank].color == mine_.color) members.push_back(rank);
  std::ranges::stable_sort(members, {}, [this](Rank rank) { return choices_[rank].key; });
  options_.ranks = static_cast<int>(members.size());
  options_.rank = static_cast<Rank>(std::ranges::find(members, parent().rank()) - members.begin());
  leader_ = members.front();
  if (exchange_) {
    const Choice& first = choices_[static_cast<std::size_t>(leader_)];
    options_.id.secret = Secret(first.secret);
    for (const Rank rank : members)
      if (choices_[static_cast<std::size_t>(rank)].deterministic != first.deterministic && !trouble_)
        trouble_ = Error{.code = Code::invalid_usage,
                         .what = fmt::format("ranks disagree: deterministic is {} on rank {} of the parent and {} on "
                                             "rank {}",
                                             first.deterministic, leader_, 1 - first.deterministic, rank)};
    exchange_->set_members(std::move(members));
    return {};
  }
  TUTTI_TRY(watch(std::move(members)));
  if (leader_ != parent().rank()) return {};
  auto id = TUTTI_TRY(open_root(parent().process()));
  id_ = id.encode();
  meet_here(id);
  return {};
}

CreateGroup::CreateGroup(std::shared_ptr<Communicator> parent_in, std::vector<Rank> ranks, JoinOptions options)
    : Regroup(std::move(parent_in), std::move(options)), ranks_(std::move(ranks)) {
  options_.ranks = static_cast<int>(ranks_.size());
  options_.rank = static_cast<Rank>(std::ranges::find(ranks_, parent().rank()) - ranks_.begin());
}

/// What happens to other ranks of the parent does not end it.
Result<void> CreateGroup::look() const {
  if (!watch_) return {};  // it has not begun
  return watch_->look();
}

/// Members that fail because of another rank take part all the same: the watch knows which. But one that has left the
/// parent sends nothing more.
Result<void> CreateGroup::look_at_peers() {
  for (const PeerRequest& request : requests_)
    if (has_left(parent(), request.peer)) return transfers_->poll_peers();
  return {};
}

Result<void> CreateGroup::begin() {
  TUTTI_TRY(watch(ranks_));
  TUTTI_TRY(look());
  const auto data = reinterpret_cast<std::byte*>(&word_);
  if (options_.rank == 0) {
    make_id();
    for (std::size_t i = 1; i < ranks_.size(); ++i)
      requests_.push_back({.send = true, .data = data, .bytes = sizeof word_, .peer = ranks_[i]});
  } else {
    requests_.push_back({.send = false, .data = data, .bytes = sizeof word_, .peer = ranks_[0]});
  }
  current_ = &transfers_.emplace(parent(), requests_);
  return {};
}

void CreateGroup::make_id() {
  auto id = open_root(parent().process());
  if (id) {
    word_.id = id->encode();
    meet_here(*id);
    return;
  }
  word_.code = static_cast<std::uint32_t>(id.error().code);
  put_text(word_.what, id.error().text());
  trouble_ = std::move(id).error();
}

void CreateGroup::read_word() {
  if (options_.rank == 0) return;
  auto id = UniqueId::decode(word_.id.data());
  if (word_.code != 0)
    trouble_ =
        Error{.code = received_code(word_.code),
              .what = fmt::format("rank 0 could not open the meeting point: {}", get_text(word_.what, Lines::several)),
              .peer = ranks_[0]};
  else if (!id)
    trouble_ = std::move(id).error().at_peer(ranks_[0]);
  else
    options_.id = *std::move(id);
}

Result<Progress> CreateGroup::arrange() {
  if (!transfers_) TUTTI_TRY(begin());
  auto progress = transfers_->advance();
  if (!progress || *progress != Progress::done) return progress;
  read_word();
  return Progress::done;
}

}  // namespace tutti
