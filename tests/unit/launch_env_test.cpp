#include "launch/launch_env.h"

#include <gtest/gtest.h>

#include <map>

namespace tutti {
namespace {

using Variables = std::map<std::string, std::string>;

Variables both(Variables first, const Variables& second) {
  first.insert(second.begin(), second.end());
  return first;
}

Result<LaunchInfo> read(const Variables& variables) {
  return read_launch([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

const Variables torchrun = {{"RANK", "3"},
                            {"WORLD_SIZE", "8"},
                            {"LOCAL_RANK", "1"},
                            {"LOCAL_WORLD_SIZE", "2"},
                            {"MASTER_ADDR", "10.0.0.1"},
                            {"MASTER_PORT", "29500"}};
const Variables open_mpi = {{"OMPI_COMM_WORLD_RANK", "0"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                            {"PMIX_NAMESPACE", "123@1"}};
const Variables pmix = {
    {"PMIX_NAMESPACE", "123@1"}, {"PMIX_RANK", "0"}, {"PMIX_SERVER_URI41", "1.0;tcp4://127.0.0.1:9"}};
const Variables hydra = {{"PMI_RANK", "1"},   {"PMI_SIZE", "4"},        {"PMI_FD", "7"},
                         {"PMI_PORT", "x:1"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
const Variables slurm = {{"SLURM_PROCID", "5"},
                         {"SLURM_STEP_ID", "0"},
                         {"SLURM_JOB_ID", "42"},
                         {"SLURM_NTASKS", "8"},
                         {"SLURM_STEP_NUM_TASKS", "7"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_NODEID", "2"},
                         {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                         {"SLURM_STEP_NODELIST", "n[3-5,9]"}};
const Variables slurm_pmi2 =
    both(slurm, {{"PMI_FD", "9"}, {"PMI_JOBID", "42.0"}, {"PMI_RANK", "5"}, {"PMI_SIZE", "7"}});

/// rank/ranks local/locals by whom
std::string summary(const Result<LaunchInfo>& launch) {
  if (!launch) return launch.error().text();
  return std::to_string(launch->rank) + "/" + std::to_string(launch->ranks) + " " + std::to_string(launch->local_rank) +
         "/" + std::to_string(launch->local_ranks) + " " + launch->launcher;
}

TEST(LaunchEnv, UnderstandsTorchrun) {
  auto launch = read(torchrun);
  EXPECT_EQ(summary(launch), "3/8 1/2 torchrun");
  EXPECT_EQ(launch->root, (SocketAddress{.host = "10.0.0.1", .port = 29501}));
  EXPECT_FALSE(launch->root_from_user);
}

TEST(LaunchEnv, UnderstandsOpenMpi) {
  auto launch = read(open_mpi);
  EXPECT_EQ(summary(launch), "0/2 0/2 Open MPI");
  EXPECT_EQ(launch->space, SpaceKind::none);
  EXPECT_FALSE(launch->root);
  EXPECT_NE(launch->job.find("123@1"), std::string::npos);
}

TEST(LaunchEnv, UnderstandsPmix) {
  auto alone = read(pmix);
  EXPECT_EQ(summary(alone), "0/0 -1/-1 PMIx") << "only PMIx itself knows how many";
  EXPECT_EQ(alone->space, SpaceKind::pmix);
  auto by_mpirun = read(both(pmix, open_mpi));
  EXPECT_EQ(summary(by_mpirun), "0/2 0/2 Open MPI");
  EXPECT_EQ(by_mpirun->space, SpaceKind::pmix);
  EXPECT_TRUE(by_mpirun->not_used.empty());
  auto by_slurm = both(pmix, slurm);
  by_slurm["PMIX_RANK"] = "5";
  EXPECT_EQ(summary(read(by_slurm)), "5/7 1/2 Slurm");
  EXPECT_EQ(read(by_slurm)->space, SpaceKind::pmix);
}

TEST(LaunchEnv, UnderstandsHydra) {
  auto launch = read(hydra);
  EXPECT_EQ(summary(launch), "1/4 1/2 hydra");
  EXPECT_EQ(launch->space, SpaceKind::pmi1);
  EXPECT_EQ(launch->pmi_fd, 7);
  EXPECT_EQ(summary(read(both(hydra, both(slurm, {{"PMI_JOBID", "42.0"}})))), "1/4 1/2 hydra")
      << "hydra within a job of Slurm";
}

TEST(LaunchEnv, UnderstandsSlurm) {
  auto launch = read(slurm);
  EXPECT_EQ(summary(launch), "5/7 1/2 Slurm");
  EXPECT_EQ(launch->space, SpaceKind::none);
  ASSERT_TRUE(launch->root);
  EXPECT_EQ(launch->root->host, "n3");
  EXPECT_GE(launch->root->port, 20'000);
  EXPECT_LT(launch->root->port, 30'000);
  auto pmi2 = read(slurm_pmi2);
  EXPECT_EQ(summary(pmi2), "5/7 1/2 Slurm");
  EXPECT_EQ(pmi2->space, SpaceKind::pmi2);
  EXPECT_EQ(pmi2->pmi_fd, 9);
  EXPECT_EQ(pmi2->pmi_job, "42.0");
}

/// A batch script and an interactive shell have the job's variables, but are no ranks.
TEST(LaunchEnv, SlurmOutsideOfAStepIsNoLauncher) {
  for (const char* step : {"", "4294967290", "4294967291", "4294967292", "x"}) {
    auto variables = slurm;
    variables["SLURM_STEP_ID"] = step;
    auto launch = read(variables);
    ASSERT_FALSE(launch) << step;
    EXPECT_NE(launch.error().what.find("no rank in the environment"), std::string::npos);
  }
}

TEST(LaunchEnv, TheAddressOfTheUserComesFirst) {
  for (const auto& launcher : {torchrun, open_mpi, hydra, slurm}) {
    auto launch = read(both({{"TUTTI_COMM_ID", "[::1]:4000"}}, launcher));
    ASSERT_TRUE(launch) << launch.error().text();
    EXPECT_EQ(launch->root, (SocketAddress{.host = "::1", .port = 4000}));
    EXPECT_TRUE(launch->root_from_user);
  }
  EXPECT_EQ(read(both({{"MASTER_ADDR", "host"}, {"MASTER_PORT", "1"}}, slurm))->root,
            (SocketAddress{.host = "host", .port = 2}));
}

TEST(LaunchEnv, TheirOrder) {
  const Variables own = {{"TUTTI_RANK", "1"}, {"TUTTI_NRANKS", "2"}};
  EXPECT_EQ(read(both(own, both(torchrun, open_mpi)))->launcher, "tutti");
  EXPECT_EQ(read(both(torchrun, both(pmix, open_mpi)))->launcher, "torchrun");
  EXPECT_EQ(read(both(open_mpi, hydra))->launcher, "Open MPI");
  EXPECT_EQ(read(both(hydra, slurm))->launcher, "hydra");
  auto all = read(both(own, both(torchrun, both(hydra, slurm))));
  EXPECT_EQ(all->not_used,
            (std::vector<std::string>{"torchrun: rank 3 of 8", "hydra: rank 1 of 4", "Slurm: rank 5 of 7"}));
}

/// What is missing is named; half a launcher does not stand in the way of a whole one, unless it is the user's own.
TEST(LaunchEnv, HalfIsRefused) {
  const std::pair<Variables, const char*> halves[] = {
      {{{"TUTTI_RANK", "0"}}, "TUTTI_RANK is set, but TUTTI_NRANKS is not"},
      {{{"TUTTI_NRANKS", "2"}}, "TUTTI_NRANKS is set, but TUTTI_RANK is not"},
      {both({{"TUTTI_RANK", "0"}}, open_mpi), "TUTTI_RANK is set, but TUTTI_NRANKS is not"},
      {{{"RANK", "0"}}, "RANK is set, but WORLD_SIZE is not"},
      {{{"RANK", "0"}, {"WORLD_SIZE", ""}}, "RANK is set, but WORLD_SIZE is not"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "h"}}, "MASTER_ADDR is set, but MASTER_PORT is not"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_PORT", "1"}}, "MASTER_PORT is set, but MASTER_ADDR is not"},
      {{{"OMPI_COMM_WORLD_SIZE", "2"}}, "OMPI_COMM_WORLD_SIZE is set, but OMPI_COMM_WORLD_RANK is not"},
      {{{"PMI_RANK", "0"}}, "PMI_RANK is set, but PMI_SIZE is not"},
      {{{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}}, "SLURM_PROCID is set, but SLURM_NTASKS is not"},
  };
  for (const auto& [variables, words] : halves) {
    auto launch = read(variables);
    ASSERT_FALSE(launch) << words;
    EXPECT_EQ(launch.error().code, Code::invalid_usage);
    EXPECT_EQ(launch.error().what, words);
  }
  auto whole = read(both({{"RANK", "1"}}, open_mpi));
  EXPECT_EQ(summary(whole), "0/2 0/2 Open MPI");
  EXPECT_EQ(whole->not_used, std::vector<std::string>{"torchrun: RANK is set, but WORLD_SIZE is not"});
}

TEST(LaunchEnv, RefusesWhatDoesNotFit) {
  const auto with = [](Variables variables, const char* name, const char* value) {
    variables[name] = value;
    return std::pair(variables, std::string(name) + "=");
  };
  const std::pair<Variables, std::string> bad[] = {
      with(torchrun, "RANK", "x"),
      with(torchrun, "RANK", "8"),
      with(torchrun, "RANK", "-1"),
      with(torchrun, "RANK", "3 "),
      with(torchrun, "WORLD_SIZE", "0"),
      with(torchrun, "WORLD_SIZE", "99999999999"),
      with(torchrun, "LOCAL_RANK", "2"),
      with(torchrun, "LOCAL_RANK", "-1"),
      with(torchrun, "LOCAL_WORLD_SIZE", "9"),
      {both({{"MASTER_PORT", "65536"}}, torchrun), "MASTER_PORT"},
      {both({{"MASTER_PORT", "65535"}}, torchrun), "MASTER_PORT"},
      {both({{"TUTTI_COMM_ID", "nohost"}}, torchrun), "TUTTI_COMM_ID"},
      {both({{"TUTTI_COMM_ID", ":1"}}, torchrun), "TUTTI_COMM_ID"},
      {both({{"TUTTI_COMM_ID", "[]:1"}}, torchrun), "TUTTI_COMM_ID"},
      {both({{"TUTTI_COMM_ID", "h:0"}}, torchrun), "TUTTI_COMM_ID"},
      with(open_mpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "3"),
      with(pmix, "PMIX_RANK", "zero"),
      with(hydra, "PMI_FD", "-1"),
      with(hydra, "PMI_FD", "x"),
      with(hydra, "MPI_LOCALRANKID", "2"),
      with(slurm, "SLURM_NODEID", "x"),
      {both({{"SLURM_NODEID", "4"}}, slurm), "SLURM_STEP_TASKS_PER_NODE"},
      {both({{"SLURM_STEP_TASKS_PER_NODE", "x"}}, slurm), "SLURM_STEP_TASKS_PER_NODE"},
      {both({{"SLURM_STEP_NODELIST", "n[x]"}}, slurm), "SLURM_STEP_NODELIST"},
      with(slurm, "SLURM_LOCALID", "2"),
  };
  for (const auto& [variables, words] : bad) {
    auto launch = read(variables);
    ASSERT_FALSE(launch) << words;
    EXPECT_EQ(launch.error().code, Code::invalid_argument) << launch.error().text();
    EXPECT_NE(launch.error().what.find(words), std::string::npos) << launch.error().what;
  }
  EXPECT_EQ(read({}).error().code, Code::invalid_usage);
}

}  // namespace
}  // namespace tutti
