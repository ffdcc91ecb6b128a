// PMI-2 in the form of Slurm's srun --mpi=pmi2: first a line, then frames with a length.
#include <fmt/format.h>

#include "base/printable.h"

#include "launch/key_value_space.h"
#include "launch/pmi_wire.h"

namespace tutti {
namespace {

class Pmi2 final : public KeyValueSpace {
 public:
  Pmi2(System& system, PmiWire wire) : system_(system), wire_(std::move(wire)) {}
  ~Pmi2() override {
    if (greeted_) (void)ask("finalize", "", system_.now_ns() + goodbye_ns);
  }

  Result<void> greet(const LaunchInfo& launch, std::int64_t deadline_ns);

  const char* name() const override { return "PMI-2"; }
  Result<void> put(const std::string& key, const std::string& value, std::int64_t deadline_ns) override;
  Result<void> fence(std::int64_t deadline_ns) override;
  Result<std::string> get(int rank, const std::string& key, std::int64_t deadline_ns) override;

 private:
  static constexpr std::int64_t goodbye_ns = 1'000'000'000;
  Result<void> begin(std::int64_t deadline_ns);
  Result<PmiWords> ask(const std::string& command, const std::string& words, std::int64_t deadline_ns);

  System& system_;
  PmiWire wire_;
  bool greeted_ = false;
  std::optional<Error> failure_;  ///< after an error, answers can no longer be matched to questions
};

/// The answer to command "x" is an "x-response".
Result<PmiWords> Pmi2::ask(const std::string& command, const std::string& words, std::int64_t deadline_ns) {
  if (failure_) return *failure_;
  const auto exchange = [&]() -> Result<PmiWords> {
    const std::string body = fmt::format("cmd={};{}", command, words);
    TUTTI_TRY(wire_.send(fmt::format("{:<6}{}", body.size(), body), deadline_ns));
    auto said = TUTTI_TRY(wire_.frame(deadline_ns));
    auto answer = PmiWords::read(said, ';');
    if (!answer) return answer;
    TUTTI_TRY(answer->expect(command + "-response"));
    return answer;
  };
  auto answer = exchange();
  if (!answer) failure_ = answer.error();
  return answer;
}

/// Begins as PMI-1 does, so that a server of either kind understands it.
Result<void> Pmi2::begin(std::int64_t deadline_ns) {
  TUTTI_TRY(wire_.send("cmd=init pmi_version=2 pmi_subversion=0\n", deadline_ns));
  auto said = TUTTI_TRY(wire_.line(deadline_ns));
  auto words = TUTTI_TRY(PmiWords::read(said, ' '));
  TUTTI_TRY(words.expect("response_to_init"));
  if (words.value("pmi_version") != "2")
    return Error{.code = Code::remote, .what = "the launcher does not speak PMI-2"};
  return {};
}

Result<void> Pmi2::greet(const LaunchInfo& launch, std::int64_t deadline_ns) {
  TUTTI_TRY(begin(deadline_ns));
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
  auto space = std::make_unique<Pmi2>(system, std::move(wire));
  if (auto greeted = space->greet(launch, deadline_ns); !greeted) return std::move(greeted).error().during("PMI-2");
  return std::unique_ptr<KeyValueSpace>(std::move(space));
}

}  // namespace tutti
