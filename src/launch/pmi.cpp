// PMI-1 in the form of MPICH's hydra: lines of words. PMI-2 in the form of Slurm's srun --mpi=pmi2: first a line, then
// frames with a length.
#include <charconv>

#include <fmt/format.h>

#include "base/printable.h"
#include "launch/key_value_space.h"
#include "launch/pmi_wire.h"

namespace tutti {
namespace {

class Pmi1 final : public KeyValueSpace {
 public:
  explicit Pmi1(PmiWire wire) : wire_(std::move(wire)) {}
  ~Pmi1() override {
    // Without this message, hydra takes the end of the process for a crash.
    if (greeted_) wire_.say_goodbye(PmiForm::line, "cmd=finalize", "finalize_ack");
  }

  Result<void> greet(const LaunchInfo& /*launch*/, std::int64_t deadline_ns) {
    TUTTI_TRY(ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", deadline_ns));
    greeted_ = true;
    auto maxes = TUTTI_TRY(ask("cmd=get_maxes", "maxes", deadline_ns));
    const std::string_view most = maxes.value("vallen_max");
    std::from_chars(most.data(), most.data() + most.size(), value_bytes_max_);
    auto space = TUTTI_TRY(ask("cmd=get_my_kvsname", "my_kvsname", deadline_ns));
    space_ = space.value("kvsname");
    if (space_.empty()) return remote_error("the launcher has no name for its key-value space");
    return {};
  }

  const char* name() const override { return "PMI-1"; }
  Result<void> put(const std::string& key, const std::string& value, std::int64_t deadline_ns) override {
    if (value.size() >= value_bytes_max_)
      return remote_error(fmt::format("the launcher keeps values of less than {} bytes, {} are needed",
                                      value_bytes_max_, value.size()));
    TUTTI_TRY(ask(fmt::format("cmd=put kvsname={} key={} value={}", space_, key, value), "put_result", deadline_ns));
    return {};
  }
  Result<void> fence(std::int64_t deadline_ns) override {
    TUTTI_TRY(ask("cmd=barrier_in", "barrier_out", deadline_ns));
    return {};
  }
  Result<std::string> get(int /*rank*/, const std::string& key, std::int64_t deadline_ns) override {
    auto got = TUTTI_TRY(ask(fmt::format("cmd=get kvsname={} key={}", space_, key), "get_result", deadline_ns));
    return std::string(got.value("value"));
  }

 private:
  Result<PmiWords> ask(const std::string& line, std::string_view answer, std::int64_t deadline_ns) {
    return wire_.ask(PmiForm::line, line, answer, deadline_ns);
  }

  PmiWire wire_;
  std::string space_;
  std::size_t value_bytes_max_ = 0;
  bool greeted_ = false;
};

class Pmi2 final : public KeyValueSpace {
 public:
  explicit Pmi2(PmiWire wire) : wire_(std::move(wire)) {}
  ~Pmi2() override {
    if (greeted_) wire_.say_goodbye(PmiForm::frame, "cmd=finalize;", "finalize-response");
  }

  /// Begins as PMI-1 does, so that a server of either kind understands it.
  Result<void> greet(const LaunchInfo& launch, std::int64_t deadline_ns) {
    const std::string init = "cmd=init pmi_version=2 pmi_subversion=0";
    const auto version = TUTTI_TRY(wire_.ask(PmiForm::line, init, "response_to_init", deadline_ns));
    if (version.value("pmi_version") != "2") return remote_error("the launcher does not speak PMI-2");
    const std::string who = fmt::format("pmijobid={};pmirank={};threaded=FALSE;", launch.pmi_job, launch.rank);
    const auto full = TUTTI_TRY(ask("fullinit", who, deadline_ns));
    greeted_ = true;
    if (full.value("rank") != std::to_string(launch.rank) || full.value("size") != std::to_string(launch.ranks))
      return invalid_usage(fmt::format("Slurm says rank {} of {}, the environment rank {} of {}",
                                       printable(full.value("rank"), 40), printable(full.value("size"), 40),
                                       launch.rank, launch.ranks));
    return {};
  }

  const char* name() const override { return "PMI-2"; }
  Result<void> put(const std::string& key, const std::string& value, std::int64_t deadline_ns) override {
    TUTTI_TRY(ask("kvs-put", fmt::format("key={};value={};", key, value), deadline_ns));
    return {};
  }
  Result<void> fence(std::int64_t deadline_ns) override {
    TUTTI_TRY(ask("kvs-fence", "", deadline_ns));
    return {};
  }
  Result<std::string> get(int rank, const std::string& key, std::int64_t deadline_ns) override {
    auto got = TUTTI_TRY(ask("kvs-get", fmt::format("jobid=;srcid={};key={};", rank, key), deadline_ns));
    if (got.value("found") != "TRUE")
      return remote_error(fmt::format("rank {} has put no {} into Slurm's key-value space", rank, key));
    return std::string(got.value("value"));
  }

 private:
  /// The answer to command "x" is an "x-response".
  Result<PmiWords> ask(const std::string& command, const std::string& words, std::int64_t deadline_ns) {
    return wire_.ask(PmiForm::frame, fmt::format("cmd={};{}", command, words), command + "-response", deadline_ns);
  }

  PmiWire wire_;
  bool greeted_ = false;
};

template <class Space>
Result<std::shared_ptr<KeyValueSpace>> open(System& system, const LaunchInfo& launch, std::int64_t deadline_ns) {
  auto space = std::make_shared<Space>(TUTTI_TRY(PmiWire::open(system, launch.pmi_fd)));
  if (auto met = space->greet(launch, deadline_ns); !met) return std::move(met).error().during(space->name());
  return std::shared_ptr<KeyValueSpace>(std::move(space));
}

}  // namespace

Result<std::shared_ptr<KeyValueSpace>> open_pmi1(System& system, const LaunchInfo& launch, std::int64_t deadline_ns) {
  return open<Pmi1>(system, launch, deadline_ns);
}

Result<std::shared_ptr<KeyValueSpace>> open_pmi2(System& system, const LaunchInfo& launch, std::int64_t deadline_ns) {
  return open<Pmi2>(system, launch, deadline_ns);
}

}  // namespace tutti
