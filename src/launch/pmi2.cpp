// PMI-2 in the form of Slurm's srun --mpi=pmi2: first a line, then frames with a length.
#include <fmt/format.h>

#include "base/printable.h"

#include "launch/key_value_space.h"
#include "launch/pmi_wire.h"

namespace tutti {
namespace {

class Pmi2 final : public KeyValueSpace {
 public:
  explicit Pmi2(PmiWire wire) : wire_(std::move(wire)) {}
  ~Pmi2() override {
    if (greeted_) wire_.say_goodbye(PmiForm::frame, "cmd=finalize;", "finalize-response");
  }

  Result<void> greet(const LaunchInfo& launch, std::int64_t deadline_ns);

  const char* name() const override { return "PMI-2"; }
  Result<void> put(const std::string& key, const std::string& value, std::int64_t deadline_ns) override;
  Result<void> fence(std::int64_t deadline_ns) override;
  Result<std::string> get(int rank, const std::string& key, std::int64_t deadline_ns) override;

 private:
  /// The answer to command "x" is an "x-response".
  Result<PmiWords> ask(const std::string& command, const std::string& words, std::int64_t deadline_ns) {
    return wire_.ask(PmiForm::frame, fmt::format("cmd={};{}", command, words), command + "-response", deadline_ns);
  }

  PmiWire wire_;
  bool greeted_ = false;
};

/// Begins as PMI-1 does, so that a server of either kind understands it.
Result<void> Pmi2::greet(const LaunchInfo& launch, std::int64_t deadline_ns) {
  const std::string init = "cmd=init pmi_version=2 pmi_subversion=0";
  const auto version = TUTTI_TRY(wire_.ask(PmiForm::line, init, "response_to_init", deadline_ns));
  if (version.value("pmi_version") != "2")
    return Error{.code = Code::remote, .what = "the launcher does not speak PMI-2"};
  const std::string who = fmt::format("pmijobid={};pmirank={};threaded=FALSE;", launch.pmi_job, launch.rank);
  const auto full = TUTTI_TRY(ask("fullinit", who, deadline_ns));
  greeted_ = true;
  if (full.value("rank") != std::to_string(launch.rank) || full.value("size") != std::to_string(launch.ranks))
    return Error{.code = Code::invalid_usage,
                 .what = fmt::format("Slurm says rank {} of {}, the environment rank {} of {}",
                                     printable(full.value("rank"), 40), printable(full.value("size"), 40), launch.rank,
                                     launch.ranks)};
  return {};
}

Result<void> Pmi2::put(const std::string& key, const std::string& value, std::int64_t deadline_ns) {
  TUTTI_TRY(ask("kvs-put", fmt::format("key={};value={};", key, value), deadline_ns));
  return {};
}

Result<void> Pmi2::fence(std::int64_t deadline_ns) {
  TUTTI_TRY(ask("kvs-fence", "", deadline_ns));
  return {};
}

Result<std::string> Pmi2::get(int rank, const std::string& key, std::int64_t deadline_ns) {
  auto got = TUTTI_TRY(ask("kvs-get", fmt::format("jobid=;srcid={};key={};", rank, key), deadline_ns));
  if (got.value("found") != "TRUE")
    return Error{.code = Code::remote,
                 .what = fmt::format("rank {} has put no {} into Slurm's key-value space", rank, key)};
  return std::string(got.value("value"));
}

}  // namespace

Result<std::unique_ptr<KeyValueSpace>> open_pmi2(System& system, const LaunchInfo& launch, std::int64_t deadline_ns) {
  auto wire = TUTTI_TRY(PmiWire::open(system, launch.pmi_fd));
  auto space = std::make_unique<Pmi2>(std::move(wire));
  if (auto greeted = space->greet(launch, deadline_ns); !greeted) return std::move(greeted).error().during("PMI-2");
  return std::unique_ptr<KeyValueSpace>(std::move(space));
}

}  // namespace tutti
